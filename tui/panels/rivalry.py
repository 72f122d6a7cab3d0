"""The rivalry of the services, over all rounds up to the one that is shown."""

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.timer import Timer

from tui.panels.panel import Panel
from tui.panels.rivalry_pages import PAGES, Page, RivalsPage, Rounds, SummaryPage
from tui.state.moment import Moment
from tui.state.offer_sums import OfferSums
from tui.widgets.line_view import LineView

PAUSE = 0.01  # seconds between two reads of a long run: keys come first


class RivalryLines(LineView):
    """The lines of the page that is shown."""

    BINDINGS = [
        Binding("v", "page_on(1)", "Next page", tooltip="Show the next page"),
        Binding("V", "page_on(-1)", "Previous page", show=False, key_display="V", tooltip="Show the page before"),
        Binding("left", "across(-1)", "Left", show=False, tooltip="Scroll sideways"),
        Binding("right", "across(1)", "Right", show=False, tooltip="Scroll sideways"),
        Binding(
            "enter",
            "choose",
            "Choose",
            key_display="enter",
            tooltip="Go to its round, or choose it",
        ),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.page: Page | None = None

    def show(self, page: Page) -> None:
        if type(page) is not type(self.page):
            self.cursor = 0
            self.scroll_to(0, 0, animate=False)
        self.page = page
        self.resize(page.count, page.label + page.cells)

    def head(self) -> tuple[Text, Text]:
        return self.page.head() if self.page else (Text(end=""), Text(end=""))

    def line(self, index: int) -> tuple[Text, Text]:
        return self.page.line(index) if self.page else (Text(end=""), Text(end=""))

    def action_page_on(self, steps: int) -> None:
        panel = self.parent
        if isinstance(panel, RivalryPanel):
            panel.turn(steps)

    def action_across(self, columns: int) -> None:
        if self.page:
            self.scroll_to(x=self.scroll_offset.x + columns * self.page.step, animate=False)
            self.refresh()

    def action_choose(self) -> None:
        if self.page and self.cursor < self.count:
            message, panel = self.page.chosen(self.cursor), self.parent
            if message is not None and isinstance(panel, RivalryPanel):
                panel.keep()
                self.post_message(message)

    def on_click(self, event: events.Click) -> None:
        index = self.index_at(event.y)
        if index is not None:
            self.cursor = index
            self.action_choose()


class RivalryPanel(Panel):
    """Shows who outbid whom, what it cost, what clients earn, and how the run has gone."""

    NUMBER = 7
    NAME = "Rivalry"
    INSTEAD = (5, 6)
    HELP = """What has happened in all rounds up to the one that is shown, on four pages; [b]v[/b] shows the next.

[b]who outbid whom[/b]  in the line of a service, how often it outbid each other one and by how much in the mean. Each
offer that was outbid counts once, against the lowest payment that held a core of the client: the one it had to beat.
An offer that lost a draw counts with +0. Under other mechanisms than the paper's, only how many were refused is known.
[b]money[/b]  what each service spent, the price of a percentage point of its accuracy, and what it offered and did not
spend: in refused offers (outbid or dropped), and above the price of served ones; with its share of all that it offered.
[b]earnings[/b]  of clients, the highest first, and the Gini coefficient: 0 if all earn the same, near 1 if one has all.
[b]summary[/b]  who reached what, when and at what price, and the decisive rounds: those in which a service left or an
intervention began, and the worst round of each service. It is the first page once the run is over."""

    def __init__(self) -> None:
        super().__init__()
        self._sums: OfferSums | None = None
        self._kind: type[Page] | None = None  # that the user has chosen
        self._drawn: object = None
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield RivalryLines(id="rivalry-lines")

    @property
    def target(self) -> RivalryLines:
        return self.query_one(RivalryLines)

    @property
    def kind(self) -> type[Page]:
        """The page: the one that the user has chosen, else the summary where the run is over, else the rivals."""
        if self._kind is not None or self.view is None:
            return self._kind or RivalsPage
        session = self.view.session
        return SummaryPage if session.over and self.view.round == len(session.history) else RivalsPage

    def turn(self, steps: int) -> None:
        """Show another page."""
        self._kind = PAGES[(PAGES.index(self.kind) + steps) % len(PAGES)]
        self.redraw()

    def keep(self) -> None:
        """Stay on the page that is shown, whatever round is."""
        self._kind = self.kind

    def draw(self, view: Moment) -> None:
        """Show the rounds up to a moment; in a walk through a round, those before it."""
        session = view.session
        assert session.scenario is not None  # noqa: S101 - known before the first round
        if self._sums is None:
            names = [row.service for row in view.logged.services]
            self._sums = OfferSums(session.history, names, session.scenario.clients.count)
        last = view.round if view.event is None else view.round - 1
        if self.kind is SummaryPage and session.over:
            last = len(session.history)  # it leads to the decisive rounds, and still lists them there
        if not self._sums.read(last):
            self.entitle(f"reading round {len(self._sums):,} of {last:,} …")
            if self._timer is None:
                self._timer = self.set_timer(PAUSE, self._continue)
            return
        drawn = (self.kind, last, session.state, self.target.size.width, self.app.theme)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        if not last:
            self.entitle("no round is over yet")
            self.target.resize(0, 0)
            return
        page = self.kind(Rounds(self.app, session, self._sums, last, self.target.room))
        self.entitle(f"{page.title} (v: next page)")
        self.target.show(page)

    def _continue(self) -> None:
        self._timer = None
        if self.display:
            self.redraw()
