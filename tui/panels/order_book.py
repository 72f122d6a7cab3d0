"""The order book: all bids to a service, or all of a client's, with the offer and the reason for what happened."""

from collections.abc import Sequence
from dataclasses import replace

from rich.text import Span, Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from des.money import Micro
from flmarket.analysis.what_if.reasons import cash
from tui.panels.panel import Panel, Selected
from tui.panels.price_bars import LEGEND, PriceAxis, Rival
from tui.state.bid_verdicts import WORDS, BidVerdict, Line
from tui.state.moment import WALK_WORDS, Moment
from tui.style.colors import series_color, sign, tint
from tui.style.formats import TableColumn, plain, wrapped
from tui.widgets.table_view import TableView

BID, OFFER = TableColumn("bid", "bid", right=True), TableColumn("offer", "offer", right=True)
PRICE = TableColumn("price", "wins at", right=True)
BARS, WHY = TableColumn("result", "", least=20, grows=True), TableColumn("why", "why", leaves=1)
QUALITY = (
    TableColumn("dqi", "DQI", right=True, leaves=5),
    TableColumn("size", "D", right=True, leaves=4),
    TableColumn("emd", "EMD", right=True, leaves=3),
)
COLORS = {
    BidVerdict.SERVED: "success",
    BidVerdict.OUTBID: "error",
    BidVerdict.DROPPED: "warning",
    BidVerdict.DECLINED: "warning",
}


CAME = {
    BidVerdict.SERVED: "{who} got client {client}",
    BidVerdict.DROPPED: "{who} did not get client {client}",
    BidVerdict.DECLINED: "{who} did not get client {client}",
    BidVerdict.OUTBID: "{who} did not get client {client}",
    BidVerdict.AT_WORK: "{who} made client {client} no offer",
    BidVerdict.UNWANTED: "{who} made client {client} no offer",
    BidVerdict.MISFIT: "{who} made client {client} no offer",
    BidVerdict.OFFLINE: "{who} made client {client} no offer",
    BidVerdict.LEFT: "{who} made client {client} no offer",
}
"""The outcome of a bid, before the reason."""

SIGN = 2  # cells before a bar, for the sign of what came of the bid


class BookTable(TableView):
    """The table of bids, which are made when they come into view."""

    # After the column that says whose bid it is.
    DETAILS: tuple[TableColumn, ...] = (BID, replace(PRICE, leaves=2), OFFER, BARS, *QUALITY, WHY)

    by_client = offered = False
    sort = "result"

    _view: Moment | None = None
    _listed: Sequence[int] = ()  # the clients, or the services, by place
    _subject: object = None
    _axis = PriceAxis(0, 1)

    def show(self, view: Moment) -> None:
        """Show the book of the chosen service or client, with the cursor on the line of what is chosen."""
        self._view = view
        service, client = self._chosen
        # In a walk through a round, the order must not give away what has not happened yet.
        by = "who" if self.sort == "result" and view.event is not None else self.sort
        of, place = (view.book.services_of, client) if self.by_client else (view.book.clients_of, service)
        self._listed = of(place, by, offered=self.offered)
        subject = (view.session, self.by_client)
        if subject != self._subject:
            self._subject = subject
            self.forget_widths()
        who = TableColumn("who", "service", least=12) if self.by_client else TableColumn("who", "client", right=True)
        self.columns = (who, *self.DETAILS)
        self.rows(len(self._listed))
        most = view.book.dearest(client=client) if self.by_client else view.book.dearest(service=service)
        self._axis = PriceAxis(most, max(1, self._widths.get(BARS.key, 0) - SIGN))
        if self._selected in self._listed:
            self.cursor = self._listed.index(self._selected)

    @property
    def _selected(self) -> int | None:
        """The client, or in a client's book the service, that is chosen on the screen."""
        return None if self._view is None else self._view.service if self.by_client else self._view.client

    def is_chosen(self, index: int) -> bool:
        return self._listed[index] == self._selected

    def choose(self) -> None:
        if (bid := self.bid(self.cursor)) is not None:
            self.post_message(Selected(service=bid.service) if self.by_client else Selected(client=bid.client))

    @property
    def _chosen(self) -> tuple[int, int]:
        view = self._view
        assert view is not None  # noqa: S101 - asked only where there is a round
        return min(view.service, len(view.logged.services) - 1), view.asked

    def bid(self, index: int) -> Line | None:
        """Return the bid in a row, if there is one."""
        view = self._view
        if view is None or not 0 <= index < len(self._listed):
            return None
        service, client = self._chosen
        place = self._listed[index]
        return view.book.line(place, client) if self.by_client else view.book.line(service, place)

    @property
    def told_of(self) -> Line | None:
        """The bid that sentences are about: the chosen one, also where it is not listed, else that at the cursor."""
        view = self._view
        chosen = view is not None and view.begun and view.client is not None
        return view.book.line(*self._chosen) if chosen and view is not None else self.bid(self.cursor)

    def cells(self, index: int) -> Sequence[Text]:
        """Return a row, of the bars the sign alone: they are drawn for the width that they have (``line``)."""
        view, bid = self._view, self.bid(index)
        assert view is not None  # noqa: S101 - a row is there
        assert bid is not None  # noqa: S101
        color = tint(self.app, COLORS.get(bid.verdict, "foreground"), dim=bid.verdict not in COLORS)
        offer, mark, why = bid.payment, bid.verdict.value, bid.reason
        if view.event is not None:
            (mark, why), color = self.walked(bid), tint(self.app, "foreground")
            offer = bid.payment if view.offered(bid.service) else None
        if self.by_client:
            name = view.logged.services[bid.service].service
            who = plain(f"{sign(bid.service)} {name}", series_color(bid.service))
        else:
            who = plain(f"{bid.client}")
        cells = {
            "who": who,
            "bid": plain(cash(bid.bid)),
            "offer": plain("" if offer is None else cash(offer), color),
            "result": plain(mark, color),
            "dqi": plain(f"{bid.dqi:.4f}"),
            "size": plain(f"{bid.data_size}"),
            "emd": plain(f"{bid.emd:.3g}"),
            "why": plain(why, color),
        }
        if any(column.key == PRICE.key for column in self.columns):
            known = view.event is None and bid.verdict not in {BidVerdict.LEFT, BidVerdict.OFFLINE}
            price = view.book.price(bid.service, bid.client) if known else None
            cells[PRICE.key] = plain("" if price is None else winning(price, bid.bid))
        return [cells[column.key] for column in self.columns]

    def head(self) -> tuple[Text, Text]:
        titles = [
            plain(" " * SIGN + self._axis.ticks() if column is BARS else column.label, "bold")
            for column in self.columns
        ]
        return Text(end=""), self._joined(titles)

    def line(self, index: int) -> tuple[Text, Text]:
        cells = list(self._row(index))
        place = self.columns.index(BARS)
        mark, bar = cells[place], self._prices(index)
        spans = [Span(0, len(mark), mark.style), *(span.move(SIGN) for span in bar.spans)]
        cells[place] = Text(f"{mark.plain} {bar.plain}", end="", spans=spans)
        return Text(end=""), self._joined(cells)

    def _prices(self, index: int) -> Text:
        """Return the bar of a row; in a walk through the round, of what is known by then."""
        view, bid = self._view, self.bid(index)
        assert view is not None  # noqa: S101 - a row is there
        assert bid is not None  # noqa: S101
        done = view.event is None or view.allocated
        rivals = [
            Rival(place, offer.payment, served=done and offer.core is not None)
            for place, offer in view.book.rivals(bid.service, bid.client)
            if view.offered(place)
        ]
        return self._axis.bar(
            bid.bid,
            bid.payment if view.offered(bid.service) else None,
            bid.service,
            rivals,
            served=done and bid.verdict is BidVerdict.SERVED,
            asked=tint(self.app, "foreground", dim=bid.payment is None),
        )

    def told(self, bid: Line) -> str:
        """Return a sentence about what came of a bid, or in a walk has come by then."""
        view = self._view
        assert view is not None  # noqa: S101 - a row is there
        who = view.logged.services[bid.service].service
        if view.event is None:
            return f"{CAME[bid.verdict].format(who=who, client=bid.client)}: {bid.reason}."
        return f"Client {bid.client} and {who} so far: {self.walked(bid)[1]}."

    def walked(self, bid: Line) -> tuple[str, str]:
        """Return what has become of a bid by this moment of a walk through the round: the sign, and words."""
        mark = self._view.mark(bid.service, bid.client) if self._view else ""
        known = mark in {it.value for it in (BidVerdict.OUTBID, BidVerdict.DECLINED, BidVerdict.OFFLINE)}
        return mark, bid.reason if known else WALK_WORDS.get(mark, WORDS[bid.verdict])


def winning(price: Micro, bid: Micro) -> str:
    """Write what wins a client; where that is just more than a rival offers, with as many decimals as it takes."""
    return cash(price, price - 1 if price > bid else None)


class BookPanel(Panel):
    """Shows the book of the chosen service, or of the chosen client."""

    BINDINGS = [
        Binding("b", "screen.toggle_book", "Service/client", tooltip="The book of the service, or that of the client"),
        Binding("w", "offered", "Only offers", tooltip="List only bids with an offer, or all"),
        Binding("W", "screen.ask(False)", "Why", tooltip="Why the client serves whom it serves"),
        Binding("B", "screen.ask(True)", "Best set", tooltip="The best set that the service could have had"),
    ]
    NUMBER = 4
    NAME = "Order book"
    SHORT = "Book"
    HELP = """Why each client trained for a service, or did not. What was served comes first, then what was outbid.

[b]bid[/b]  what the client asks for its work: its cost (docs/costs.md), or what its behaviour makes of it.
[b]offer[/b]  what the service offered to pay; blank if it made no offer.
[b]━ ╌[/b]  the offer on the axis of money: solid where it was served, broken where it was not; [b]│[/b] is the bid, to
which [b]┈[/b] leads where there is no offer. The signs of other services stand at what they offered the client; those
that are underlined got it. Prices that share a cell stand in their order, and [b]=[/b] joins those that are equal.
[b]wins at[/b]  the payment that wins the client for sure, the others' offers being what they were.
[b]● × ! · ∘ z[/b]  served, outbid, dropped, not chosen, does not fit the remaining budget, offline; [b]▶[/b]  at work
for it since an earlier round.
[b]why[/b]  the reason: who outbid whom and by how much, or what did not fit the budget.
[b]DQI[/b]  the data quality indicator (eq. 6), all that a service sees of the data: exactly, or as market.dqi says.
[b]D, EMD[/b]  the data size, and how uneven the labels are (0 is even). Services do not see these.

A click on a column's title sorts by it. [b]W[/b] asks why the client serves whom it serves, [b]B[/b] for the best set
that the service could have had."""

    def compose(self) -> ComposeResult:
        yield BookTable(id="book-table")
        yield GrowingText(id="book-reason")

    def on_mount(self) -> None:
        super().on_mount()
        self.border_subtitle = LEGEND

    @property
    def target(self) -> BookTable:
        return self.query_one(BookTable)

    @property
    def by_client(self) -> bool:
        return self.target.by_client

    def toggle(self) -> None:
        """Switch between a service's book and a client's."""
        self.target.by_client = not self.target.by_client
        self.redraw()

    def action_offered(self) -> None:
        self.target.offered = not self.target.offered
        self.redraw()

    def draw(self, view: Moment) -> None:
        self.target.show(view)
        self._entitle(view)
        self._explain()

    def _entitle(self, view: Moment) -> None:
        only = ", only offers" * self.target.offered
        if self.by_client:
            client = view.asked
            used = view.cores_in_use(client)
            self.entitle(f"client {client}, {used} of {view.book.cores(client)} cores in use{only}")
        else:
            place = min(view.service, len(view.logged.services) - 1)
            row = view.logged.services[place]
            left = max(0, view.book.remaining(place)) if view.offered(place) else row.budget
            money = f"{cash(left)} of {cash(row.budget)} left"
            gone = view.absence(place).partition(",")[0]  # the line below says why
            self.entitle(gone or f"{row.service}{only}, {money}")

    def _explain(self) -> None:
        bid = self.target.told_of
        if self.view is None:
            words = ""
        elif bid is None:
            words = "" if self.by_client else self.view.absence(self.view.service)
        else:
            data = f"Its data: D {bid.data_size}, EMD {bid.emd:.3g}, DQI {bid.dqi:.4f}."
            words = f"{self.view.mark(bid.service, bid.client)} {self.target.told(bid)} {data}".lstrip()
        self.query_one(GrowingText).show(words)

    @on(TableView.Moved)
    def _follow(self, message: TableView.Moved) -> None:
        message.stop()
        self._explain()

    @on(TableView.TitleClicked)
    def _sort_by(self, message: TableView.TitleClicked) -> None:
        message.stop()
        self.target.sort = message.key
        self.redraw()


MOST = 6  # lines


class GrowingText(Static):
    """Sentences above or below a table. Its lines become more as they are needed, and fewer with the next resize.

    They would lay out the whole screen again if they became fewer from round to round.
    """

    DEFAULT_CSS = "GrowingText { height: 2; padding: 0 1; }"

    _words, _wide = "", 0

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
