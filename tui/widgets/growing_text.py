"""Sentences on as many lines as they take."""

from rich.text import Text
from textual.widgets import Static

from tui.style.text_layout import wrapped

MOST = 6  # lines


class GrowingText(Static):
    """Sentences above or below a table. Its lines become more as they are needed, and fewer with the next resize.

    They would lay out the whole screen again if they became fewer from round to round.
    """

    DEFAULT_CSS = "GrowingText { height: 2; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__("", id=id)
        self._words, self._wide = "", 0

    def show(self, words: str) -> None:
        self._words = words
        rows = min(MOST, len(list(wrapped(words, self.size.width)))) if self._wide else 0
        if rows > self.size.height:
            self.styles.height = rows
        self.update(Text(words), layout=False)

    def on_resize(self) -> None:
        if self.size.width != self._wide:
            self._wide = self.size.width
            self.styles.height = None
            self.call_after_refresh(lambda: self.show(self._words))
