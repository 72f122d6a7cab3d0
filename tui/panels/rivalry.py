"""The rivalry of the services on four pages: who outbid whom, what it cost, what clients earn, how the run has gone.

A page knows how many lines it has, and draws one when it is asked for it: only those on the screen are.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.timer import Timer

from flmarket.analysis.results.measures import MEASURES, gini
from flmarket.analysis.results.run_results import RunResult
from flmarket.analysis.what_if.decisive_rounds import decisive
from flmarket.analysis.what_if.reasons import BY_PAYMENTS, cash
from flmarket.core.text import counted
from learning.statistics.measure import MARKET
from tui.panels.panel import Panel, Seek, Selected
from tui.panels.price_bars import REFUSED, SERVED
from tui.state.compared_runs import result_at
from tui.state.moment import Moment
from tui.state.offer_sums import OfferSums, Sums
from tui.state.watched_run import Session
from tui.style.colors import series_color, sign, tint
from tui.style.formats import GAP, fit, plain
from tui.style.sentences import accuracy_column
from tui.widgets.line_view import LineView

LABELS = range(10, 25)  # widths of the column of labels, in cells

CELL, ALL = 13, 6  # the same of a cell that says how often and by how much, ``1234x +12.34``, and of their sum

BARS = range(5, 41)  # the same of a bar

NO_PRICE = 1e9  # from here on a price per point is of an accuracy of zero

Line = tuple[Text, Text]


@dataclass(frozen=True)
class Rounds:
    """The rounds that a page sums up."""

    app: App[object]
    session: Session
    offers: OfferSums
    last: int  # the last round that counts, from 1; the sums have read it
    width: int  # the cells of a line

    @property
    def sums(self) -> Sums:
        return self.offers.at(self.last)

    @cached_property
    def result(self) -> RunResult:
        return result_at(self.session, self.last)

    def values(self, measure: str) -> Mapping[str, float]:
        """Return a measure's values by service, and the market's; 0 for services that are still to come."""
        found = next(each for each in MEASURES if each.name == measure).values(self.result)
        return {**dict.fromkeys(self.offers.names, 0.0), **found}

    def labels(self, cells: int, *others: str) -> int:
        """Return the width of the labels beside so many cells: as much as the longest needs, if there is room."""
        longest = max(map(len, [*(f"1 {name}" for name in self.offers.names), *others]))
        return max(LABELS[0], min(LABELS[-1], longest + 1, self.width - cells))

    def label(self, service: int, width: int) -> Text:
        """Return a service's sign and name."""
        return plain(fit(f"{sign(service)} {self.offers.names[service]}", width - 1) + " ", series_color(service))

    def bar(self, beside: int, solid: float, broken: float = 0) -> str:
        """Return a bar for two parts of what is at most 1, if there is room for it next to so many cells."""
        room = min(BARS[-1], self.width - beside - GAP)
        end, turn = round(room * (solid + broken)), round(room * solid)
        return " " * GAP + SERVED * turn + REFUSED * (end - turn) if room >= BARS[0] else ""

    def faint(self) -> Style:
        """Return the style of what matters less."""
        return tint(self.app, "foreground", dim=True)


class Page:
    """One page at a rounds."""

    TITLE = ""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.count = 0  # its lines
        self.label = self.cells = 0  # the widths of the label, and of the part of a line that scrolls

    @property
    def title(self) -> str:
        return f"{self.TITLE}, rounds 1 to {self.rounds.last}"

    def head(self) -> Line:
        raise NotImplementedError

    def line(self, index: int) -> Line:
        raise NotImplementedError

    def chosen(self, index: int) -> Message | None:
        """Return what choosing a line means, if anything."""
        return None

    def place(self, view: Moment) -> int | None:
        """Return the line of what is chosen on the screen, if there is one."""
        return view.service


class RivalsPage(Page):
    """The number of times that each service outbid each other one, and the mean margin."""

    TITLE = "who outbid whom"

    def __init__(self, rounds: Rounds) -> None:
        super().__init__(rounds)
        sums, self.count, world = rounds.sums, len(rounds.offers.names), rounds.session.world
        self.times, self.margin = sums.times.tolist(), sums.margin.tolist()
        self.totals = [sum(times) for times in self.times]
        self.known = world is not None and world.mechanisms <= BY_PAYMENTS  # whether payments decided, in all rounds
        self.refused = {} if self.known else rounds.values("refused")
        self.cells = self.count * CELL + ALL
        self.label = rounds.labels(self.cells)
        self.cells = max(self.cells, rounds.width - self.label)

    def head(self) -> Line:
        if not self.known:
            words = "refused; by whom is not known under this mechanism"
            return plain(fit("service", self.label), "bold"), plain(words, "bold")
        row = Text(end="", no_wrap=True)
        for m in range(self.count):
            row.append_text(self.rounds.label(m, CELL))
        row.append("all", "bold")
        return plain(fit("outbid →", self.label), "bold"), row

    def line(self, index: int) -> Line:
        if not self.known:
            refused = round(self.refused[self.rounds.offers.names[index]])
            return self.rounds.label(index, self.label), plain(counted(refused, "offer"))
        row = Text(end="", no_wrap=True)
        for m in range(self.count):
            times = self.times[index][m]
            words = f"{times}× +{cash(round(self.margin[index][m] / times))}" if times else "·"
            row.append(fit(words, CELL - 1) + " ", "" if times else self.rounds.faint())
        total = self.totals[index]
        row.append(fit(f"{total}×" if total else "·", ALL), "bold")
        bar = self.rounds.bar(self.label + self.count * CELL + ALL, total / max(1, *self.totals))
        row.append(bar, series_color(index))
        return self.rounds.label(index, self.label), row

    def chosen(self, index: int) -> Message | None:
        return Selected(service=index)


class Money(Page):
    """Each service's spending, its price per point, and the money that it offered and did not spend."""

    TITLE = "money"
    WIDTHS = {"spent": 9, "a point": 8, "served": 7, "refused": 8, "not spent": 14}
    WHOLE = "market"

    def __init__(self, rounds: Rounds) -> None:
        super().__init__(rounds)
        measures = [rounds.values(name) for name in ("spent", "cost per point", "served", "refused", "wasted")]
        self.rows = [[value[key] for value in measures] for key in (*rounds.offers.names, MARKET)]
        self.count, self.columns = len(self.rows), sum(self.WIDTHS.values())
        self.most = max((spent + wasted for spent, *_, wasted in self.rows[:-1]), default=0) or 1
        self.label = rounds.labels(self.columns, self.WHOLE)
        self.cells = max(self.columns, rounds.width - self.label)

    def head(self) -> Line:
        words = "".join(f"{name:>{width}}" for name, width in self.WIDTHS.items())
        return plain(fit("service", self.label), "bold"), plain(words, "bold")

    def line(self, index: int) -> Line:
        whole = index == self.count - 1
        label = plain(fit(self.WHOLE, self.label), "bold") if whole else self.rounds.label(index, self.label)
        spent, price, served, refused, wasted = self.rows[index]
        offered = spent + wasted
        share = f"{wasted:.2f}, {round(100 * wasted / offered)} %" if offered else "0.00"
        cells = (f"{spent:.2f}", _price(price), f"{served:.0f}", f"{refused:.0f}", share)
        words = "".join(f"{value:>{width}}" for value, width in zip(cells, self.WIDTHS.values(), strict=True))
        line = plain(words, "bold" if whole else "")
        if not whole:
            bar = self.rounds.bar(self.label + self.columns, spent / self.most, wasted / self.most)
            line.append(bar, series_color(index))
        return label, line

    def chosen(self, index: int) -> Message | None:
        return Selected(service=index) if index < self.count - 1 else None


class Earnings(Page):
    """Each client's earnings, the highest first."""

    TITLE = "earnings"

    def __init__(self, rounds: Rounds) -> None:
        super().__init__(rounds)
        self.earned, self.jobs = rounds.sums.earned, rounds.sums.jobs
        self.order = np.lexsort((np.arange(len(self.earned)), -self.earned))
        self.count, self.label, self.cells = len(self.order), 7, rounds.width - 7

    @property
    def title(self) -> str:
        return f"{super().title}: Gini {gini(self.earned):.2f}"

    def head(self) -> Line:
        paid = f"{np.count_nonzero(self.earned):,} of {counted(len(self.earned), 'client')} paid"
        return plain("client ", "bold"), plain(f"{'earned':>9} {'jobs':>6}  {paid}", "bold")

    def line(self, index: int) -> Line:
        client = int(self.order[index])
        earned, top = int(self.earned[client]), int(self.earned[self.order[0]])
        length = round((self.cells - 18) * earned / top) if top else 0
        bar = Text(f"{cash(earned):>9} {int(self.jobs[client]):>6}  ", end="", no_wrap=True)
        bar.append("━" * max(length, int(earned > 0)), tint(self.rounds.app, "primary"))
        return plain(f"{client:>6} "), bar

    def chosen(self, index: int) -> Message | None:
        return Selected(client=int(self.order[index]))

    def place(self, view: Moment) -> int | None:
        return next(iter(np.flatnonzero(self.order == view.client).tolist()), None)


class SummaryPage(Page):
    """The targets met, when and at what price, and the rounds that decided the run."""

    TITLE = "summary"
    WIDTHS = (12, 16, 9, 8)

    def __init__(self, rounds: Rounds) -> None:
        super().__init__(rounds)
        self.lines: list[tuple[Text, Text, int | None]] = []
        accuracies, spent, prices = map(rounds.values, ("final accuracy", "spent", "cost per point"))
        self.named = rounds.labels(sum(self.WIDTHS))
        for m, (name, reached) in enumerate(zip(rounds.offers.names, rounds.result.exits, strict=True)):
            met = "not met" if reached is None else f"✔ round {reached}"
            words = self._columns((met, f"{accuracies[name]:.2f}", f"{spent[name]:.2f}", _price(prices[name])))
            style = "" if reached is None else tint(rounds.app, "success")
            self._add(rounds.label(m, self.named), plain(words, style), reached)
        decisions = decisive(rounds.result)
        if decisions:
            self._add(plain("round ", "bold"), plain("what decided (enter: go there)", "bold"))
        for event in decisions:
            intervention = event.service is None
            color = tint(rounds.app, "warning") if intervention else Style.parse(series_color(event.service or 0))
            self._add(plain(f"{event.round:>5} "), plain(event.words, color), event.round)
        self.count = len(self.lines)
        self.label = 0  # each line has a label of its own width
        self.cells = max((label.cell_len + words.cell_len for label, words, _ in self.lines), default=0)

    def _columns(self, values: Sequence[str]) -> str:
        return "".join(f"{value:>{width}}" for value, width in zip(values, self.WIDTHS, strict=True))

    def _add(self, label: Text, words: Text, round_: int | None = None) -> None:
        self.lines.append((label, words, round_))

    @property
    def title(self) -> str:
        session, last = self.rounds.session, self.rounds.last
        over = session.over and last == len(session.history)
        return f"summary: {session.state} after round {last}" if over else f"summary up to round {last}"

    def head(self) -> Line:
        accuracy = accuracy_column(self.rounds.session.scenario)
        words = self._columns(("target met", accuracy, "spent", "a point"))
        return plain(fit("service", self.named), "bold"), plain(words, "bold")

    def line(self, index: int) -> Line:
        label, words, _ = self.lines[index]
        return label, words

    def chosen(self, index: int) -> Message | None:
        round_ = self.lines[index][2]
        return None if round_ is None else Seek(round_)

    def place(self, view: Moment) -> int | None:
        return None  # a line leads to its round when the user wants it


def _price(value: float) -> str:
    """Return a price; none of what gets nothing right (see ``MEASURES``)."""
    return f"{value:.2f}" if value < NO_PRICE else "–"


PAGES: tuple[type[Page], ...] = (RivalsPage, Money, Earnings, SummaryPage)


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
            "Its round",
            key_display="enter",
            tooltip="Go to its round",
        ),
    ]

    pages: Sequence[Page] = ()  # the one that is chosen, and below it those that there is room for
    _places: Collection[int] = ()  # the lines of what is chosen on the screen

    def follow(self, view: Moment) -> None:
        """Show what is chosen on the screen, on each page; the cursor stays on its page."""
        places, begin = set[int](), 0
        for page in self.pages:
            if (place := page.place(view)) is not None:
                places.add(begin + place)
                if begin <= self.cursor < begin + page.count:
                    self.cursor = begin + place
            begin += page.count + 1
        if places != self._places:
            self._places = places
            self.refresh()

    def is_chosen(self, index: int) -> bool:
        return index in self._places

    def choose(self) -> None:
        if self.cursor < self.count and not isinstance(self._at(self.cursor)[0], SummaryPage):
            self.action_choose()

    def show(self, *pages: Page) -> None:
        if [*map(type, pages[:1])] != [*map(type, self.pages[:1])]:
            self.cursor = 0
            self.scroll_to(0, 0, animate=False)
        self.pages = pages
        count = sum(page.count for page in pages) + len(pages[1:])
        self.resize(count, max((page.label + page.cells for page in pages), default=0))

    def _at(self, index: int) -> tuple[Page, int]:
        """Return the page that has a line, and the line's place on it: -1 for its head."""
        for page in self.pages:
            if index < page.count:
                return page, index
            index -= page.count + 1
        raise IndexError(index)

    def head(self) -> tuple[Text, Text]:
        return self.pages[0].head() if self.pages else (Text(end=""), Text(end=""))

    def line(self, index: int) -> tuple[Text, Text]:
        page, place = self._at(index)
        return page.head() if place < 0 else page.line(place)

    def action_page_on(self, steps: int) -> None:
        panel = self.parent
        if isinstance(panel, RivalryPanel):
            panel.turn(steps)

    def action_across(self, columns: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + columns * CELL, animate=False)
        self.refresh()

    def action_choose(self) -> None:
        if self.cursor < self.count:
            (page, place), panel = self._at(self.cursor), self.parent
            message = None if place < 0 else page.chosen(place)
            if message is not None and isinstance(panel, RivalryPanel):
                panel.keep()
                self.post_message(message)

    def on_click(self, event: events.Click) -> None:
        super().on_click(event)
        if self.index_at(event.y) is not None:
            self.action_choose()


class RivalryPanel(Panel):
    """Shows who outbid whom, what it cost, what clients earn, and how the run has gone."""

    NUMBER = 7
    NAME = "Rivalry"
    INSTEAD = (5, 6)
    HELP = """What has happened in all rounds up to the one that is shown, on four pages; [b]v[/b] shows the next. Where
there is room, those that follow are below it.

[b]who outbid whom[/b]  in the line of a service, how often it outbid each other one and by how much in the mean. Each
offer that was outbid counts once, against the lowest payment that held a core of the client: the one it had to beat.
An offer that lost a draw counts with +0. Where work outlasts rounds, an offer counts that lost a core while it stood,
not one whose client was at work all the time. Under other mechanisms than the paper's, only how many were refused is
known.
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
        drawn = (self.kind, last, session.state, self.target.size, self.app.theme)
        if drawn == self._drawn:
            self.target.follow(view)
            return
        self._drawn = drawn
        if not last:
            self.entitle("no round is over yet")
            self.target.show()
            return
        rounds, first = Rounds(self.app, session, self._sums, last, self.target.room), PAGES.index(self.kind)
        pages = [self.kind(rounds)]
        for kind in (*PAGES[first + 1 :], *PAGES[:first]):
            if sum(page.count + 1 for page in pages) < self.target.size.height - 1:
                pages.append(kind(rounds))
        self.entitle(f"{pages[0].title} (v: next)")
        self.target.show(*pages)
        self.target.follow(view)

    def _continue(self) -> None:
        self._timer = None
        if self.display:
            self.redraw()
