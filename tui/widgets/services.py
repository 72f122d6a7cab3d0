"""The services: the accuracy of each, what it spends, and how many clients it gets."""

import math

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import DataTable

from des.money import MICRO
from des.records import ServiceReport, Status
from scenarios.logs.reading import LoggedRound
from tui.watching.view import View
from tui.widgets.look import STATUS, STATUS_COLOR, bar, percent, plain, same, series_color, sign, tint
from tui.widgets.messages import Selected
from tui.widgets.panel import Panel

COLUMNS = (
    ("sign", "#"),
    ("service", "service"),
    ("status", "status"),
    ("accuracy", "accuracy → target %"),
    ("spent", "spent of budget"),
    ("served", "served"),
    ("refused", "refused"),
    ("markup", "pay/bid"),
    ("reward", "reward"),
    ("policy", "policy"),
    ("dataset", "data set"),
)


class ServicesPanel(Panel):
    """Shows one row for each service."""

    NUMBER = 1
    NAME = "Services"
    HELP = """Each row is a federated-learning service that buys training from clients.

[b]accuracy → target[/b]  test accuracy of its model; at the target (│ on the bar) it leaves the market.
[b]spent of budget[/b]  what it paid this round; refused offers cost nothing.
[b]served, refused[/b]  clients that trained for it, and offers that were outbid or dropped.
[b]pay/bid[/b]  mean payment over mean bid; 1.00 is exactly what clients ask.
[b]reward[/b]  Omega ^ accuracy, the reward of the paper.
[b]policy[/b]  what decides for it; `flmarket policies` describes each.

[b]↑ ↓[/b] choose a service; the order book follows."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[tuple[str, str], Text] = {}

    def compose(self) -> ComposeResult:
        """Lay out the table."""
        table: DataTable[Text] = DataTable(id="services-table", cursor_type="row", zebra_stripes=True)
        for key, label in COLUMNS:
            table.add_column(label, key=key)
        yield table

    @property
    def target(self) -> DataTable[Text]:
        """The table."""
        return self.query_one(DataTable)

    def show(self, view: View) -> None:
        """Show the services at a moment."""
        if view.logged is None:
            return
        table = self.target
        width = 12 if self.size.width >= 130 else 6
        before = view.session.history[view.round - 1] if view.round > 1 else None
        for m, row in enumerate(view.logged.services):
            cells = self._cells(view, m, _in_walk(view, m, row, before), width)
            if row.service not in table.rows:
                table.add_row(*cells.values(), key=row.service)
                self._shown.update({(row.service, key): cell for key, cell in cells.items()})
                continue
            for key, cell in cells.items():
                if not same(self._shown.get((row.service, key)), cell):
                    self._shown[row.service, key] = cell
                    table.update_cell(row.service, key, cell, update_width=True)

    def _cells(self, view: View, m: int, row: ServiceReport, width: int) -> dict[str, Text]:
        mark = tint(self.app, STATUS_COLOR[row.status], bold=row.status is Status.REACHED)
        faint = tint(self.app, "foreground", dim=row.status is Status.LEFT)
        markup = "–" if not row.mean_bid or row.mean_payment is None else f"{row.mean_payment / row.mean_bid:.2f}"
        budget = row.spent / row.budget if row.budget else 0.0
        known = not math.isnan(row.accuracy)
        accuracy = f"{percent(row.accuracy) if known else '–':>5} → {percent(row.target_accuracy):>5} "
        return {
            "sign": plain(sign(m), series_color(m)),
            "service": plain(row.service, series_color(m)),
            "status": plain(STATUS[row.status], mark),
            "accuracy": Text.assemble(
                (accuracy, mark), (bar(row.accuracy if known else 0.0, width, row.target_accuracy), series_color(m))
            ),
            "spent": Text.assemble(
                (f"{row.spent / MICRO:>6.2f}/{row.budget / MICRO:<5.4g} ", faint), (bar(budget, width), series_color(m))
            ),
            "served": plain(f"{row.served:>6}", faint),
            "refused": plain(f"{row.refused:>7}", tint(self.app, "warning") if row.refused else faint),
            "markup": plain(f"{markup:>7}", faint),
            "reward": plain(f"{row.reward:>7.2f}" if known else "      –", faint),
            "policy": plain(row.policy, faint),
            "dataset": plain(row.dataset, faint),
        }

    @on(DataTable.RowHighlighted)
    def _choose(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        if self.target.has_focus:
            self.post_message(Selected(service=event.cursor_row))


def _in_walk(view: View, m: int, row: ServiceReport, before: LoggedRound | None) -> ServiceReport:
    """Return a service's row at a moment in a walk through a round."""
    if view.event is None or row.status is Status.LEFT:
        return row
    # The round's results are not known yet.
    happened = [event for event in view.events[: view.event] if event.service == row.service]
    kinds = [event.event.value for event in happened]
    paid = [event for event in happened if event.event.value == "pay"]
    old = before.services[m] if before else None
    known = row if "evaluate" in kinds else old
    return row._replace(
        accuracy=known.accuracy if known else math.nan,
        reward=known.reward if known else math.nan,
        mean_payment=row.mean_payment if view.allocated else None,
        spent=int(sum(event.amount or 0 for event in paid)),
        served=len(paid),
        refused=row.refused if view.allocated else 0,
        status=row.status if "exit" in kinds else Status.TRAINING,
    )
