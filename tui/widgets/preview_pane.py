"""The part of a screen that previews an entry: words, a plot where the preview has curves, and more words."""

from functools import partial
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.timer import Timer
from textual.widgets import Static

from tui.state.catalogue import Entry
from tui.style.redraw import hand_over

if TYPE_CHECKING:
    from tui.widgets.plot import Plot
    from tui.widgets.preview import Preview

PAUSE = 0.05  # seconds for which a choice stands before it is previewed: who holds a key down passes many


class PreviewPane(VerticalScroll, can_focus=True):
    """Shows one preview after the other."""

    DEFAULT_CSS = """
    PreviewPane { padding: 0 1; }
    PreviewPane Static { height: auto; max-width: 100; }
    PreviewPane #preview-below { text-wrap: nowrap; text-overflow: ellipsis; }
    PreviewPane Plot { height: 1fr; min-height: 9; }
    """

    _entry: Entry | None = None
    _timer: Timer | None = None
    _plot: "Plot | None" = None  # once there are curves

    def compose(self) -> ComposeResult:
        yield Static("loading …", id="preview")
        yield Static("", id="preview-below")

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._again())

    def on_resize(self) -> None:
        self._again()

    def ask(self, entry: Entry) -> None:
        """Preview an entry, unless another one is asked for meanwhile."""
        self._entry = entry
        self._again()

    def _again(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        if self._entry is not None and self.size:
            self._timer = self.set_timer(PAUSE, partial(self._make, self._entry, self.size))

    @work(thread=True, exclusive=True, group="preview")
    def _make(self, entry: Entry, room: Size) -> None:
        from tui.widgets.preview import preview

        hand_over(self.app, self.show, preview(entry, self.app, room))

    def show(self, preview: "Preview") -> None:
        if not self.is_attached:  # the app ends
            return
        self.query_one("#preview", Static).update(preview.words)
        self.query_one("#preview-below", Static).update(preview.below)
        before, self._plot = self._plot, preview.plot(self._plot)
        if self._plot is not None and before is None:
            self.mount(self._plot, after="#preview")
