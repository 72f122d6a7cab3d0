"""The market at a glance: clients in rows, services in columns, and who was served on which core."""

from functools import cached_property
from itertools import accumulate
from math import ceil

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.reactive import reactive

from des.log_records import Kind
from flmarket.analysis.what_if.reasons import cash
from flmarket.core.text import counted
from tui.panels.order_book import BookPanel
from tui.panels.panel import Panel, PanelWanted, Selected
from tui.state.bid_verdicts import ORDER, BidVerdict
from tui.state.moment import WANTED, Moment
from tui.style.colors import series_color, sign, tint
from tui.style.formats import fit, plain
from tui.widgets.line_view import GUTTER, LineView

LABEL = 14  # width of the label column in cells: `` 12 2/2 ■■``

SHADES = "·░▒▓█"
"""The share of a group's clients that a service got: none, up to a quarter, ... , more than three quarters."""

COLORS = {
    BidVerdict.SERVED.value: "success",
    BidVerdict.OUTBID.value: "error",
    BidVerdict.DROPPED.value: "warning",
    BidVerdict.DECLINED.value: "warning",
    WANTED: "warning",
}

ASKED = {BidVerdict.UNWANTED.value, BidVerdict.MISFIT.value}
"""The signs next to which there is room for what the client asks."""


class Heat:
    """Groups of clients by services, at a moment of a run."""

    def __init__(self, view: Moment, rows: int) -> None:
        self._view, self._book = view, view.book
        self.size = max(2, ceil(self._book.clients / max(1, rows)))  # clients in a group; the last may have fewer
        self.count = ceil(self._book.clients / self.size)  # groups

    def clients(self, group: int) -> range:
        return range(group * self.size, min(self._book.clients, (group + 1) * self.size))

    @cached_property
    def served(self) -> NDArray[np.int64]:
        """The number of clients of each group that each service got, [groups, M]; in a walk, of those paid by then."""
        return self._counted(BidVerdict.SERVED)

    @cached_property
    def outbid(self) -> NDArray[np.int64]:
        """The number of clients of each group that each service was outbid for, [groups, M]; in a walk, once known."""
        return self._counted(BidVerdict.OUTBID)

    def _counted(self, verdict: BidVerdict) -> NDArray[np.int64]:
        names = [row.service for row in self._view.logged.services]
        matches = np.zeros((self.count * self.size, len(names)), np.int64)
        for m, name in enumerate(names):
            if self._view.event is None or (verdict is BidVerdict.OUTBID and self._view.allocated):
                matches[: self._book.clients, m] = self._book.verdicts[m] == ORDER.index(verdict)
            elif verdict is BidVerdict.SERVED:
                paid = [
                    client
                    for (service, client), kind in self._view.reached.items()
                    if service == name and kind is Kind.PAY
                ]
                matches[paid, m] = 1
        grouped: NDArray[np.int64] = matches.reshape(self.count, self.size, len(names)).sum(axis=1)
        return grouped


class ClientGrid(LineView):
    """The grid, with a cursor on one cell."""

    BINDINGS = [
        Binding("left", "across(-1)", "Left", show=False, tooltip="Choose another service"),
        Binding("right", "across(1)", "Right", show=False, tooltip="Choose another service"),
        Binding("enter", "choose", "Why?", key_display="enter", tooltip="Why? Its line in the order book"),
        Binding("h", "overview", "Overview", tooltip="Show groups of clients, so that all fit, or each client"),
    ]

    column: reactive[int] = reactive(0)

    overview = False

    _view: Moment | None = None
    _heat: Heat | None = None
    _cell = 5  # its width

    def show(self, view: Moment) -> None:
        self._view = view
        services = len(view.logged.services)
        room = max(1, self.room - LABEL) // services
        self._cell = max(4, min(12, room))
        self._heat = Heat(view, self.size.height - 1) if self.overview else None
        count = view.book.clients if self._heat is None else self._heat.count
        self.resize(count, LABEL + services * self._cell)
        self.column = min(view.service, services - 1)
        if view.client is not None and self._heat is None:
            self.cursor = view.client

    def is_chosen(self, index: int) -> bool:
        view, client = self._view, None if self._view is None else self._view.client
        if view is None or client is None:
            return False
        return index == client if self._heat is None else client in self._heat.clients(index)

    def choose(self) -> None:
        if self._heat is None:
            self.post_message(Selected(client=self.cursor))

    def head(self) -> tuple[Text, Text]:
        row = Text(end="")
        if self._view is not None:
            for m, service in enumerate(self._view.logged.services):
                name = f"{sign(m)} {service.service}" if self._cell > 5 else f" {sign(m)}"
                row.append(fit(name, self._cell - 1) + " ", f"bold {series_color(m)}")
        return plain(fit("client cores" if self._heat is None else "clients", LABEL), "bold"), row

    def line(self, index: int) -> tuple[Text, Text]:
        """Return a client: its cores in use, then a sign for each service; in the overview, a group of clients."""
        if self._heat is not None:
            return self._group(self._heat, index)
        view = self._view
        assert view is not None  # noqa: S101 - a line is there
        cores = view.book.cores(index)
        marks = [view.mark(m, index) for m in range(len(view.logged.services))]
        used = sum(mark not in (*"×·∘z? ",) for mark in marks)  # also where the update did not arrive
        used = view.cores_in_use(index) if view.logged.goes_on else used
        offline = index in view.book.conditions.offline
        use = "offline" if offline else f"{used}/{cores} " + ("■" * used + "□" * (cores - used) if cores <= 3 else "")
        label = Text(f"{index:>5} ", end="")
        label.append(fit(use, LABEL - 6), tint(self.app, "success" if used else "foreground", dim=not used))
        cells = Text(end="")
        for m, mark in enumerate(marks):
            here = m == self.column and (self.is_chosen(index) or (self.has_focus and index == self.cursor))
            words = f" {mark}{self._detail(view, m, index, mark)}"
            color = COLORS.get(mark)
            style = tint(self.app, color or "foreground", bold=color == "success", dim=color is None)
            cells.append(fit(words, self._cell), style)
            if here:
                cells.stylize("underline bold", m * self._cell, (m + 1) * self._cell)
        return label, cells

    def _group(self, heat: Heat, index: int) -> tuple[Text, Text]:
        """Return a group of clients: for each service, how many it got, and for how many it was outbid."""
        clients = heat.clients(index)
        label = plain(fit(f"{clients[0]:>5}–{clients[-1]}", LABEL), tint(self.app, "foreground"))
        cells = Text(end="")
        for m, (served, outbid) in enumerate(zip(heat.served[index], heat.outbid[index], strict=True)):
            shade = SHADES[-(-4 * int(served) // len(clients))]
            words = f" {shade}{served or ''}" + (f" ×{outbid}" if outbid and self._cell >= 9 else "")
            style = tint(self.app, "success" if served else "foreground", dim=not served)
            if m == self.column and (self.is_chosen(index) or (self.has_focus and index == self.cursor)):
                style += Style(bold=True, underline=True)
            cells.append(fit(words, self._cell), style)
        return label, cells

    def _detail(self, view: Moment, m: int, client: int, mark: str) -> str:
        """Return the text next to the sign: the core and the price paid, the payment that was not, or else the bid."""
        offer = view.book.offer(m, client)
        if self._cell >= 9 and mark in ASKED:
            return f"  {cash(int(view.book.qualities.bid[m, client]))}"
        if offer is None or (view.event is not None and not view.allocated):
            return ""
        core = "" if offer.core is None else str(offer.core)
        if self._cell >= 9:
            return f"{core:<1} {cash(offer.payment if offer.paid is None else offer.paid)}"
        return core

    def watch_column(self) -> None:
        left = self.column * self._cell
        room = max(self._cell, self.room - LABEL)
        if not self.scroll_offset.x <= left <= self.scroll_offset.x + room - self._cell:
            self.scroll_to(x=left if left < self.scroll_offset.x else left - room + self._cell, animate=False)

    def action_across(self, columns: int) -> None:
        services = len(self._view.logged.services) if self._view else 1
        self.column = max(0, min(services - 1, self.column + columns))
        self.post_message(Selected(service=self.column))

    def action_overview(self) -> None:
        """Show groups of clients, so that all fit on the screen, or each client again."""
        first = self._heat.clients(self.cursor)[0] if self._heat is not None else 0
        self.overview = not self.overview
        if self._view is not None:
            self.show(self._view)
        self.cursor = first // self._heat.size if self._heat is not None else first

    def action_choose(self) -> None:
        """Go to the order book, to the line of the cell under the cursor; in the overview, to the group's clients.

        A cell without an offer gives way to one of the same client with a refused offer.
        """
        if self._heat is not None:
            self.action_overview()
            return
        cell, view = (self.column, self.cursor), self._view
        if view is not None and view.book.offer(*cell) is None:
            cell = view.refusal(self.cursor) or cell
        self.post_message(Selected(*cell))
        self.post_message(PanelWanted(BookPanel.NUMBER))

    def on_click(self, event: events.Click) -> None:
        super().on_click(event)
        x = event.x - GUTTER - LABEL
        if self.index_at(event.y) is not None and x >= 0:
            self.action_across((x + self.scroll_offset.x) // self._cell - self.column)


class ClientsPanel(Panel):
    """Shows which clients each service got."""

    NUMBER = 3
    NAME = "Clients"
    HELP = """Which service got which client in this round. Rows are clients, columns are services.

[b]●0 4.75[/b]  served, on core 0, for 4.75
[b]× 4.60[/b]   outbid: K services offered this client more
[b]![/b]   dropped: awarded a core, but the update did not arrive in time
[b]· 4.60[/b]   not chosen; it asks for 4.60      [b]∘[/b]  does not fit the service's remaining budget
[b]z[/b]   offline         blank  the service has left
[b]▶[/b]   at work for the service since an earlier round

[b]2/2[/b]  the cores in use, of those that the client has

In a walk through events: [b]?[/b] wanted, [b]◇[/b] awarded, [b]▶[/b] training, [b]■[/b] trained, [b]↑[/b] uploaded,
[b]●[/b] paid.

In the overview, [b]▓12 ×3[/b] means that the service got 12 clients of the group, and was outbid for 3."""

    def compose(self) -> ComposeResult:
        yield ClientGrid(id="client-grid")

    @property
    def target(self) -> ClientGrid:
        return self.query_one(ClientGrid)

    def draw(self, view: Moment) -> None:
        self.target.show(view)
        now = view.book.conditions
        most = "" if now.cores_of is None else "at most "
        words = f"{view.book.clients} with {most}{counted(now.cores, 'core')} each"
        groups = () if view.scenario is None else view.scenario.clients.groups
        ends = accumulate(group.count for group in groups)
        named = [f", {end - it.count}–{end - 1} {it.name}" for it, end in zip(groups, ends, strict=True) if it.count]
        self.entitle(words + (f", {len(now.offline)} offline" if now.offline else "") + "".join(named))
