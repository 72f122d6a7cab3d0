"""The table of a folder of runs: a line for each run, or for each group of runs that differ in their seed alone."""

import time
from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from flmarket.core.text import counted, duration
from scenarios.logs.run_state import RunState
from tui.state.batch_folder import RunGroup, RunLine
from tui.state.catalogue import age
from tui.style.colors import tint
from tui.style.formats import bar, plain, within
from tui.style.run_states import signed, state_sign, state_style
from tui.style.text_layout import TableColumn
from tui.widgets.table_view import TableView

COLUMNS = (
    TableColumn("mark", " "),
    TableColumn("state", "state"),
    TableColumn("round", "round", right=True),
    TableColumn("progress", "progress", leaves=2),
    TableColumn("left", "left", right=True, leaves=6),
    TableColumn("scenario", "scenario", least=16),
    TableColumn("policy", "policy"),
    TableColumn("seed", "seed", right=True),
    TableColumn("accuracy", "accuracy %", right=True, leaves=5),
    TableColumn("met", "met", right=True, leaves=4),
    TableColumn("age", "changed", leaves=3),
    TableColumn("problem", "what is wrong", leaves=1, least=16),
)
BAR = 12
AGES = 10  # seconds for which ages are right enough


class BatchTable(TableView):
    """The lines. Which is which, the screen knows."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(COLUMNS, id=id)
        self.lines: Sequence[RunLine | RunGroup] = ()
        self.marked: frozenset[object] = frozenset()
        self._twins: frozenset[str] = frozenset()
        self._drawn: object = None

    def show(self, lines: Sequence[RunLine | RunGroup], marked: frozenset[object]) -> None:
        """Show runs or groups; the cursor stays on the same one. ``marked`` has the directories of marked runs."""
        shown = tuple(lines), marked, self.app.theme, time.time() // AGES
        if shown == self._drawn:
            return
        self._drawn, chosen = shown, self.chosen
        self.lines, self.marked = lines, marked
        self._twins = _twins(lines)
        runs = [run for line in lines for run in (line.runs if isinstance(line, RunGroup) else [line])]
        absent = {"left"} if all(run.left is None for run in runs) else set()
        if not any(run.standing.problem for run in runs):
            absent.add("problem")
        self.columns = tuple(column for column in COLUMNS if column.key not in absent)
        self.rows(len(lines))
        if chosen is not None:
            keys = [key_of(line) for line in lines]
            if key_of(chosen) in keys:
                self.cursor = keys.index(key_of(chosen))

    @property
    def chosen(self) -> RunLine | RunGroup | None:
        """The line at the cursor; None if there is none."""
        return self.lines[self.cursor] if self.cursor < len(self.lines) else None

    def cells(self, index: int) -> Sequence[Text]:
        line = self.lines[index]
        found = self._of_run(line) if isinstance(line, RunLine) else self._of_group(line)
        return [found[column.key] for column in self.columns]

    def _of_run(self, line: RunLine) -> dict[str, Text]:
        run = line.standing
        return {
            "mark": plain("✓" if run.path in self.marked else " "),
            "state": plain(signed(run.state), state_style(self.app, run.state)),
            **self._progress(run.round, line.rounds, ended=run.state is RunState.COMPLETE),
            "left": plain("" if line.left is None else duration(line.left)),
            "scenario": plain(line.scenario if run.scenario in self._twins else run.scenario),
            "policy": plain(run.policy),
            "seed": plain(run.seed),
            "accuracy": plain("" if run.accuracy is None else f"{run.accuracy:.1f}"),
            "met": plain(f"{run.met}/{run.services}" if run.services else ""),
            "age": plain(_age(run.changed)),
            "problem": plain(within(run.path, run.problem), tint(self.app, "error")),
        }

    def _of_group(self, group: RunGroup) -> dict[str, Text]:
        run = group.first
        complete = group.complete
        met = "" if group.met is None else f"{group.met:.1f}/{complete[0].services}"
        problems = (within(one.standing.path, one.standing.problem) for one in group.runs)
        return {
            "mark": plain(" "),
            "state": self._states(group.states),
            **self._progress(*group.rounds),
            "left": plain("" if group.left is None else duration(group.left)),
            "scenario": plain(group.runs[0].scenario if run.scenario in self._twins else run.scenario),
            "policy": plain(run.policy),
            "seed": plain(counted(len(group.runs), "seed")),
            "accuracy": plain("" if group.accuracy is None else f"{group.accuracy:.1f}"),
            "met": plain(met),
            "age": plain(_age(max(one.standing.changed for one in group.runs))),
            "problem": plain(next(filter(None, problems), ""), tint(self.app, "error")),
        }

    def _states(self, found: Counter[RunState]) -> Text:
        line = plain("")
        for state in reversed(RunState):
            if found[state]:
                line.append(f"{state_sign(state)}{found[state]} ", state_style(self.app, state))
        return line

    def _progress(self, done: int, rounds: int | None, *, ended: bool = False) -> dict[str, Text]:
        share = 1.0 if ended else (done / rounds if rounds else 0.0)  # all services may have left before the last round
        return {
            "round": plain(f"{done}/{rounds}" if rounds is not None else (str(done) if done else "")),
            "progress": plain(bar(share, BAR), tint(self.app, "primary")),
        }


def key_of(line: RunLine | RunGroup) -> object:
    """Return what a line is known by from look to look."""
    return line.standing.path if isinstance(line, RunLine) else line.key


def _age(changed: float) -> str:
    return age(time.time() - changed) if changed else ""


def _twins(lines: Sequence[RunLine | RunGroup]) -> frozenset[str]:
    """Return the names that different scenarios share: these are shown with what distinguishes them."""
    runs = [line.standing if isinstance(line, RunLine) else line.first for line in lines]
    counts = Counter(run.scenario for run in {run.folder: run for run in runs}.values())
    return frozenset(name for name, count in counts.items() if count > 1)
