"""The table of the compare screen: a row for each service and run, or for each service and group of runs."""

from collections.abc import Mapping, Sequence

from rich.style import Style
from rich.text import Text
from textual.widgets import DataTable

from tui.watching.comparison import Row
from tui.watching.seeds import GroupRow, Mean
from tui.widgets.look import percent, plain, same, series_color, sign, tint

COLUMNS = {
    "sign": "#",
    "run": "run",
    "service": "service",
    "policy": "policy",
    "accuracy": "accuracy %",
    "accuracy_delta": "Δ",
    "target": "target met in",
    "target_delta": "Δ",
    "spent": "spent",
    "spent_delta": "Δ",
    "served": "served",
    "refused": "refused",
}


class CompareTable(DataTable[Text]):
    """The rows. Each has the place of its run or group in its key."""

    def on_mount(self) -> None:
        """Begin without rows."""
        self._shown: dict[tuple[str, str], Text] = {}
        for key, label in COLUMNS.items():
            self.add_column(label, key=key)

    def show_runs(self, rows: Sequence[Row], names: Sequence[str]) -> None:
        """Show one row for each service and run; ``names`` are those of the runs."""
        self._fill({f"{row.service}\0{row.run}": self._of_run(row, names[row.run]) for row in rows})

    def show_groups(self, rows: Sequence[GroupRow], names: Sequence[str]) -> None:
        """Show one row for each service and group of runs; ``names`` are those of the groups."""
        self._fill({f"{row.service}\0{row.group}": self._of_group(row, names[row.group]) for row in rows})

    @property
    def place(self) -> int | None:
        """The place of the chosen row's run or group; None if there is no row."""
        if not self.row_count:
            return None
        key = self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value
        return int(str(key).rpartition("\0")[2])

    def _fill(self, lines: Mapping[str, Mapping[str, Text]]) -> None:
        """Show lines; those that stay are changed where they differ."""
        if [str(key.value) for key in self.rows] != list(lines):
            cursor = self.cursor_row
            self.clear()
            self._shown.clear()
            for key, cells in lines.items():
                self.add_row(*cells.values(), key=key)
                self._shown.update({(key, column): cell for column, cell in cells.items()})
            self.move_cursor(row=min(cursor, max(0, len(lines) - 1)), animate=False)
            return
        for key, cells in lines.items():
            for column, cell in cells.items():
                if not same(self._shown.get((key, column)), cell):
                    self._shown[key, column] = cell
                    self.update_cell(key, column, cell, update_width=True)

    def _of_run(self, row: Row, name: str) -> dict[str, Text]:
        color = series_color(row.run)
        to_target = str(row.to_target.rounds[0]) if row.to_target.reached[0] else "not yet"
        return {
            "sign": plain(sign(row.run), color),
            "run": plain(name, color),
            "service": plain(row.service),
            "policy": plain(row.policy),
            "accuracy": plain(f"{percent(row.accuracy):>6}"),
            "accuracy_delta": self._delta(None if row.accuracy_delta is None else 100 * row.accuracy_delta, 1, 1),
            "target": plain(f"{to_target:>7}"),
            "target_delta": self._delta(row.to_target_delta, -1, 0),
            "spent": plain(f"{row.spent:>9.2f}"),
            "spent_delta": self._delta(row.spent_delta, -1, 2),
            "served": plain(f"{row.served:>6}"),
            "refused": plain(f"{row.refused:>6}"),
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
