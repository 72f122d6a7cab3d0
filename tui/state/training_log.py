"""A training as its files show it, whether a process writes them now, was killed, or has ended.

``NAME.csv`` (the log) grows by a line an episode; ``NAME.training/record`` holds the plan, heuristics' levels and the
agent's preferences. The log holds no times: how fast a training is shows as it grows.
"""

import csv
import io
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from flmarket.core.errors import InputError
from flmarket.core.files import is_locked
from scenarios.logs.run_state import RunState
from tui.state.pace import Pace
from tui.state.run_standing import FRESH, QUIET

METRICS = ("auc", "reward", "reached", "markup")
NEEDED = ("episode", "phase", *METRICS)
PARTS = 5  # fifths of the clients that preferences are counted in
SUFFIXES = (".csv", ".safetensors", ".json", ".training")
_HEADER = 2_000
_WINDOW = 60.0


@dataclass(frozen=True, slots=True)
class TrainingPoint:
    """An episode, or an evaluation after it."""

    episode: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class EvaluatedService:
    """A service's behaviour in one evaluation."""

    episode: int  # the episode before it
    service: str  # its name
    offers: float  # clients a round that it made an offer to
    served: float | None  # the part of them that served it; None without offers
    markup: float | None  # how much more than the bids it offered, as a part of the bids; None without offers
    # the parts of its offers that went to each fifth of the clients, in the order of their bids and of their DQI, the
    # lowest first; empty without offers
    bids: tuple[float, ...]
    dqis: tuple[float, ...]


class TrainingFeed:
    """Follows one training. ``look`` is called from one thread; the rest may be read from another."""

    def __init__(self, log: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.log = log  # the file of the log
        self.state = RunState.READING
        self.episodes: list[TrainingPoint] = []
        self.evaluations: list[TrainingPoint] = []
        self.plan: Mapping[str, Any] = {}  # what ``plan.json`` holds; empty until it is there
        # values of other policies by name and metric; empty where none are recorded
        self.baselines: Mapping[str, Mapping[str, float]] = {}
        self.preferences: list[EvaluatedService] = []  # in the order of the evaluations
        self.problem = ""  # what is wrong with the files, in a line; empty if nothing is
        self.pace = Pace(clock, window=_WINDOW)
        self._stamps: dict[Path, tuple[int, int]] = {}
        self._locked = False

    @property
    def name(self) -> str:
        return self.log.stem

    @property
    def what(self) -> str:
        """The policy, the scenario and the backend of the training, in words; empty where that is not recorded."""
        provenance = self.plan.get("provenance")
        return "{policy} on {scenario} ({backend})".format(**provenance) if provenance else ""

    @property
    def total(self) -> int | None:
        """The number of episodes that there will be; None where that is not recorded."""
        return self.plan["plan"]["episodes"] if self.plan else None

    @property
    def left(self) -> float | None:
        """Seconds until the training ends at its present pace; None where that is not known."""
        rate = self.pace.rate() if self.state is RunState.RUNNING else None
        return None if rate is None or self.total is None else max(0, self.total - len(self.episodes)) / rate

    def look(self) -> object:
        """Read the files that have changed; return what differs where they have."""
        looked = bool(self._stamps)
        record = self.log.with_suffix(".training") / "record"
        if changed := self._has_changed(self.log):
            self._read_log(count=looked)
        if self._has_changed(plan := record / "plan.json"):
            self.plan = _plan(plan)
        if self._has_changed(baselines := record / "baselines.csv"):
            self.baselines = {row["policy"]: levels for row in _table(baselines) if (levels := _numbers(row))}
        if self._has_changed(preferences := record / "preferences.csv"):
            self.preferences = [one for row in _table(preferences) if (one := _preference(row)) is not None]
        self._set_state(changed)
        return self.state, dict(self._stamps)

    def _set_state(self, changed: bool) -> None:
        # Looked at only where it may be held: for the moment of the look, no other process can take it.
        if self.state in {RunState.INTERRUPTED, RunState.COMPLETE} and not changed:
            return
        begun = bool(self.episodes) or self.log.with_suffix(".training").exists()
        before, self._locked = self._locked, begun and is_locked(self.log)
        if self._locked:
            self.state = RunState.RUNNING if self.episodes else RunState.STARTING
            return
        done = self.evaluations[-1].episode if self.evaluations else 0
        ended = self.total is None or done >= self.total
        quiet = time.time() - self._stamps.get(self.log, (0, 0))[0] / 1e9 > (QUIET if self.episodes else FRESH)
        if ended and self.log.with_suffix(".safetensors").exists():
            self.state = RunState.COMPLETE
        elif quiet or (before and not ended):
            self.state = RunState.INTERRUPTED
        elif not before:
            self.state = RunState.INCOMPLETE if self.episodes else RunState.STARTING
        self.pace.stop()

    def _has_changed(self, path: Path) -> bool:
        try:
            stat = path.stat()
        except OSError:
            return False
        stamp = stat.st_mtime_ns, stat.st_size
        same, self._stamps[path] = self._stamps.get(path) == stamp, stamp
        return not same

    def _read_log(self, *, count: bool) -> None:  # whether new episodes were played since the last look
        known, self.problem = len(self.episodes), ""
        episodes: list[TrainingPoint] = []
        evaluations: list[TrainingPoint] = []
        try:
            content = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            self.problem = f"{self.log}: cannot be read: {error.strerror}"
            return
        rows = csv.DictReader(io.StringIO(content[: content.rfind("\n") + 1]))  # the last line may be half written
        if rows.fieldnames and not set(NEEDED) <= set(rows.fieldnames):
            self.problem = f"{self.log}: is not the log of a training"
            return
        try:
            for row in rows:
                points = evaluations if row["phase"] == "evaluate" else episodes
                points.append(TrainingPoint(int(row["episode"]), {metric: float(row[metric]) for metric in METRICS}))
        except (ValueError, TypeError, csv.Error) as error:
            line = rows.line_num + isinstance(error, csv.Error)
            self.problem = f"{self.log}:{line}: is not a line of a training log"
        self.episodes, self.evaluations = episodes, evaluations  # another thread may be reading
        if len(self.episodes) < known:
            self.pace.stop()
        for _ in range(known if count else len(self.episodes), len(self.episodes)):
            self.pace.add()


def find_logs(
    path: Path,  # a folder of agents, or an agent: NAME, or one of its files; NAME also stands for NAME-seed0 and so on
) -> list[Path]:
    """Return the logs of the trainings that a path stands for, by name; none if it stands for no training."""
    if path.suffix in SUFFIXES and not (path.is_dir() and path.suffix != ".training"):
        path = path.with_suffix("")
        candidates = [path.with_name(f"{path.name}.csv")]
    elif path.is_dir():
        candidates = sorted(path.glob("*.csv"))
    else:
        own = path.with_name(f"{path.name}.csv")
        candidates = [own] if own.exists() else sorted(path.parent.glob(f"{escape(path.name)}-seed*.csv"))
    return [log for log in candidates if log.is_file() and is_log(log)]  # who opens a pipe waits for its writer


def is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            first = file.readline(_HEADER)
    except OSError:
        return False
    return set(NEEDED) <= set(first.decode("utf-8", "replace").strip().split(","))


def logs_at(path: Path) -> list[Path]:
    """Return what ``find_logs`` finds; raise InputError if that is nothing."""
    if logs := find_logs(path):
        return logs
    raise InputError(f"{path}: there is no training; flmarket train writes NAME.csv next to the agent")


def _numbers(row: Mapping[str, str]) -> dict[str, float]:
    numbers = {}
    for metric in METRICS:
        if (number := _number(row.get(metric))) is not None:
            numbers[metric] = number
    return numbers


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _preference(row: Mapping[str, str]) -> EvaluatedService | None:
    episode, offers = _number(row.get("episode")), _number(row.get("offers"))
    if episode is None or offers is None:
        return None
    bids, dqis = ([_number(row.get(f"{kind}_{part}")) for part in range(1, PARTS + 1)] for kind in ("bid", "dqi"))
    return EvaluatedService(
        int(episode),
        str(row.get("service")),
        offers,
        _number(row.get("served")),
        _number(row.get("markup")),
        tuple(share for share in bids if share is not None),
        tuple(share for share in dqis if share is not None),
    )


def _table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a small table; none where it cannot be read."""
    try:
        return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8", errors="replace"))))
    except (OSError, csv.Error):
        return []


def _plan(path: Path) -> Mapping[str, Any]:
    """Return the plan of a training; nothing where it cannot be read."""
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return plan if {"plan", "provenance"} <= set(plan) else {}
