"""The tables of a folder: a line for each run, or each group of seeds, and the leagues of its scenarios' policies."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from rich.cells import cell_len
from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from flmarket.core.text import counted, duration
from scenarios.logs.run_state import RunState
from tui.state.batch_folder import Place, RunGroup, RunLine
from tui.state.catalogue import age
from tui.style.colors import policy_places, series_color, signed, state_sign, state_style, tint
from tui.style.formats import TableColumn, bar, fit, plain, within
from tui.widgets.plot import ACROSS, axis
from tui.widgets.table_view import TableView

BAR = 12
AGES = 10  # seconds for which ages are right enough


class BatchTable(TableView):
    """The lines. Which is which, the screen knows."""

    COLUMNS = (
        TableColumn("mark", " "),
        TableColumn("state", "state"),
        TableColumn("round", "round", right=True),
        TableColumn("progress", "progress", leaves=2),
        TableColumn("left", "left", right=True, leaves=6),
        TableColumn("scenario", "scenario", least=16),
        TableColumn("policy", "policy"),
        TableColumn("seed", "seed", right=True),
        TableColumn("auc", "AUC %", right=True, leaves=7),
        TableColumn("accuracy", "accuracy %", right=True, leaves=5),
        TableColumn("met", "met", right=True, leaves=4),
        TableColumn("age", "changed", leaves=3),
        TableColumn("problem", "what is wrong", leaves=1, least=16),
    )

    lines: Sequence[RunLine | RunGroup] = ()
    marked: frozenset[object] = frozenset()
    _twins: frozenset[str] = frozenset()
    _one_name = False  # whether all lines are of scenarios of one name
    _drawn: object = None
    _run = Path()  # the run that was chosen last, to which the cursor returns from its group

    def show(self, lines: Sequence[RunLine | RunGroup], marked: frozenset[object]) -> None:
        """Show runs or groups; the cursor stays on the same run. ``marked`` has the directories of marked runs."""
        shown = tuple(lines), marked, self.app.theme, time.time() // AGES
        if shown == self._drawn:
            return
        self._drawn, chosen = shown, self.chosen
        self.lines, self.marked = lines, marked
        self._twins = _twins(lines)
        runs = [run for line in lines for run in (line.runs if isinstance(line, RunGroup) else [line])]
        self._one_name = len({run.standing.scenario for run in runs}) == 1
        absent = {"left"} if all(run.left is None for run in runs) else set()
        if not any(run.standing.problem for run in runs):
            absent.add("problem")
        self.columns = tuple(column for column in self.COLUMNS if column.key not in absent)
        self.rows(len(lines))
        if chosen is not None:
            places = {key_of(line): place for place, line in enumerate(lines)}
            self.cursor = next((places[key] for key in self._keys(chosen) if key in places), self.cursor)

    def _keys(self, chosen: RunLine | RunGroup) -> Iterator[Path]:
        """Yield what the line that was chosen may be now: itself, else a run's group, or one of a group's runs."""
        yield key_of(chosen)
        if isinstance(chosen, RunLine):
            self._run = chosen.standing.path
            yield self._run.parent
            return
        if self._run.parent == chosen.key:
            yield self._run
        yield from map(key_of, chosen.runs)

    @property
    def chosen(self) -> RunLine | RunGroup | None:
        """The line at the cursor; None if there is none."""
        return self.lines[self.cursor] if self.cursor < len(self.lines) else None

    def cells(self, index: int) -> Sequence[Text]:
        line = self.lines[index]
        cells = self._of_run(line) if isinstance(line, RunLine) else self._of_group(line)
        return [cells[column.key] for column in self.columns]

    def _of_run(self, line: RunLine) -> dict[str, Text]:
        run = line.standing
        return {
            "mark": self._mark([line]),
            "state": plain(signed(run.state), state_style(self.app, run.state)),
            **self._progress(run.round, line.rounds, ended=run.state is RunState.COMPLETE),
            "left": plain("" if line.left is None else duration(line.left)),
            "scenario": plain(self._scenario(line)),
            "policy": plain(run.policy),
            "seed": plain(run.seed),
            "auc": plain("" if line.auc is None else f"{line.auc:.1f}"),
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
            "mark": self._mark(group.runs),
            "state": self._states(group.states),
            **self._progress(*group.rounds),
            "left": plain("" if group.left is None else duration(group.left)),
            "scenario": plain(self._scenario(group.runs[0])),
            "policy": plain(run.policy),
            "seed": plain(counted(len(group.runs), "seed")),
            "auc": plain("" if group.auc is None else f"{group.auc:.1f}"),
            "accuracy": plain("" if group.accuracy is None else f"{group.accuracy:.1f}"),
            "met": plain(met),
            "age": plain(_age(max(one.standing.changed for one in group.runs))),
            "problem": plain(next(filter(None, problems), ""), tint(self.app, "error")),
        }

    def _scenario(self, line: RunLine) -> str:
        """Return a scenario's name, with what distinguishes it; that alone where all lines have the same name."""
        name = line.standing.scenario
        if name not in self._twins:
            return name
        return line.apart if self._one_name else line.scenario

    def _mark(self, runs: Sequence[RunLine]) -> Text:
        """Return ✓ where all runs are marked that can be, ∙ where some are."""
        marked = sum(run.standing.path in self.marked for run in runs)
        return plain(" " if not marked else "✓" if marked == sum(run.begun for run in runs) else "∙")

    def _states(self, counts: Counter[RunState]) -> Text:
        line = plain("")
        for state in reversed(RunState):
            if counts[state]:
                line.append(f"{state_sign(state)}{counts[state]} ", state_style(self.app, state))
        return line

    def _progress(self, done: int, rounds: int | None, *, ended: bool = False) -> dict[str, Text]:
        share = 1.0 if ended else (done / rounds if rounds else 0.0)  # all services may have left before the last round
        return {
            "round": plain(f"{done}/{rounds}" if rounds is not None else (str(done) if done else "")),
            "progress": plain(bar(share, BAR), tint(self.app, "primary")),
        }


def key_of(line: RunLine | RunGroup) -> Path:
    """Return what a line is known by from look to look."""
    return line.standing.path if isinstance(line, RunLine) else line.key


def _age(changed: float) -> str:
    return age(time.time() - changed) if changed else ""


def _twins(lines: Sequence[RunLine | RunGroup]) -> frozenset[str]:
    """Return the names that different scenarios share: these are shown with what distinguishes them."""
    runs = [line.standing if isinstance(line, RunLine) else line.first for line in lines]
    counts = Counter(run.scenario for run in {run.folder: run for run in runs}.values())
    return frozenset(name for name, count in counts.items() if count > 1)


INDENT = "  "  # of the names of policies
LEAST = 24  # cells of the axis, for which there is always room, of a terminal that is wide enough
NUMBERS = 18  # cells between the name and the axis
NARROWEST = 1.0  # percentage points that an axis spans at least
WIDE = 84  # cells from which on the interval stands in numbers, too


class LeagueChart(Widget):
    """A line for each policy below its scenario's.

    Where there is no room for all, the chosen scenario comes first, and the last line says how much more there is.
    """

    DEFAULT_CSS = """
    LeagueChart { border: round $panel-lighten-2; border-title-color: $text-muted; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.border_title = "League · AUC %, mean and 95 % interval over seeds"
        self._leagues: Mapping[Path, Sequence[Place]] = {}
        self._chosen = Path()

    def show(self, leagues: Mapping[Path, Sequence[Place]], chosen: Path) -> None:
        """Show the policies of all scenarios, by their folders."""
        if (leagues, chosen) != (self._leagues, self._chosen):
            before, self._leagues, self._chosen = self._count, leagues, chosen
            self.refresh(layout=self._count != before)

    @property
    def _count(self) -> int:
        return sum(1 + len(places) for places in self._leagues.values())

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._count

    def render(self) -> Text:
        folders = list(self._leagues)
        if self._count > self.size.height:
            folders.sort(key=lambda folder: folder != self._chosen)
        names = [INDENT + place.group.first.policy for places in self._leagues.values() for place in places]
        names += map(_scenario, self._leagues.values())
        width = max(8, min(max(map(cell_len, names), default=0), self.size.width - LEAST - NUMBERS))
        lines = [line for folder in folders for line in self._lines(self._leagues[folder], width)]
        if len(lines) > self.size.height:
            room = max(0, self.size.height - 1)
            starts = accumulate((1 + len(self._leagues[folder]) for folder in folders), initial=0)
            hidden = sum(room <= start < len(lines) for start in starts)
            more = counted(hidden, "more scenario") if hidden else f"{len(lines) - room} more policies"
            lines[room:] = [plain(f"… {more}", tint(self.app, "foreground", dim=True))]
        return Text("\n").join(lines[: self.size.height])

    def _lines(self, places: Sequence[Place], width: int) -> Iterator[Text]:
        """Yield the lines of a scenario, whose names have so many cells: its own with the axis, then its policies."""
        faint = str(tint(self.app, "foreground", dim=True))
        every = (place.interval for several in self._leagues.values() for place in several)
        wide = self.size.width >= WIDE and any(interval and interval.known for interval in every)
        colors = policy_places(place.group.first.policy for place in places)
        numbers = f"  {'seeds':>7}   mean  " + (f"{'interval':14}  " if wide else "")
        cells = max(1, self.size.width - width - len(numbers))
        values = [value for place in places for value in _values(place)]
        low, high = min(values, default=0.0), max(values, default=100.0)
        around = max(0.0, (NARROWEST - high + low) / 2)
        scale = axis(low - around, high + around, cells, ACROSS)
        labels = [" "] * cells
        for cell, label in scale.ticks:
            start = max(0, min(cell - len(label) // 2, cells - len(label)))
            labels[start : start + len(label)] = label
        yield Text.assemble((fit(_scenario(places), width), "bold"), (f"{numbers}{''.join(labels)}", faint))
        for place in places:
            group, interval = place.group, place.interval
            color = series_color(colors[group.first.policy])
            line = Text.assemble(fit(INDENT + group.first.policy, width))
            line.append(f"  {f'{len(place.aucs)} of {len(group.runs)}':>7}  ", faint)
            if interval is None:
                done, rounds = group.rounds
                yield line.append(f"{'':5}  {done:,}{'' if rounds is None else f' of {rounds:,}'} rounds played", faint)
                continue
            line.append(f"{interval.estimate:5.1f}  ", "bold")
            if wide:
                line.append(f"{interval.text('.1f').partition(' ')[2]:14}  ", faint)
            marks = [(" ", "")] * cells
            for cell, _ in scale.ticks:
                marks[cell] = "┊", faint
            if interval.known:
                for cell in range(scale.cell(interval.low, cells), scale.cell(interval.high, cells) + 1):
                    marks[cell] = "━", color
            for cell in {scale.cell(value, cells) for value in place.aucs}:
                marks[cell] = "┿" if marks[cell][0] == "━" else "∙", color
            marks[scale.cell(interval.estimate, cells)] = "●", f"bold {color}"
            for mark, style in marks:
                line.append(mark, style)
            yield line


def _scenario(places: Sequence[Place]) -> str:
    return places[0].group.runs[0].title


def _values(place: Place) -> list[float]:
    """Return what the axis must show of a policy."""
    ends = [place.interval.low, place.interval.high] if place.interval and place.interval.known else []
    return [*place.aucs, *ends]
