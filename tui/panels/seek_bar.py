"""The run as a line: the rounds played, the rounds in which services left, and the round that is shown."""

from rich.segment import Segment
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from tui.state.moment import Moment
from tui.style.colors import tint
from tui.style.messages import Seek


class SeekBar(Widget):
    """``━━━◆━━●──────``: rounds played, exits (◆), the round shown (●), rounds to come. A click goes to a round."""

    DEFAULT_CSS = "SeekBar { height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._view: Moment | None = None

    def show(self, view: Moment) -> None:
        self._view = view
        self.refresh()

    @property
    def _total(self) -> int:
        view = self._view
        if view is None:
            return 1
        played = len(view.session.history)
        if view.session.over or view.scenario is None:
            return max(1, played)
        return max(1, played, view.scenario.rounds)

    def _cell(self, number: int) -> int:
        width = max(1, self.size.width - 2)
        return min(width - 1, int((number - 1) / max(1, self._total - 1) * (width - 1))) if number else 0

    def render_line(self, y: int) -> Strip:
        view, width, base = self._view, max(1, self.size.width - 2), self.rich_style
        if view is None:
            return Strip.blank(self.size.width, base)
        history = view.session.history
        played = self._cell(len(history)) + 1 if len(history) else 0
        cells = ["━"] * played + ["─"] * (width - played)
        styles = [tint(self.app, "primary")] * played + [tint(self.app, "foreground", dim=True)] * (width - played)
        for number in history.exits:
            cells[self._cell(number)], styles[self._cell(number)] = "◆", tint(self.app, "success", bold=True)
        if view.round:
            cells[self._cell(view.round)] = "●"
            styles[self._cell(view.round)] = tint(self.app, "accent", bold=True)
        line = [Segment(cell, base + style) for cell, style in zip(cells, styles, strict=True)]
        return Strip([Segment(" ", base), *line, Segment(" ", base)], self.size.width).simplify()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if event.button:
            self.on_click(event)

    def on_click(self, event: events.MouseEvent) -> None:
        if self._view is not None and len(self._view.session.history):
            width = max(1, self.size.width - 2)
            wanted = 1 + round((event.x - 1) / max(1, width - 1) * (self._total - 1))
            self.post_message(Seek(max(1, min(len(self._view.session.history), wanted))))
