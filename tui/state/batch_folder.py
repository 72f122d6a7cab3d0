"""A folder of runs as other processes fill it: what is there, how each run stands, how long all of them will take."""

import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from flmarket.core.files import walk
from scenarios.file.differences import alike, distinguishing, flattened, values_text
from scenarios.file.interventions import intervention_words
from scenarios.file.schema import Intervention
from scenarios.logs.directory import SCENARIO
from scenarios.logs.finding import RUN
from scenarios.logs.run_state import RunState
from tui.state.run_standing import QUIET, Standing, scenario_name, standing

DEPTH = 4  # folders between the one that is watched and a run at most: ``OUT/SCENARIO-HASH/POLICY/`` and one above

FRESH = 60.0  # seconds after which an empty directory is not waited for, if nothing in the folder is being played

LEAST = 2.0  # seconds of progress before a run has a pace of its own; until then it is that since it began


class Values(NamedTuple):
    """A scenario as its file has it."""

    flat: Mapping[str, Any]  # flattened
    interventions: Sequence[Intervention]


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run of the folder."""

    standing: Standing
    rounds: int | None  # how many it has at most; None where that is not known
    rate: float | None = None  # rounds a second, of a run that is being played; None where that is not known
    # what distinguishes its scenario from others of its name: ``budget=6``; empty where that is not known
    market: str = ""

    @property
    def scenario(self) -> str:
        """The scenario's name, and what distinguishes it from others of that name: a value, or its hash."""
        return f"{self.standing.scenario} ({self.market})" if self.market else self.standing.folder

    @property
    def title(self) -> str:
        """The scenario's name, and what distinguishes it from others of that name, if that is known."""
        return self.scenario if self.market else self.standing.scenario

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
        self._before: dict[Path, Standing] = {}
        self._first: dict[Path, tuple[float, int]] = {}  # when a run was first seen to play, and its round then
        self._scenarios: dict[Path, Values] = {}  # of each scenario's folder
        self._markets: dict[Path, str] = {}  # of each scenario's folder, what distinguishes it
        self._named = 0  # scenarios when that was last worked out
        self._played = float("-inf")  # when a run was last seen to play
        self._usual: float | None = None  # rounds a second of the runs that are complete

    def look(self) -> Look:
        """Return how all runs stand now."""
        found = {path: standing(path, self._before.get(path)) for path in run_directories(self.path)}
        self._before = found
        self._usual = _usual(found.values())
        if any(one.state is RunState.RUNNING for one in found.values()):
            self._played = self._clock()
        # Where nothing plays, waiting runs will not be played, unless a batch has only just begun.
        for one in found.values():
            self._note_scenario(one.path)
        self._name_markets()
        runs = [self._line(one) for one in found.values() if one.state is not RunState.WAITING or self._is_awaited(one)]
        return Look(tuple(runs), time_left(runs), len(found) - len(runs))

    def _is_awaited(self, found: Standing) -> bool:
        return self._clock() - self._played < QUIET or self._is_fresh(found)

    def _is_fresh(self, found: Standing) -> bool:
        try:
            return self._clock() - found.path.stat().st_mtime < FRESH
        except OSError:
            return False

    def _line(self, found: Standing) -> RunLine:
        folder = found.path.parent.parent
        values, market = self._scenarios.get(folder), self._markets.get(folder, "")
        rounds = None if values is None else values.flat["rounds"]
        if found.state is not RunState.RUNNING:
            self._first.pop(found.path, None)
            return RunLine(found, rounds, market=market)
        return RunLine(found, rounds, self._rate(found), market)

    def _rate(self, found: Standing) -> float | None:
        now = self._clock()
        since, number = self._first.setdefault(found.path, (now, found.round))
        if now - since >= LEAST and found.round > number:
            return (found.round - number) / (now - since)
        passed = found.changed - found.begun
        return found.round / passed if found.round and passed > 0 else self._usual

    def _note_scenario(self, path: Path) -> None:
        """Read the scenario of a run; all runs below one scenario's folder have the same, but for policies."""
        folder = path.parent.parent
        if folder not in self._scenarios and (found := read_values(path / SCENARIO)) is not None:
            self._scenarios[folder] = found

    def _name_markets(self) -> None:
        """Work out what distinguishes scenarios of one name, once more are known."""
        if self._named == len(self._scenarios):
            return
        self._named = len(self._scenarios)
        self._markets = market_names(self._scenarios)


def market_names(scenarios: Mapping[Path, Values]) -> dict[Path, str]:
    """Return what tells scenarios of one name apart, for each folder where values or interventions do."""
    by_name: dict[str, dict[Path, Values]] = defaultdict(dict)
    for folder, scenario in scenarios.items():
        by_name[scenario_name(folder.name)][folder] = scenario
    names: dict[Path, str] = {}
    for twins in by_name.values():
        flat = {folder: twin.flat for folder, twin in twins.items()}
        differing, words = distinguishing(flat), {}
        for same in alike(flat):
            rivals = [twins[folder].interventions for folder in same]
            for folder, interventions in zip(same, rivals, strict=True):
                changes = intervention_words(interventions, rivals) or ["original"] * (len(same) > 1)
                values = differing.get(folder)
                words[folder] = ", ".join([*([values_text(values)] if values else []), *changes])
        counts = Counter(words.values())
        names |= {folder: found for folder, found in words.items() if found and counts[found] == 1}
    return names


def run_directories(folder: Path) -> list[Path]:
    """Return the run directories below a folder, in the order of their paths, and those that a batch will fill."""
    found = []

    def unreadable(error: OSError) -> None:
        if error.filename == str(folder):
            raise error

    for here, folders, _ in walk([folder], unreadable):
        found += [here / name for name in folders if RUN.fullmatch(name)]
        ends = len(here.relative_to(folder).parts) == DEPTH - 1
        folders[:] = [] if ends else [name for name in folders if not (RUN.fullmatch(name) or name.startswith("."))]
    return sorted(found)


def read_values(path: Path) -> Values | None:
    """Return a scenario's values; None where it cannot be read, or does not say how many rounds it has."""
    try:
        found = tomllib.loads(path.read_bytes().decode())
        values = Values(flattened(found), [Intervention.model_validate(it) for it in found.get("interventions", ())])
    except (OSError, ValueError, RecursionError):
        return None
    return values if isinstance(values.flat.get("rounds"), int) else None


def _usual(runs: Iterable[Standing]) -> float | None:
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
