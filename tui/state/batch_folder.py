"""A folder of runs as other processes fill it: what is there, how each run stands, how long all of them will take.

Runs are put in an order, in groups of those that differ in their seed alone, and in leagues of policies.
"""

import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from flmarket.analysis.results.measures import AUC
from flmarket.analysis.results.run_results import read_runs
from flmarket.core.errors import InputError
from flmarket.core.files import walk
from learning.statistics.intervals import Interval, mean_interval
from learning.statistics.measure import MARKET
from scenarios.file.differences import ScenarioValues, flattened, names_among, naming_values
from scenarios.file.schema import Intervention
from scenarios.logs.directory import SCENARIO, RunDirectory
from scenarios.logs.finding import RUN
from scenarios.logs.run_state import RunState
from tui.state.run_standing import FRESH, QUIET, RunStanding, Stamp, scenario_name, standing

DEPTH = 4  # folders between the one that is watched and a run at most: ``OUT/SCENARIO-HASH/POLICY/`` and one above

LEAST = 2.0  # seconds of progress before a run has a pace of its own; until then it is that since it began


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run of the folder."""

    standing: RunStanding
    rounds: int | None  # how many it has at most; None where that is not known
    rate: float | None = None  # rounds a second, of a run that is being played; None where that is not known
    # its scenario's name with what distinguishes it from others of that name: ``quickstart (budget=6)``; empty where
    # that is not known, or there is no other
    name: str = ""
    place: int = 0  # of its scenario among those of its name, in the order of their values
    auc: float | None = None  # the market's AUC of a complete run, %; None for others

    @property
    def scenario(self) -> str:
        """The scenario's name, and what distinguishes it from others of that name: a value, or its hash."""
        return self.name or self.standing.folder

    @property
    def title(self) -> str:
        """The scenario's name, and what distinguishes it from others of that name, if that is known."""
        return self.name or self.standing.scenario

    @property
    def apart(self) -> str:
        """What distinguishes its scenario from others of its name, without that name where it has no hash."""
        _, bracket, words = self.name.partition(f"{self.standing.scenario} (")
        return words.removesuffix(")") if bracket else self.scenario

    @property
    def accuracy(self) -> float | None:
        """Its accuracy after the last round, %; None before the first."""
        return self.standing.accuracy

    @property
    def begun(self) -> bool:
        """Whether there is something of it to be seen."""
        return self.standing.state not in {RunState.WAITING, RunState.GONE}

    @property
    def left(self) -> float | None:
        """Seconds until it ends at most; None where that is not known."""
        if self.rounds is None or not self.rate:
            return None
        return max(0, self.rounds - self.standing.round) / self.rate


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look at the folder."""

    runs: tuple[RunLine, ...]  # by scenario, policy and seed
    left: float | None  # seconds until all that play or wait have ended, at most; None where that is not known
    abandoned: int = 0  # runs that a batch meant to play, and that no process is seen to work towards

    @property
    def states(self) -> Counter[RunState]:
        return Counter(run.standing.state for run in self.runs)


class RunsFolder:
    """Looks at a folder again and again. All calls come from one thread."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._before: dict[Path, RunStanding] = {}
        self._first: dict[Path, tuple[float, int]] = {}  # when a run was first seen to play, and its round then
        self._scenarios: dict[Path, ScenarioValues] = {}  # of each scenario's folder
        self._names: dict[Path, tuple[int, str]] = {}  # of each scenario's folder, its place and its name
        self._aucs: dict[Path, tuple[Stamp, float | None]] = {}  # of complete runs, and the files that they are of
        self._played = float("-inf")  # when a run was last seen to play
        self._usual: float | None = None  # rounds a second of the runs that are complete

    def look(self) -> Look:
        """Return how all runs stand now."""
        try:
            there = run_directories(self.path)
        except FileNotFoundError:
            if not self._before:
                raise
            there = []
        standings = {path: standing(path, self._before.get(path)) for path in there}
        for path, run in self._before.items():
            if run.state is not RunState.WAITING:  # its line stays, so that no other one takes its place
                standings.setdefault(path, replace(run, state=RunState.GONE, problem="", locked=False))
        self._before = standings
        self._usual = _usual(standings.values())
        if any(run.state is RunState.RUNNING for run in standings.values()):
            self._played = self._clock()
        self._read_scenarios(standings)
        # Where nothing plays, waiting runs will not be played, unless a batch has only just begun.
        shown = [run for run in standings.values() if run.state is not RunState.WAITING or self._is_awaited(run)]
        runs = tuple(map(self._line, shown))
        return Look(runs, time_left(runs), len(standings) - len(runs))

    def _is_awaited(self, run: RunStanding) -> bool:
        return self._clock() - self._played < QUIET or self._is_fresh(run)

    def _is_fresh(self, run: RunStanding) -> bool:
        try:
            return self._clock() - run.path.stat().st_mtime < FRESH
        except OSError:
            return False

    def _line(self, run: RunStanding) -> RunLine:
        folder = run.path.parent.parent
        values, (place, name) = self._scenarios.get(folder), self._names.get(folder, (0, ""))
        rounds = None if values is None else values.values["rounds"]
        if run.state is not RunState.RUNNING:
            self._first.pop(run.path, None)
            return RunLine(run, rounds, name=name, place=place, auc=self._auc(run))
        return RunLine(run, rounds, self._rate(run), name, place)

    def _auc(self, run: RunStanding) -> float | None:
        """Return the AUC of a complete run as reports have it, for which its rounds are read once."""
        if run.state is not RunState.COMPLETE:
            return None
        stamp, auc = self._aucs.get(run.path, ((), None))
        if stamp != run.stamp:
            try:
                [result] = read_runs([RunDirectory(run.path)])
                auc = AUC.values(result)[MARKET]
            except InputError:  # of a run that was tampered with, or is being removed
                auc = None
            self._aucs[run.path] = run.stamp, auc
        return auc

    def _rate(self, run: RunStanding) -> float | None:
        now = self._clock()
        since, number = self._first.setdefault(run.path, (now, run.round))
        if now - since >= LEAST and run.round > number:
            return (run.round - number) / (now - since)
        passed = run.changed - run.begun
        return run.round / passed if run.round and passed > 0 else self._usual

    def _read_scenarios(self, runs: Iterable[Path]) -> None:
        """Read the scenarios that are not known yet, and work out what those of one name are called.

        All runs below one scenario's folder have the same, but for policies.
        """
        known = len(self._scenarios)
        for path in runs:
            if path.parents[1] not in self._scenarios and (values := read_values(path)) is not None:
                self._scenarios[path.parents[1]] = values
        if len(self._scenarios) > known:
            named = scenario_names(self._scenarios)
            self._names = {folder: (place, name) for place, (folder, name) in enumerate(named.items())}


def scenario_names(scenarios: Mapping[Path, ScenarioValues]) -> dict[Path, str]:
    """Return what scenarios are called, by folder, in the order of their values; empty for the only one of its name."""
    names = names_among(scenarios)
    forked = {scenarios[folder].name for folder, name in names.items() if name.changes}
    counts = Counter(scenario.name for scenario in scenarios.values())
    called: dict[Path, str] = {}
    for folder in sorted(names, key=lambda folder: (names[folder].rank, folder.name)):
        name = scenarios[folder].name
        words = names[folder].text or ("original" if name in forked and names[folder].alone else "")
        title = name if names[folder].alone else folder.name
        called[folder] = f"{title} ({words})" if words else title if counts[name] > 1 else ""
    return called


def run_directories(folder: Path) -> list[Path]:
    """Return the run directories below a folder, in the order of their paths, and those that a batch will fill."""
    runs = []

    def unreadable(error: OSError) -> None:
        if error.filename == str(folder):
            raise error

    for here, folders, _ in walk([folder], unreadable):
        runs += [here / name for name in folders if RUN.fullmatch(name)]
        ends = len(here.relative_to(folder).parts) == DEPTH - 1
        folders[:] = [] if ends else [name for name in folders if not (RUN.fullmatch(name) or name.startswith("."))]
    return sorted(runs)


def read_values(path: Path) -> ScenarioValues | None:
    """Return the values of a run's scenario; None where its file cannot be read, or has no number of rounds."""
    try:
        file = tomllib.loads((path / SCENARIO).read_bytes().decode())
        changes = [Intervention.model_validate(table) for table in file.get("interventions", ())]
    except (OSError, ValueError, RecursionError):
        return None
    values = naming_values(flattened(file), path.parent.name)
    name = scenario_name(path.parent.parent.name)
    return ScenarioValues(name, values, changes) if isinstance(values.get("rounds"), int) else None


def _usual(runs: Iterable[RunStanding]) -> float | None:
    """Return the rounds a second of all runs that are complete; None if there is none."""
    ended = [run for run in runs if run.state is RunState.COMPLETE and run.changed > run.begun > 0]
    return sum(run.round for run in ended) / sum(run.changed - run.begun for run in ended) if ended else None


def time_left(runs: Iterable[RunLine]) -> float | None:
    """Return the seconds until all runs that play or wait have ended, at the pace of those that play.

    None where nothing plays, or where it is not known how much there is to do.
    """
    todo, rate, longest = 0, 0.0, 0.0
    for run in runs:
        if run.standing.state not in {RunState.RUNNING, RunState.WAITING}:
            continue
        if run.rounds is None or (run.standing.state is RunState.RUNNING and not run.rate):
            return None
        todo += max(0, run.rounds - run.standing.round)
        rate += run.rate or 0.0
        longest = max(longest, run.left or 0.0)
    return max(longest, todo / rate) if rate else None


def _by_name(run: RunLine) -> tuple[Any, ...]:
    seed = run.standing.seed
    scenario = run.standing.scenario, run.place, run.standing.folder
    return *scenario, run.standing.policy, int(seed) if seed.isdigit() else 0, run.standing.path


ORDERS: Mapping[str, Callable[[Any], Any]] = {
    "scenario and policy": _by_name,
    AUC.name: lambda line: -(line.auc or 0.0),
    "time left": lambda line: (line.left is None, line.left or 0.0),
    "state": lambda run: list(RunState).index(run.standing.state),
    "last change": lambda run: -run.standing.changed,
    "accuracy": lambda line: -(line.accuracy or 0.0),
}
"""The orders of runs, by their names; runs that are equal in one are in the order of the first."""
OF_GROUPS = (AUC.name, "accuracy", "time left")
"""Those in which groups stand by what they have as a whole, not by their first run."""


def ordered(runs: Iterable[RunLine], order: str) -> list[RunLine]:
    return sorted(sorted(runs, key=_by_name), key=ORDERS[order])


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that differ in their seed alone."""

    runs: tuple[RunLine, ...]  # at least one

    @property
    def first(self) -> RunStanding:
        return self.runs[0].standing

    @property
    def key(self) -> Path:
        return self.first.path.parent

    @property
    def states(self) -> Counter[RunState]:
        return Counter(run.standing.state for run in self.runs)

    @property
    def complete(self) -> list[RunStanding]:
        return [run.standing for run in self.runs if run.standing.state is RunState.COMPLETE]

    @property
    def aucs(self) -> list[float]:
        return [run.auc for run in self.runs if run.auc is not None]

    @property
    def auc(self) -> float | None:
        """The mean AUC of the complete runs, %; None if there is none."""
        return fmean(self.aucs) if self.aucs else None

    @property
    def accuracy(self) -> float | None:
        """The mean final accuracy of the complete runs, %; None if there is none."""
        accuracies = [run.accuracy for run in self.complete if run.accuracy is not None]
        return fmean(accuracies) if accuracies else None

    @property
    def met(self) -> float | None:
        """The targets that a complete run met, in the mean; None if there is none."""
        return fmean(run.met for run in self.complete) if self.complete else None

    @property
    def rounds(self) -> tuple[int, int | None]:
        """The rounds that were played, and how many all runs have at most; None where that is not known."""
        todo = [run.standing.round if run.standing.state is RunState.COMPLETE else run.rounds for run in self.runs]
        known = [rounds for rounds in todo if rounds is not None]
        return sum(run.standing.round for run in self.runs), sum(known) if len(known) == len(todo) else None

    @property
    def left(self) -> float | None:
        """Seconds until those that play or wait have ended, at most; None where that is not known."""
        return time_left(self.runs)


def grouped(runs: Iterable[RunLine], order: str = next(iter(ORDERS))) -> list[RunGroup]:
    """Return the groups of runs, in an order, in which their runs are."""
    members: dict[Path, list[RunLine]] = {}
    for run in ordered(runs, order):
        members.setdefault(run.standing.path.parent, []).append(run)
    groups = [RunGroup(tuple(some)) for some in members.values()]
    return sorted(groups, key=ORDERS[order]) if order in OF_GROUPS else groups


@dataclass(frozen=True, slots=True)
class Place:
    """A policy's place among those of a scenario."""

    group: RunGroup  # its runs
    aucs: tuple[float, ...]  # the market's AUC in each complete run, %
    # of their mean; None where there is none yet. It follows from the others, and may have ends that are no numbers.
    interval: Interval | None = field(compare=False)


def leagues(runs: Sequence[RunLine]) -> Mapping[Path, Sequence[Place]]:
    """Return the league of each scenario, by its folder: its policies in the order of their AUC, as in reports."""
    leagues: dict[Path, list[Place]] = {}
    for group in grouped(runs):
        interval = mean_interval(group.aucs).within(*AUC.limits) if group.aucs else None
        leagues.setdefault(group.key.parent, []).append(Place(group, tuple(group.aucs), interval))
    for places in leagues.values():
        places.sort(key=lambda place: -(place.interval.estimate if place.interval else 0.0))
    return leagues
