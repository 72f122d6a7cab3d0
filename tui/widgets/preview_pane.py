"""The part of a screen that previews an entry: words, a plot where the preview has curves, and more words."""

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

if TYPE_CHECKING:
    from tui.widgets.preview import Preview


class PreviewPane(VerticalScroll, can_focus=True):
    """Shows one preview after the other."""

    DEFAULT_CSS = """
    PreviewPane { padding: 0 1; }
    PreviewPane Static { height: auto; max-width: 100; }
    PreviewPane #preview-below { text-wrap: nowrap; text-overflow: ellipsis; }
    PreviewPane Plot { height: 1fr; min-height: 9; }
    """

    def compose(self) -> ComposeResult:
        yield Static("loading …", id="preview")
        yield Static("", id="preview-below")

    def show(self, found: "Preview") -> None:
        self.query_one("#preview", Static).update(found.words)
        self.query_one("#preview-below", Static).update(found.below)
        for plot in self.query("Plot"):
            plot.display = bool(found.curves)
        if found.curves:
            self._plot(found)

    def _plot(self, found: "Preview") -> None:
        from tui.widgets.plot import Plot  # its imports would delay the first picture

        plot = next(iter(self.query(Plot)), None)
        if plot is None:
            plot = Plot()
            self.mount(plot, after="#preview")
        plot.begin(found.last)
        for curve in found.curves:
            plot.curve(*curve)
