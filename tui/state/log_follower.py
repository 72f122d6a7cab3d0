"""Reads a run directory into a session: a complete run, an interrupted one, or one that another process writes."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from des.behaviours.behaviour import BEHAVIOURS
from des.log_records import Kind, MarketEvent, ServiceReport
from des.observation import Status
from fl.data.registry import DATASETS
from flmarket.core.crash import defect
from flmarket.core.errors import InputError
from flmarket.core.plugins import PluginError
from scenarios.loader import ScenarioError
from scenarios.logs.columns import ALL_TABLES, CLIENTS, tables_in
from scenarios.logs.directory import META, RunDirectory, State
from scenarios.logs.reading import LogError, LoggedRound
from scenarios.plugins import require_loaded
from tui.state.stored import stored_rounds
from tui.state.watched_run import Phase, Session

INTERVAL = 0.25  # seconds between two reads of files that grow

TAIL = 16_384  # bytes at the end of a table in which its last round is looked for first

QUIET = 10.0  # seconds without growth after which a run counts as interrupted, until its files grow again


class DirectoryFeed:
    """Follows the tables of one run directory."""

    def __init__(self, session: Session, path: Path) -> None:
        self.session = session
        self._path = path
        self._files: dict[str, IO[str]] = {}
        self._lines: dict[str, list[str]] = defaultdict(list)  # complete lines that do not make a complete round yet
        self._partial: dict[str, str] = defaultdict(str)
        self._headed: set[str] = set()  # tables whose first line has been checked
        self._stop = threading.Event()

    def send(self, do: str, **_: object) -> None:
        """Do nothing: a run in a directory cannot be steered."""

    def close(self) -> None:
        """Stop following."""
        self._stop.set()

    def read(self) -> None:
        """Read all rounds, and new ones as they come, until the run has ended."""
        try:
            whole = self._identify()
            if whole:
                self._take_all()
            else:
                self._follow()
        except PluginError as error:  # names the run itself
            self.session.move(Phase.FAILED, str(error))
        except (OSError, UnicodeError, InputError, ScenarioError, LogError) as error:
            self.session.move(Phase.FAILED, f"{self._path}: cannot be replayed: {error}")
        except Exception as error:  # in a thread, where a failure would go unseen
            self.session.move(Phase.FAILED, defect(error))
        finally:
            for file in self._files.values():
                file.close()

    def _identify(self) -> bool:
        """Set what is run; return whether the run is complete, and its files are what was written."""
        whole, labels = False, {}
        if (self._path / META).exists():
            run = RunDirectory(self._path)
            meta = run.meta()
            kinds = DATASETS.kind, BEHAVIOURS.kind
            needed = {thing: record for thing, record in meta["plugins"].items() if thing.rpartition(" ")[0] in kinds}
            require_loaded(needed, str(self._path))  # bids depend on them; nothing else is needed to show a run
            labels = meta["labels"]
            if whole := run.state is State.COMPLETE:
                run.require_whole(digests=True)
        scenario = RunDirectory(self._path).scenario_text()
        seed = self._path.name.removeprefix("seed-")
        if not (seed.isascii() and seed.isdigit()):
            raise LogError("not a run directory; its name must be seed-NNNN")
        hash8 = self._path.parent.parent.name.rpartition("-")[2]
        policy = self._path.parent.name
        self.session.identify(self._path, scenario, policy=policy, seed=int(seed), hash8=hash8, sweep={}, labels=labels)
        return whole

    def _take_all(self) -> None:
        """Read a complete run, whose rounds need no look at each of their lines to know where they end."""
        self.session.add_whole(self._path, stored_rounds(self._path))
        self._conclude()

    def _follow(self) -> None:
        while not self._stop.is_set():
            # In this order: what was written before meta.json is in the tables when they are read.
            ended = (self._path / META).exists()
            self._take_rounds()
            if ended:
                self._conclude()
                return
            quiet = time.time() - self._changed() > QUIET
            phase = Phase.INTERRUPTED if quiet else Phase.GROWING
            if phase is not self.session.phase:
                self.session.move(phase)
            # It may only have paused: keep reading.
            self._stop.wait(INTERVAL)

    def _conclude(self) -> None:
        run = RunDirectory(self._path)
        error = run.meta().get("error")
        if run.state is State.COMPLETE:
            self.session.sweep = run.meta()["sweep"]
            self.session.move(Phase.COMPLETE)
        else:
            self.session.move(Phase.FAILED, f"{error or 'the run failed'}\nlog: {self._path / 'run.log'}")

    def _changed(self) -> float:
        times = [path.stat().st_mtime for table in ALL_TABLES.values() if (path := table.path(self._path)).exists()]
        return max(times, default=0.0)

    def _take_rounds(self) -> None:
        for table in ALL_TABLES:
            self._read_lines(table)
        while (text := self._next_round()) is not None:
            self.session.add(text)

    def _read_lines(self, table: str) -> None:
        if table not in self._files:
            path = ALL_TABLES[table].path(self._path)
            if not path.exists():
                return
            self._files[table] = path.open(encoding="utf-8", newline="")
        text = self._partial[table] + self._files[table].read()
        lines = text.split("\n")
        self._partial[table] = lines.pop()
        if lines and table not in self._headed:
            ALL_TABLES[table].check_header(lines.pop(0).split(","), ALL_TABLES[table].path(self._path))
            self._headed.add(table)
        self._lines[table] += lines

    def _next_round(self) -> dict[str, str] | None:
        """Return the text of the next round, or None if it is not complete yet."""
        number = f"{len(self.session.history) + 1},"
        text = {}
        tables = tables_in(self._path)
        for table in tables:
            lines = self._lines[table]
            end = next((i for i, line in enumerate(lines) if not line.startswith(number)), len(lines))
            text[table] = "".join(line + "\n" for line in lines[:end])
        if not self._is_complete(text):
            return None
        for table in tables:
            del self._lines[table][: text[table].count("\n")]
        return text

    def _is_complete(self, text: dict[str, str]) -> bool:
        """Whether all rows of a round are present; the tables are written one after the other, in pieces."""
        scenario = self.session.scenario
        assert scenario is not None  # noqa: S101 - known before any table is read
        if text["rounds"].count("\n") < len(scenario.services):
            return False
        logged = LoggedRound.read(text)
        logged.check([service.name for service in scenario.services], scenario.clients.count)
        wanted = sum(row.wanted for row in logged.services)
        if len(logged.offers) < wanted or text.get(CLIENTS.name, "\n" * wanted).count("\n") < wanted:
            return False
        events: dict[str | None, list[MarketEvent]] = defaultdict(list)
        for event in logged.events:
            events[event.service].append(event)
        return all(
            self._service_is_complete(row, events[row.service]) for row in logged.services if row.status.takes_part
        )

    @staticmethod
    def _service_is_complete(row: ServiceReport, events: Sequence[MarketEvent]) -> bool:
        """Whether all events of a service that took part are present, up to its last."""
        count = Counter(event.event for event in events)
        # A mechanism such as ``iterated`` lets a service decide several times.
        offered = sum(event.amount or 0 for event in events if event.event is Kind.DECISION)
        return (
            count[Kind.DECISION] > 0
            and offered == row.offered
            and count[Kind.PAY] == row.served
            and count[Kind.EXIT] == (row.status is Status.REACHED)
        )


def last_services(path: Path) -> tuple[int, tuple[ServiceReport, ...]]:
    """Return the newest round of a run directory and its services, without reading the rest."""
    table = path / "rounds.csv"
    if not table.exists():
        return 0, ()
    with table.open("rb") as file:
        lines = _last_round(file)
    if not lines or lines[-1].startswith("round,"):
        return 0, ()
    number = lines[-1].partition(",")[0]
    newest = "".join(f"{line}\n" for line in lines if line.startswith(f"{number},"))
    return int(number), LoggedRound.read({"rounds": newest, "offers": "", "events": ""}).services


def _last_round(file: IO[bytes]) -> list[str]:
    """Return the whole lines at the end of a table, back to before its last round or to its beginning."""
    end, length = file.seek(0, 2), TAIL
    while True:
        file.seek(max(0, end - length))
        lines = file.read(length).decode("utf-8", "replace").split("\n")[:-1]
        number = lines[-1].partition(",")[0] if lines else ""
        if length >= end or any(not line.startswith(f"{number},") for line in lines[1:]):
            return lines
        length *= 8
