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
from typing import IO, Any

from fl.errors import InputError
from fl.locks import is_locked
from tui.watching.pace import Pace
from tui.watching.standing import COMPLETE, INCOMPLETE, INTERRUPTED, RUNNING
from tui.watching.tail import QUIET

METRICS = ("auc", "reward", "reached", "markup")
NEEDED = ("episode", "phase", *METRICS)
PARTS = 5  # fifths of the clients that preferences are counted in
SUFFIXES = (".csv", ".safetensors", ".json", ".training")
_HEADER = 2_000
_END = 200
_WINDOW = 60.0


@dataclass(frozen=True, slots=True)
class Point:
    """An episode, or an evaluation after it."""

    episode: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Preference:
    """What a service did in one evaluation."""

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
        self.state = INCOMPLETE  # a word of ``standing.STATES``
        self.episodes: list[Point] = []  # every episode so far
        self.evaluations: list[Point] = []  # every evaluation so far
        self.plan: Mapping[str, Any] = {}  # what ``plan.json`` holds; empty until it is there
        # values of other policies by name and metric; empty where none are recorded
        self.baselines: Mapping[str, Mapping[str, float]] = {}
        self.preferences: list[Preference] = []  # in the order of the evaluations
        self.problem = ""  # what is wrong with the files, in a line; empty if nothing is
        self.pace = Pace(clock, window=_WINDOW)
        self._columns: list[str] = []
        self._read = self._number = 0  # bytes and lines
        self._end = b""  # what comes before that place
        self._stamps: dict[Path, tuple[int, int]] = {}
        self._locked = False
        self._looked = False

    @property
    def name(self) -> str:
        return self.log.stem

    @property
    def what(self) -> str:
        """What is trained on what, in words; empty where that is not recorded."""
        found = self.plan.get("provenance", self.plan)
        words = [found.get(key) for key in ("policy", "scenario", "backend")] if isinstance(found, Mapping) else []
        if not words or not all(isinstance(word, str) for word in words):
            return ""
        return f"{words[0]} on {words[1]} ({words[2]})"

    @property
    def total(self) -> int | None:
        """How many episodes there will be; None where that is not recorded."""
        plan = self.plan.get("plan")
        total = plan.get("episodes") if isinstance(plan, Mapping) else None
        return total if isinstance(total, int) else None

    @property
    def left(self) -> float | None:
        """Seconds until the training ends at its present pace; None where that is not known."""
        rate = self.pace.rate() if self.state == RUNNING else None
        return None if rate is None or self.total is None else max(0, self.total - len(self.episodes)) / rate

    def look(self) -> None:
        """Read what is new."""
        changed = self._has_changed(self.log)
        if changed:
            self._read_log()
        if self._has_changed(record := self.log.with_suffix(".training") / "record" / "plan.json"):
            self.plan = _json(record)
        elif not self.plan and self._has_changed(described := self.log.with_suffix(".json")):
            self.plan = _json(described)  # of a version that recorded nothing else
        if self._has_changed(record := record.with_name("baselines.csv")):
            self.baselines = {row["policy"]: found for row in _table(record) if (found := _numbers(row))}
        if self._has_changed(record := record.with_name("preferences.csv")):
            self.preferences = [one for row in _table(record) if (one := _preference(row)) is not None]
        self._set_state(changed)
        self._looked = True

    def _set_state(self, changed: bool) -> None:
        # Looked at only where it may be held: for the moment of the look, no other process can take it.
        if self.state in {INTERRUPTED, COMPLETE} and not changed:
            return
        before, self._locked = self._locked, is_locked(self.log)
        if self._locked:
            self.state = RUNNING
            return
        done = self.evaluations[-1].episode if self.evaluations else 0
        ended = self.total is None or done >= self.total
        quiet = time.time() - self._changed() > QUIET
        if ended and self.log.with_suffix(".safetensors").exists():
            self.state = COMPLETE
        elif quiet or (before and not ended):
            self.state = INTERRUPTED
        elif not before:
            self.state = INCOMPLETE
        self.pace.stop()

    def _changed(self) -> float:
        try:
            return self.log.stat().st_mtime
        except OSError:
            return 0.0

    def _has_changed(self, path: Path) -> bool:
        try:
            found = path.stat()
        except OSError:
            return False
        stamp = found.st_mtime_ns, found.st_size
        same, self._stamps[path] = self._stamps.get(path) == stamp, stamp
        return not same

    def _read_log(self) -> None:
        """Read the whole lines that are new; all lines if the file is another one, or has become shorter."""
        try:
            with self.log.open("rb") as file:
                if not self._continues(file):
                    self._read = self._number = 0
                    self._columns, self.episodes, self.evaluations, self.problem = [], [], [], ""
                    self.pace.stop()
                    self._end, self._looked = b"", False
                file.seek(self._read)
                content = file.read()
        except OSError as error:
            self.problem = f"{self.log}: cannot be read: {error.strerror}"
            return
        whole = content.rfind(b"\n") + 1
        self._read, self._end = self._read + whole, (self._end + content[:whole])[-_END:]
        try:
            for row in csv.reader(io.StringIO(content[:whole].decode("utf-8", "replace"))):
                self._number += 1
                self._take(row)
        except csv.Error as error:
            self.problem = f"{self.log}:{self._number + 1}: is not a line of a training log: {error}"

    def _continues(self, file: IO[bytes]) -> bool:
        """Whether what has been read is still there; a file may have been replaced, or written anew."""
        file.seek(self._read - len(self._end))
        return file.read(len(self._end)) == self._end

    def _take(self, row: list[str]) -> None:
        if not self._columns:
            self._columns = row
        if not set(NEEDED) <= set(self._columns):
            self.problem = f"{self.log}: is not the log of a training"
        if self._number == 1 or self.problem:
            return
        found = dict(zip(self._columns, row, strict=False))
        values, episode = _numbers(found), found.get("episode", "")
        if set(values) != set(METRICS) or not (episode.isascii() and episode.isdigit()):
            self.problem = f"{self.log}:{self._number}: is not a line of a training log"
            return
        point = Point(int(episode), values)
        if found.get("phase") == "evaluate":
            self.evaluations = [*self.evaluations, point]
            return
        self.episodes.append(point)
        if self._looked:  # what was there before was not trained just now
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
    return [log for log in candidates if is_log(log)]


def is_log(path: Path) -> bool:
    """Whether a file is the log of a training."""
    try:
        with path.open("rb") as file:
            first = file.readline(_HEADER)
    except OSError:
        return False
    return set(NEEDED) <= set(first.decode("utf-8", "replace").strip().split(","))


def logs_at(path: Path) -> list[Path]:
    """Return what ``find_logs`` finds; raise InputError if that is nothing."""
    if found := find_logs(path):
        return found
    raise InputError(f"{path}: there is no training; flmarket train writes NAME.csv beside the agent")


def _numbers(row: Mapping[str, str]) -> dict[str, float]:
    found = {}
    for metric in METRICS:
        if (number := _number(row.get(metric))) is not None:
            found[metric] = number
    return found


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _preference(row: Mapping[str, str]) -> Preference | None:
    episode, offers = _number(row.get("episode")), _number(row.get("offers"))
    if episode is None or offers is None:
        return None
    bids, dqis = ([_number(row.get(f"{kind}_{part}")) for part in range(1, PARTS + 1)] for kind in ("bid", "dqi"))
    return Preference(
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


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
