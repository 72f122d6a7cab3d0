"""The order book: all bids to a service, or all of a client's, with the offer, the outcome and the reason."""

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable, Static

from tui.watching.book import WORDS, Line, Verdict, cash
from tui.watching.view import WALK_WORDS, View
from tui.widgets.look import plain, same, series_color, sign, tint
from tui.widgets.messages import Selected
from tui.widgets.panel import Panel

COLUMNS = {
    "who": "client",
    "bid": "bid",
    "offer": "offer",
    "result": "result",
    "why": "why",
    "dqi": "DQI",
    "size": "D",
    "emd": "EMD",
}
ORDER = (
    Verdict.SERVED,
    Verdict.DROPPED,
    Verdict.OUTBID,
    Verdict.UNWANTED,
    Verdict.MISFIT,
    Verdict.OFFLINE,
    Verdict.LEFT,
)
COLORS = {Verdict.SERVED: "success", Verdict.OUTBID: "error", Verdict.DROPPED: "warning"}


class BookTable(DataTable[Text]):
    """The table of bids."""

    BINDINGS = [
        Binding("b", "screen.toggle_book", "Service/client"),
        # Not to scroll: the chosen line's reason is written out below the table.
        Binding("left", "screen.seek(-1)", "Previous round", show=False),
        Binding("right", "screen.seek(1)", "Next round", show=False),
    ]


class BookPanel(Panel):
    """Shows the book of the chosen service, or of the chosen client."""

    NUMBER = 4
    NAME = "Order book"
    SHORT = "Book"
    HELP = """Why each client trained for a service, or did not.

[b]bid[/b]  what the client asks for training on its data: per_sample · D − per_emd · EMD.
[b]offer[/b]  what the service offered to pay; blank if it made no offer.
[b]why[/b]  the reason: who outbid whom and by how much, or what did not fit the budget.
[b]DQI[/b]  the data quality indicator (eq. 6), all that a service sees of the data.
[b]D, EMD[/b]  the data size, and how uneven the labels are (0 is even). Services do not see these.

[b]b[/b]  switch between a service's book and a client's.
[b]↑ ↓[/b]  choose a line; a click on a column's title sorts by it."""

    def __init__(self) -> None:
        super().__init__()
        self.by_client = False
        self._subject: object = None
        self._sort = "result"
        self._lines: dict[str, Line] = {}
        self._shown: dict[tuple[str, str], Text] = {}
        self._view: View | None = None

    def compose(self) -> ComposeResult:
        """Lay out the table."""
        table = BookTable(id="book-table", cursor_type="row")
        for key, label in COLUMNS.items():
            table.add_column(label, key=key)
        yield table
        yield Static("", id="book-reason")

    @property
    def target(self) -> BookTable:
        """The table."""
        return self.query_one(BookTable)

    def toggle(self) -> None:
        """Switch between a service's book and a client's."""
        self.by_client = not self.by_client
        if self._view is not None:
            self.show(self._view)

    def point_to(self, service: int, client: int) -> None:
        """Put the cursor on the line of a client and a service."""
        key = str(service if self.by_client else client)
        if key in self.target.rows:
            self.target.move_cursor(row=self.target.get_row_index(key), animate=False)

    def show(self, view: View) -> None:
        """Show the book of the chosen service or client."""
        self._view = view
        if view.book is None or view.logged is None:
            return
        names = [row.service for row in view.logged.services]
        service, client = min(view.service, len(names) - 1), min(view.client, view.book.clients - 1)
        lines = view.book.of_client(client) if self.by_client else view.book.of_service(service)
        self._entitle(view, names[service], client)
        subject = (view.session, self.by_client)
        if subject != self._subject:
            self._reset(subject)
        self._lines = {str(line.service if self.by_client else line.client): line for line in lines}
        self._fill(names)
        self._explain()

    def _entitle(self, view: View, service: str, client: int) -> None:
        assert view.logged is not None  # noqa: S101 - called only if there is a round
        assert view.book is not None  # noqa: S101
        if self.by_client:
            used = len(view.book.holders.get(client, ()))
            self.entitle(f"client {client}, {used} of {view.book.conditions.cores} cores in use (b: a service's)")
        else:
            row = view.logged.services[view.service]
            self.entitle(f"{service}, offered {cash(row.offered)} of {cash(row.budget)} (b: a client's)")

    def _reset(self, subject: object) -> None:
        """Empty the table: its rows are about something else now."""
        self._subject, self._shown = subject, {}
        self.target.clear()
        self.target.columns[next(key for key in self.target.columns if key == "who")].label = Text(
            "service" if self.by_client else "client"
        )

    def _fill(self, names: list[str]) -> None:
        table, changed = self.target, False
        for key, line in self._lines.items():
            cells = self._cells(line, names)
            if key not in table.rows:
                table.add_row(*cells.values(), key=key)
                self._shown.update({(key, column): cell for column, cell in cells.items()})
                changed = True
                continue
            for column, cell in cells.items():
                if not same(self._shown.get((key, column)), cell):
                    self._shown[key, column] = cell
                    table.update_cell(key, column, cell, update_width=True)
                    changed = True
        if changed:
            self._arrange()

    def _arrange(self) -> None:
        """Sort the table; the cursor stays on its line."""
        table = self.target
        if not table.row_count:
            return
        chosen = table.coordinate_to_cell_key(table.cursor_coordinate).row_key
        ranks = {table.get_cell(key, "who").plain: self._rank(line) for key, line in self._lines.items()}
        table.sort("who", key=lambda cell: ranks[cell.plain])
        if table.has_focus:
            table.move_cursor(row=table.get_row_index(chosen), animate=False)

    def _cells(self, line: Line, names: list[str]) -> dict[str, Text]:
        color = tint(self.app, COLORS.get(line.verdict, "foreground"), dim=line.verdict not in COLORS)
        offer, result, why = line.payment, f"{line.verdict.value} {WORDS[line.verdict]}", line.reason
        if self._view is not None and self._view.event is not None:
            # In a walk through a round, the outcome is not known yet.
            mark = self._view.mark(line.service, line.client)
            result, color = f"{mark} {WALK_WORDS.get(mark, WORDS[line.verdict])}", tint(self.app, "foreground")
            offer = None if mark == Verdict.UNWANTED.value else line.payment
            why = line.reason if mark in {Verdict.OUTBID.value, Verdict.OFFLINE.value} else ""
        if self.by_client:
            who = plain(f"{sign(line.service)} {names[line.service]}", series_color(line.service))
        else:
            who = plain(f"{line.client:>6}")
        return {
            "who": who,
            "bid": plain(f"{cash(line.bid):>6}"),
            "offer": plain(f"{'' if offer is None else cash(offer):>6}", color),
            "result": plain(result, color),
            "why": plain(why, color),
            "dqi": plain(f"{line.dqi:.4f}"),
            "size": plain(f"{line.data_size:>5}"),
            "emd": plain(f"{line.emd:.3g}"),
        }

    def _rank(self, line: Line) -> tuple[float, ...]:
        """Return the key that a line is sorted by."""
        result = (ORDER.index(line.verdict), -(line.payment or 0), line.bid, line.client, line.service)
        first = {
            "who": line.service if self.by_client else line.client,
            "bid": line.bid,
            "offer": -(line.payment or 0),
            "dqi": -line.dqi,
            "size": -line.data_size,
            "emd": line.emd,
        }
        return (first[self._sort], *result) if self._sort in first else result

    def _explain(self) -> None:
        """Show the chosen line's reason in full; the column may be cut off."""
        table = self.target
        if not table.row_count:
            return
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        line = self._lines.get(str(key))
        if line is not None:
            who = self._view.logged.services[line.service].service if self._view and self._view.logged else ""
            walking = self._view is not None and self._view.event is not None
            reason = self.target.get_cell(str(key), "result").plain[2:] if walking else line.reason
            words = f"{'' if walking else line.verdict.value} client {line.client} for {who}: {reason}"
            self.query_one("#book-reason", Static).update(Text(words), layout=False)

    @on(DataTable.RowHighlighted)
    def _choose(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        line = self._lines.get(str(event.row_key.value))
        if line is not None:
            self._explain()
            if self.target.has_focus:
                chosen = Selected(service=line.service) if self.by_client else Selected(client=line.client)
                self.post_message(chosen)

    @on(DataTable.HeaderSelected)
    def _sort_by(self, event: DataTable.HeaderSelected) -> None:
        event.stop()
        self._sort = str(event.column_key.value)
        self._arrange()
