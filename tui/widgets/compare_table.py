"""The table of the compare screen: a row for each service and run, or for each service and group of runs."""

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from tui.state.comparison import Row
from tui.state.seeds import GroupRow, Mean
from tui.style.columns import Column
from tui.style.look import percent, plain, series_color, sign, tint
from tui.widgets.table import TableView

COLUMNS = (
    Column("sign", "#"),
    Column("run", "run", least=20),
    Column("service", "service", least=16),
    Column("policy", "policy", leaves=1),
    Column("accuracy", "accuracy %", right=True),
    Column("accuracy_delta", "Δ", right=True),
    Column("target", "target met in", right=True),
    Column("target_delta", "Δ", right=True, leaves=5),
    Column("spent", "spent", right=True, leaves=6),
    Column("spent_delta", "Δ", right=True, leaves=4),
    Column("served", "served", right=True, leaves=3),
    Column("refused", "refused", right=True, leaves=2),
)


class CompareTable(TableView):
    """The rows; the cursor stays on the service and the run or group that it is on."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(COLUMNS, id=id)
        self._shown: Sequence[Row | GroupRow] = ()
        self._names: Sequence[str] = ()

    def show(self, rows: Sequence[Row | GroupRow], names: Sequence[str]) -> None:
        """Show one row for each service and run, or group of runs; ``names`` are those of the runs or groups."""
        chosen = _key(self._shown[self.cursor]) if self._shown else None
        self._shown, self._names = rows, names
        self.rows(len(rows))
        self.cursor = next((place for place, row in enumerate(rows) if _key(row) == chosen), self.cursor)

    @property
    def place(self) -> int | None:
        """The place of the chosen row's run or group; None if there is no row."""
        return _key(self._shown[self.cursor])[1] if self._shown else None

    def cells(self, index: int) -> Sequence[Text]:
        row = self._shown[index]
        name = self._names[_key(row)[1]]
        found = self._of_run(row, name) if isinstance(row, Row) else self._of_group(row, name)
        return [found[column.key] for column in COLUMNS]

    def _of_run(self, row: Row, name: str) -> dict[str, Text]:
        color = series_color(row.run)
        unmet = "never" if row.over else "not yet"
        to_target = str(row.to_target.rounds[0]) if row.to_target.reached[0] else unmet
        return {
            "sign": plain(sign(row.run), color),
            "run": plain(name, color),
            "service": plain(row.service),
            "policy": plain(row.policy),
            "accuracy": plain(percent(row.accuracy)),
            "accuracy_delta": self._delta(None if row.accuracy_delta is None else 100 * row.accuracy_delta, 1, 1),
            "target": plain(to_target),
            "target_delta": self._delta(row.to_target_delta, -1, 0),
            "spent": plain(f"{row.spent:.2f}"),
            "spent_delta": self._delta(row.spent_delta, -1, 2),
            "served": plain(f"{row.served}"),
            "refused": plain(f"{row.refused}"),
        }

    def _of_group(self, row: GroupRow, name: str) -> dict[str, Text]:
        color = series_color(row.group)
        return {
            "sign": plain(sign(row.group), color),
            "run": plain(name, color),
            "service": plain(row.service),
            "policy": plain(row.policy),
            "accuracy": plain(row.accuracy.text(1)),
            "accuracy_delta": self._mean_delta(row.accuracy_delta, 1, 1),
            "target": plain(row.to_target.text(row.rounds.interval_text(1))),
            "target_delta": self._mean_delta(row.to_target_delta, -1, 1),
            "spent": plain(row.spent.text(2)),
            "spent_delta": self._mean_delta(row.spent_delta, -1, 2),
            "served": plain(row.served.text(1)),
            "refused": plain(row.refused.text(1)),
        }

    def _delta(self, value: float | None, good: int, decimals: int) -> Text:
        return plain("" if value is None else f"{value:+.{decimals}f}", self._color(value or 0, good))

    def _mean_delta(self, mean: Mean | None, good: int, decimals: int) -> Text:
        if mean is None:
            return plain("")
        # With an interval that holds zero, either may be better.
        known = mean.interval is None or mean.interval.excludes_zero
        return plain(mean.text(decimals, "+"), self._color(mean.value if known else 0, good))

    def _color(self, value: float, good: int) -> Style:
        return tint(self.app, "foreground" if not value else ("success" if value * good > 0 else "error"))


def _key(row: Row | GroupRow) -> tuple[str, int]:
    return row.service, row.run if isinstance(row, Row) else row.group
