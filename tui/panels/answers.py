"""Answers about a round: why a client serves whom it serves, and the best set that a service could have had.

The best sets are worked out off the screen, and only while they are shown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding

from flmarket.analysis.what_if.possible import MOST_CLIENTS, Possible
from flmarket.analysis.what_if.reasons import cash, span
from flmarket.core.text import counted
from tui.panels.order_book import BARS, BID, OFFER, PRICE, WHY, BookTable, GrowingText, winning
from tui.panels.panel import Panel, Selected
from tui.panels.price_bars import REFUSED, SERVED
from tui.state.bid_verdicts import RoundBook
from tui.state.moment import Moment
from tui.state.watched_run import Session
from tui.style.colors import series_color, tint
from tui.style.formats import fit, plain
from tui.widgets.line_view import LineView

KEPT = 256  # rounds and services whose best sets are kept

LABEL, NUMBER = 30, 9  # widths of columns, in cells

CLIENT = ("DQI", "bid", "paid", "best set")  # the titles of what is said of a client; the last is what it costs there

Key = tuple[Session, int, int]  # a run, a round and a service


@dataclass(frozen=True)
class Best:
    """The best set that a service could have had in a round, beside the one that it got."""

    service: int
    got: float  # the DQI of what it got
    set: Possible
    changed: dict[str, Possible]  # with one thing changed, by what that is

    @classmethod
    def of(cls, book: RoundBook, service: int) -> "Best":
        return cls(service, book.quality(service), book.best(service), book.under_changes(service))


class WhyTable(BookTable):
    """A client's book, with what each service would have had to pay."""

    DETAILS = (BID, PRICE, OFFER, BARS, WHY)
    by_client = True


class BestLines(LineView):
    """The lines on the sets that a service got and could have had, and on their clients."""

    _lines: Sequence[tuple[Text, int | None]] = ()  # each with its client

    _client: int | None = None  # that is chosen on the screen
    _title = ""

    def show(self, view: Moment, best: Best | None) -> None:
        self._title = "" if best is None else f"what {view.logged.services[best.service].service} could have had"
        self._lines = [] if best is None else [*self._sums(best), *self._clients(view.book, best)]
        self._client = view.client
        self.resize(len(self._lines), self.room)
        if not self.has_focus:
            self.cursor = next(filter(self.is_chosen, range(self.count)), self.cursor)

    def is_chosen(self, index: int) -> bool:
        return self._lines[index][1] == self._client is not None

    def choose(self) -> None:
        if self._lines and (client := self._lines[self.cursor][1]) is not None:
            self.post_message(Selected(client=client))

    def head(self) -> tuple[Text, Text]:
        words = f"{fit(self._title, LABEL)}{'DQI':>{NUMBER}}{'more':>{NUMBER}}" if self._lines else ""
        return Text(end=""), plain(words, "bold")

    def line(self, index: int) -> tuple[Text, Text]:
        return Text(end=""), self._lines[index][0]

    def _sums(self, best: Best) -> Iterator[tuple[Text, None]]:
        """Yield the DQI of what it got and of the best sets, with bars on one axis."""
        rows = {"what it got": best.got, "the best set": best.set.quality}
        rows |= {f"{what[0].lower()}{what[1:]}": possible.quality for what, possible in best.changed.items()}
        room = max(1, self.room - LABEL - 2 * NUMBER - 2)
        most = max(*rows.values(), 1e-9)
        for place, (what, quality) in enumerate(rows.items()):
            more = f"{quality - best.got:+.4f}" if place else f"{100 * best.got / max(best.set.quality, 1e-9):.0f} %"
            line = plain(f"{fit(what, LABEL)}{quality:>{NUMBER}.4f}{more:>{NUMBER}}  ")
            line.append((REFUSED if place else SERVED) * round(room * quality / most), series_color(best.service))
            yield line, None

    def _clients(self, book: RoundBook, best: Best) -> Iterator[tuple[Text, int | None]]:
        """Yield the clients that it got or could have had: those that it missed, those in both sets, and the rest."""
        m, served, clients = best.service, book.served(best.service), set(best.set.clients.tolist())
        room, most = self.room - (1 + len(CLIENT)) * NUMBER - 2, max(book.qualities.dqi[m].max(), 1e-9)
        yield plain(f"{'client':>{NUMBER}}" + "".join(f"{title:>{NUMBER}}" for title in CLIENT), "bold"), None
        for client in sorted({*served, *clients}, key=lambda client: (client in served, client not in clients, client)):
            sign, color = (" ", "foreground") if client in clients else ("−", "error")
            if client not in served:
                sign, color = "+", "success"
            cells = (
                f"{book.qualities.dqi[m, client]:.4f}",
                cash(int(book.qualities.bid[m, client])),
                cash(served[client].paid or 0) if client in served else "",
                winning(int(best.set.prices[client]), int(book.qualities.bid[m, client])) if client in clients else "",
            )
            line = f" {sign}{client:>{NUMBER - 2}}" + "".join(f"{cell:>{NUMBER}}" for cell in cells)
            bar = (SERVED if client in served else REFUSED) * round(room * book.qualities.dqi[m, client] / most)
            yield plain(f"{line}  {bar}", tint(self.app, color)), client


class AnswerPanel(Panel):
    """Answers one of two questions about the service and the client that are chosen."""

    BINDINGS = [Binding("v", "turn", "Next answer", tooltip="Why this winner, or the best set")]
    NUMBER = 8
    NAME = "Answers"
    SHORT = "Why"
    INSTEAD = (5, 6)
    HELP = """Two questions about the round that is shown; [b]v[/b] goes from one to the other.

[b]W[/b]  why the chosen client serves whom it serves: its order book, with what would have won it for each service.
[b]wins at[/b]  the payment that wins the client for sure, the others' offers being what they were.
[b]B[/b]  the best set that the chosen service could have bought within its budget, the others' offers being what they
were, and what it could have bought with one thing changed. [b]more[/b] is how much more DQI that is than what it got,
[b]%[/b] how much of the best set's DQI it got, and bars are DQI. In a large terminal, it stands below the answer to
[b]W[/b], too.
[b]+ −[/b]  clients that it missed, and clients that it had and that are not in the best set.

Sets are measured by the sum of their DQI (one below zero counts as zero), which is not accuracy. Both are worked out
for `pay-as-offered` alone. [b]i[/b] plays on with something changed."""

    def __init__(self) -> None:
        super().__init__()
        self.best = False  # whether it shows the best set, or why
        self._asked = False  # whether the user wants to know
        self._known: dict[Key, Best] = {}
        self._wanted: tuple[Key, RoundBook] | None = None
        self._working = False

    def compose(self) -> ComposeResult:
        yield GrowingText()
        yield WhyTable()
        yield BestLines()

    @property
    def target(self) -> LineView:
        return self.query_one(BestLines) if self.best else self.query_one(WhyTable)

    def ask(self, *, best: bool) -> None:
        """Show the answer to one of the questions."""
        self.best, self._asked = best, True
        focused = self.has_focus_within
        self.set_class(best, "-best")
        if focused:
            self.target.focus()
        self.call_after_refresh(self.redraw)  # the bars are as long as there is room, which is known after the layout

    def action_turn(self) -> None:
        self.ask(best=not self.best)

    def draw(self, view: Moment) -> None:
        self._wanted, lines = None, self.query_one(BestLines)
        if not self.best:
            self._show_why(view)
        if self.best or (self._asked and lines.display):  # in a large terminal it is below the client's book
            best, words = self._best(view, min(view.service, len(view.logged.services) - 1))
            lines.show(view, best)
            if self.best:
                self.entitle(f"the best set of {view.logged.services[view.service].service} (W: why this winner)")
                self.query_one(GrowingText).show(words)

    def _show_why(self, view: Moment) -> None:
        client, table = view.asked, self.query_one(WhyTable)
        table.show(view)
        self.entitle(f"why client {client} serves whom it serves (B: best set)")
        bid = table.bid(table.cursor)
        words = [] if view.event is not None else [winner(view.book, client)]
        if bid is not None:
            words.append(table.told(bid))
            if price := table.cell(table.cursor, PRICE.key).plain:
                name = view.logged.services[bid.service].service
                words.append(f"{price} wins client {client} for {name} for sure.")
        self.query_one(GrowingText).show(" ".join(words))

    def _best(self, view: Moment, service: int) -> tuple[Best | None, str]:
        """Return the best set if it is known, and what is to be said of it; if it is not, work it out."""
        row, book = view.logged.services[service], view.book
        key, best = (view.session, view.round, service), None
        if view.absence(service):
            words = f"{view.absence(service)}."
        elif not book.has_best(service):
            where = f"pay-as-offered and all of the work, with up to {MOST_CLIENTS} clients"
            words = f"The best set is worked out for {where}, only."
            if book.value_sets[service]:
                words = f"{row.service} values clients as a set: flmarket explain says which was the best."
        elif view.event is not None:
            words = "The best set is shown once the round is over."
        elif key not in self._known:
            words = "The best set is being worked out …"
            self._wanted = key, book
            self._work()
        else:
            best = self._known[key]
            words = in_words(book, best)
        return best, words

    def _work(self) -> None:
        """Work out what is wanted; meanwhile only the newest that is wanted waits."""
        if self._wanted is not None and not self._working:
            self._working = True
            self.run_worker(partial(self._work_out, *self._wanted), thread=True, group="best", exit_on_error=False)

    def _work_out(self, key: Key, book: RoundBook) -> None:
        best = None
        try:
            best = Best.of(book, key[2])
        finally:  # one that cannot be worked out must not keep the next ones waiting
            self.app.call_from_thread(self._found, key, best)

    def _found(self, key: Key, best: Best | None) -> None:
        self._working = False
        if best is not None:
            self._known[key] = best
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        if self.is_mounted and self.display:
            self.redraw()


def winner(book: RoundBook, client: int) -> str:
    """Return in a sentence whom a client serves, and by which rule."""
    if client in book.conditions.offline:
        return f"Client {client} is offline in this round."
    offers = [offer for _, offer in book.offers(client)]
    if book.logged.goes_on and (jobs := sorted(book.holders.get(client, ()), key=lambda job: job.start)):
        names = "; ".join(f"{job.service} ({cash(job.payment)}), {span(job)}" for job in jobs)
        return f"Client {client} has {counted(book.cores(client), 'core')}; at work for {names}."
    if not offers:
        return f"No service made client {client} an offer."
    holding = [f"{offer.service} ({cash(offer.payment)})" for offer in book.holders.get(client, ())]
    names = " and ".join(filter(None, [", ".join(holding[:-1]), *holding[-1:]])) or "no one"
    cores = counted(book.cores(client), "core")
    had = f"Client {client} has {cores} and {counted(len(offers), 'offer')}"
    if not book.paper:
        return f"{had}; the mechanism {book.mechanism} decides for {names}."
    if len(offers) <= book.cores(client):
        return f"{had}, so it serves {names}."
    return f"{had}; the highest payment{'s win' if len(holding) > 1 else ' wins'}: {names}."


def in_words(book: RoundBook, best: Best) -> str:
    """Return in a sentence or two what a service got, and what it could have had."""
    row, served = book.logged.services[best.service], book.served(best.service)
    got = f"{row.service} got {counted(len(served), 'client')} with a DQI of {best.got:.4f} for {cash(row.spent)}."
    more = f"{best.set.quality - best.got:+.4f}"
    could = f"{counted(len(best.set.clients), 'client')} with a DQI of {best.set.quality:.4f} ({more})"
    money = f"{cash(best.set.cost)} of {cash(row.budget)}"
    return f"{got} The best that it could have had within its budget: {could} for {money}."
