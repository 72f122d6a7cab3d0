"""The services: the accuracy of each, what it spends, and how many clients it gets."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.text import Text
from textual.app import ComposeResult

from des.log_records import Kind, ServiceReport
from des.money import MICRO
from des.observation import Status
from tui.panels.panel import Panel, Selected
from tui.state.moment import Moment
from tui.style.colors import series_color, sign, tint
from tui.style.formats import TableColumn, bar, percent, plain
from tui.widgets.table_view import TableView

REST = 128  # cells of the other columns, about
BARS = range(6, 31)  # cells of a bar

STATUS = {
    Status.TRAINING: "▶ training",
    Status.REACHED: "✔ reached",
    Status.GAVE_UP: "✘ gave up",
    Status.LEFT: "⏏ left",
    Status.WAITING: "… waiting",
}
MISSED = "✘ missed"  # the target, as the run is over
STATUS_COLOR = {
    Status.TRAINING: "primary",
    Status.REACHED: "success",
    Status.GAVE_UP: "warning",
    Status.LEFT: "secondary",
    Status.WAITING: "secondary",
}


class ServicesTable(TableView):
    """One row for each service."""

    COLUMNS = (
        TableColumn("sign", "#"),
        TableColumn("service", "service", least=16),
        TableColumn("status", "status"),
        TableColumn("accuracy", "accuracy → target %"),
        TableColumn("spent", "spent of budget"),
        TableColumn("served", "served", right=True, leaves=7),
        TableColumn("refused", "refused", right=True, leaves=6),
        TableColumn("left", "DQI left", right=True, leaves=4),
        TableColumn("markup", "pay/bid", right=True, leaves=5),
        TableColumn("reward", "reward", right=True, leaves=3),
        TableColumn("policy", "policy", leaves=2),
        TableColumn("dataset", "data set", leaves=1),
    )
    ONGOING = (  # where work outlasts rounds, in which nobody works out what was left
        *COLUMNS[:7],
        TableColumn("at work", "at work", right=True, leaves=9),
        TableColumn("stale", "stale", right=True, leaves=8),
        *COLUMNS[8:],
    )

    _view: Moment | None = None
    _working: Mapping[str, int] = {}  # how many clients are at work for each service, where work outlasts rounds

    def show(self, view: Moment) -> None:
        self._view = view
        self.columns = self.ONGOING if view.logged.goes_on else self.COLUMNS
        self._working = Counter(job.service for job in view.at_work)
        self.rows(len(view.logged.services))
        self.cursor = view.service

    def is_chosen(self, index: int) -> bool:
        return index == self.cursor

    def choose(self) -> None:
        self.post_message(Selected(service=self.cursor))

    def cells(self, index: int) -> Sequence[Text]:
        view, m = self._view, index
        assert view is not None  # noqa: S101 - a row is there
        row = _in_walk(view, m)
        width = max(BARS[0], min(BARS[-1], (self.size.width - REST) // 2))
        status, mark_color = STATUS[row.status], STATUS_COLOR[row.status]
        if row.status is Status.TRAINING and view.ended:
            status, mark_color = MISSED, "warning"
        mark = tint(self.app, mark_color, bold=row.status is Status.REACHED)
        faint = tint(self.app, "foreground", dim=not row.status.takes_part)
        markup = "–" if not row.mean_bid or row.mean_payment is None else f"{row.mean_payment / row.mean_bid:.2f}"
        budget = row.spent / row.budget if row.budget else 0.0
        known = not math.isnan(row.accuracy)
        accuracy = f"{percent(row.accuracy) if known else '–':>5} → {percent(row.target_accuracy):>5} "
        return (
            plain(sign(m), series_color(m)),
            plain(row.service, series_color(m)),
            plain(status, mark),
            Text.assemble(
                (accuracy, mark), (bar(row.accuracy if known else 0.0, width, row.target_accuracy), series_color(m))
            ),
            Text.assemble(
                (f"{row.spent / MICRO:>6.2f}/{round(row.budget / MICRO, 3):<5.4g} ", faint),
                (bar(budget, width), series_color(m)),
            ),
            plain(f"{row.served}", faint),
            plain(f"{row.refused}", tint(self.app, "warning") if row.refused else faint),
            *(plain(cell, faint) for cell in (self._ongoing(m) if view.logged.goes_on else [_left(view, m)])),
            plain(markup, faint),
            plain(f"{row.reward:.2f}" if known else "–", faint),
            plain(row.policy, faint),
            plain(row.dataset, faint),
        )

    def _ongoing(self, m: int) -> list[str]:
        """Return how many clients are at work for a service, and how stale the updates in the round's models were."""
        view = self._view
        assert view is not None  # noqa: S101 - a row is there
        stale = view.logged.figures[-1, m] if view.event is None else math.nan  # in a walk, the round is not over
        working = self._working.get(view.logged.services[m].service, 0)
        return [f"{working}", "–" if math.isnan(stale) else f"{stale:.2f}"]


class ServicesPanel(Panel):
    """Shows one row for each service."""

    NUMBER = 1
    NAME = "Services"
    HELP = """Each row is a federated-learning service that buys training from clients.

[b]accuracy → target[/b]  accuracy of its model; at the target (│ on the bar) it leaves the market. It is measured on
validation images where the scenario holds some out, else on test images. The summary (7), comparisons and `flmarket
report` show the accuracy on test images. Where the scenario's backend trains nothing, both are on fitted curves.
[b]spent of budget[/b]  what it paid this round; refused offers cost nothing.
[b]served, refused[/b]  clients that trained for it, and offers that were outbid or dropped.
[b]DQI left[/b]  how much more DQI the best set within its budget has than what it got, which [b]B[/b] shows; worked out
for `pay-as-offered`, and unasked in small markets: clients times services up to 200.
[b]at work, stale[/b]  where work outlasts rounds, in the place of that: clients at work for it at this moment, and the
mean staleness of the updates that went into the round's models (models made since the client was handed its own).
[b]pay/bid[/b]  mean payment over mean bid; 1.00 is exactly what clients ask.
[b]reward[/b]  Omega ^ accuracy, the reward of the paper.
[b]policy[/b]  what decides for it; `flmarket policies` describes each.

The order book is that of the chosen service."""

    def compose(self) -> ComposeResult:
        yield ServicesTable(id="services-table")

    @property
    def target(self) -> ServicesTable:
        return self.query_one(ServicesTable)

    def draw(self, view: Moment) -> None:
        self.target.show(view)


def _left(view: Moment, m: int) -> str:
    left = view.book.left[m] if view.event is None else None  # in a walk, the round is not over
    return "–" if left is None else f"{left:.2f}"


def _in_walk(view: Moment, m: int) -> ServiceReport:
    """Return a service's row at a moment, which may be in a walk through a round."""
    row = view.logged.services[m]
    if view.event is None or not row.status.takes_part:
        return row
    # The round's results are not known yet.
    happened = view.happened.get(row.service, [])
    kinds = {event.event for event in happened}
    paid = [event for event in happened if event.event is Kind.PAY]
    old = view.session.history[view.round - 1].services[m] if view.round > 1 else None
    known = row if Kind.EVALUATE in kinds else old
    return row._replace(
        accuracy=known.accuracy if known else math.nan,
        reward=known.reward if known else math.nan,
        mean_payment=row.mean_payment if view.allocated else None,
        spent=int(sum(event.amount or 0 for event in paid)),
        served=len(paid),
        refused=row.refused if view.allocated else 0,
        status=row.status if Kind.EXIT in kinds else Status.TRAINING,
    )
