"""The table of the compare screen: a row for each service and group of runs, with differences from the baseline."""

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from flmarket.analysis.results.report import Difference, Estimate
from tui.state.compared_runs import ServiceRow
from tui.style.colors import series_color, sign, tint
from tui.style.formats import plain
from tui.style.text_layout import TableColumn
from tui.widgets.table_view import TableView

DELTA = "Δ "  # stands before the key of a difference's column

COLUMNS = (
    TableColumn("sign", "#"),
    TableColumn("run", "run", least=20),
    TableColumn("service", "service", least=16),
    TableColumn("policy", "policy", leaves=1),
    TableColumn("final accuracy", "accuracy %", right=True),
    TableColumn(DELTA + "final accuracy", "Δ", right=True),
    TableColumn("rounds to target", "target met in", right=True),
    TableColumn(DELTA + "rounds to target", "Δ", right=True, leaves=5),
    TableColumn("spent", "spent", right=True, leaves=6),
    TableColumn(DELTA + "spent", "Δ", right=True, leaves=4),
    TableColumn("served", "served", right=True, leaves=3),
    TableColumn("refused", "refused", right=True, leaves=2),
)


class CompareTable(TableView):
    """The rows; the cursor stays on the service and the group that it is on."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(COLUMNS, id=id)
        self._shown: Sequence[ServiceRow] = ()
        self._names: Sequence[str] = ()

    def show(self, rows: Sequence[ServiceRow], names: Sequence[str]) -> None:
        """Show one row for each service and group of runs; ``names`` are those of the groups."""
        chosen = _key(self._shown[self.cursor]) if self._shown else None
        self._shown, self._names = rows, names
        self.rows(len(rows))
        self.cursor = next((place for place, row in enumerate(rows) if _key(row) == chosen), self.cursor)

    @property
    def place(self) -> int | None:
        """The place of the chosen row's group; None if there is no row."""
        return self._shown[self.cursor].group if self._shown else None

    def cells(self, index: int) -> Sequence[Text]:
        row = self._shown[index]
        color = series_color(row.group)
        found = {
            "sign": plain(sign(row.group), color),
            "run": plain(self._names[row.group], color),
            "service": plain(row.service),
            "policy": plain(row.policy),
            **{name: plain(_text(mean)) for name, mean in row.means.items()},
            **{DELTA + name: plain(_text(it), self._color(it)) for name, it in row.differences.items()},
        }
        if found["rounds to target"].plain == "never" and not row.over:
            found["rounds to target"] = plain("not yet")
        return [found.get(column.key) or plain("") for column in COLUMNS]

    def _color(self, difference: Difference) -> Style:
        interval = difference.interval
        better = interval.estimate * difference.measure.better
        if interval.known and not interval.excludes_zero:  # then either may be better
            better = 0
        return tint(self.app, "foreground" if not better else ("success" if better > 0 else "error"))


def _text(found: Estimate | Difference) -> str:
    """Return a mean as reports show it; a count of a single run has no decimals, and what both missed is not known."""
    if isinstance(found, Difference) and found.bound == "?":
        return ""
    return found.text.removesuffix(".0") if found.seeds == 1 else found.text


def _key(row: ServiceRow) -> tuple[str, int]:
    return row.service, row.group
