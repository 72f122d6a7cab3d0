"""The pages of the rivalry panel: who outbid whom, what it cost, what clients earn, and how the run has gone.

A page knows how many lines it has, and draws one when it is asked for it: only those on the screen are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.message import Message

from des.mechanism import DEFAULT
from flmarket.analysis.results.measures import MARKET, MEASURES, gini, values
from flmarket.analysis.results.run_results import RunResult
from flmarket.analysis.what_if.decisive_rounds import decisive
from flmarket.analysis.what_if.reasons import cash
from flmarket.core.text import counted
from tui.state.compared_runs import result_at
from tui.state.offer_sums import OfferSums, Sums
from tui.state.watched_run import Session
from tui.style.colors import series_color, sign, tint
from tui.style.event_sentences import accuracy_column
from tui.style.formats import plain
from tui.style.messages import Seek, Selected
from tui.style.text_layout import fit

LABEL = 14  # width of the column of labels, in cells

CELL = 13  # width of a cell that says how often and by how much: ``1234x +12.34``

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
        """Return a measure's values by service, and the market's."""
        return values(self.result, next(it for it in MEASURES if it.name == measure))

    def label(self, service: int, width: int = LABEL) -> Text:
        """Return a service's sign and name."""
        return plain(fit(f"{sign(service)} {self.offers.names[service]}", width - 1) + " ", series_color(service))

    def faint(self) -> Style:
        """Return the style of what matters less."""
        return tint(self.app, "foreground", dim=True)


class Page:
    """One page at a rounds."""

    TITLE = ""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.count, self.step = 0, CELL  # its lines, and by how much it scrolls sideways
        self.label, self.cells = LABEL, 0  # the widths of the label, and of the part of a line that scrolls

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


class RivalsPage(Page):
    """The number of times that each service outbid each other one, and the mean margin."""

    TITLE = "who outbid whom"

    def __init__(self, rounds: Rounds) -> None:
        super().__init__(rounds)
        sums, self.count, world = rounds.sums, len(rounds.offers.names), rounds.session.world
        self.times, self.margin = sums.times.tolist(), sums.margin.tolist()
        self.known = world is not None and world.mechanisms == {DEFAULT}  # whether payments decided, in all rounds
        self.refused = {} if self.known else rounds.values("refused")
        self.cells = (self.count + 1) * CELL if self.known else rounds.width - LABEL

    def head(self) -> Line:
        if not self.known:
            words = "refused; by whom is not known under this mechanism"
            return plain(fit("service", LABEL), "bold"), plain(words, "bold")
        row = Text(end="", no_wrap=True)
        for m in range(self.count):
            row.append_text(self.rounds.label(m, CELL))
        row.append("all", "bold")
        return plain(fit("outbid →", LABEL), "bold"), row

    def line(self, index: int) -> Line:
        if not self.known:
            refused = round(self.refused[self.rounds.offers.names[index]])
            return self.rounds.label(index), plain(counted(refused, "offer"))
        row = Text(end="", no_wrap=True)
        for m in range(self.count):
            times = self.times[index][m]
            words = f"{times}× +{cash(round(self.margin[index][m] / times))}" if times else "·"
            row.append(fit(words, CELL - 1) + " ", "" if times else self.rounds.faint())
        total = sum(self.times[index])
        row.append(f"{total}×" if total else "·", "bold")
        return self.rounds.label(index), row

    def chosen(self, index: int) -> Message | None:
        return Selected(service=index)


class Money(Page):
    """Each service's spending, its price per point, and the money that it offered and did not spend."""

    TITLE = "money"
    WIDTHS = {"spent": 10, "a point": 8, "served": 7, "refused": 8, "not spent": 15}

    def __init__(self, rounds: Rounds) -> None:
        super().__init__(rounds)
        found = [rounds.values(name) for name in ("spent", "cost per point", "served", "refused", "wasted")]
        self.rows = [[value[key] for value in found] for key in (*rounds.offers.names, MARKET)]
        self.count, self.cells = len(self.rows), sum(self.WIDTHS.values())

    def head(self) -> Line:
        words = "".join(f"{name:>{width}}" for name, width in self.WIDTHS.items())
        return plain(fit("service", LABEL), "bold"), plain(words, "bold")

    def line(self, index: int) -> Line:
        whole = index == self.count - 1
        label = plain(fit("whole market", LABEL), "bold") if whole else self.rounds.label(index)
        spent, price, served, refused, wasted = self.rows[index]
        offered = spent + wasted
        share = f"{wasted:.2f}, {round(100 * wasted / offered)} %" if offered else "0.00"
        cells = (f"{spent:.2f}", _price(price), f"{served:.0f}", f"{refused:.0f}", share)
        words = "".join(f"{value:>{width}}" for value, width in zip(cells, self.WIDTHS.values(), strict=True))
        return label, plain(words, "bold" if whole else "")

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


class SummaryPage(Page):
    """The targets met, when and at what price, and the rounds that decided the run."""

    TITLE = "summary"
    WIDTHS = (14, 17, 10, 9)

    def __init__(self, rounds: Rounds) -> None:
        super().__init__(rounds)
        self.lines: list[tuple[Text, Text, int | None]] = []
        accuracies, spent, prices = map(rounds.values, ("final accuracy", "spent", "cost per point"))
        for m, (name, reached) in enumerate(zip(rounds.offers.names, rounds.result.exits, strict=True)):
            met = "not met" if reached is None else f"✔ round {reached}"
            words = self._columns((met, f"{accuracies[name]:.2f}", f"{spent[name]:.2f}", _price(prices[name])))
            style = "" if reached is None else tint(rounds.app, "success")
            self._add(rounds.label(m), plain(words, style), reached)
        found = decisive(rounds.result)
        if found:
            self._add(plain("round ", "bold"), plain("what decided (enter: go there)", "bold"))
        for event in found:
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
        return plain(fit("service", LABEL), "bold"), plain(words, "bold")

    def line(self, index: int) -> Line:
        label, words, _ = self.lines[index]
        return label, words

    def chosen(self, index: int) -> Message | None:
        round_ = self.lines[index][2]
        return None if round_ is None else Seek(round_)


def _price(value: float) -> str:
    """Return a price; none of what gets nothing right (see ``MEASURES``)."""
    return f"{value:.2f}" if value < NO_PRICE else "–"


PAGES: tuple[type[Page], ...] = (RivalsPage, Money, Earnings, SummaryPage)
