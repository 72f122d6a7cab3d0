"""Follows the run of a directory: a complete one, an interrupted one, or one that a process writes."""

import threading
from pathlib import Path

from des.behaviour import BEHAVIOURS
from fl.data.registry import DATASETS
from flmarket.core.crash import defect
from flmarket.core.errors import InputError
from flmarket.core.plugins import PluginError
from scenarios.file.client_files import require_same_partitions, require_same_trace
from scenarios.loader import ScenarioError
from scenarios.logs.directory import LOG, META, RunDirectory
from scenarios.logs.reading import LogError, LoggedRound, RunReader
from scenarios.logs.run_state import RunState
from scenarios.plugin_files import require_loaded
from tui.state.run_standing import state_of
from tui.state.watched_run import Session

INTERVAL = 0.25  # seconds between two reads of files that grow


class DirectoryFeed:
    """Reads a run directory into a session; a run that another process plays, round by round."""

    def __init__(self, session: Session, path: Path) -> None:
        self.session = session
        self._path = path
        self._stop = threading.Event()

    def send(self, do: str, **_: object) -> None:
        """Do nothing: a run in a directory cannot be steered."""

    def close(self) -> None:
        """Stop following."""
        self._stop.set()

    def read(self) -> None:
        """Read all rounds, and new ones as they come, until the run has ended."""
        try:
            if self._identify():
                self.session.add_whole(self._path, RunReader(self._path).whole())
                self._conclude()
            else:
                self._follow()
        except PluginError as error:  # names the run itself
            self.session.move(RunState.UNREADABLE, str(error))
        except (OSError, UnicodeError, InputError, ScenarioError, LogError) as error:
            self.session.move(RunState.UNREADABLE, f"{self._path}: cannot be replayed: {error}")
        except Exception as error:  # in a thread, where a failure would go unseen
            self.session.move(RunState.UNREADABLE, defect(error))

    def _identify(self) -> bool:
        """Set what is run; return whether the run is complete, and its files are what was written."""
        whole, labels, meta = False, {}, None
        if (self._path / META).exists():
            run = RunDirectory(self._path)
            meta = run.meta()
            kinds = DATASETS.kind, BEHAVIOURS.kind
            needed = {thing: record for thing, record in meta["plugins"].items() if thing.rpartition(" ")[0] in kinds}
            require_loaded(needed, str(self._path))  # bids depend on them; nothing else is needed to show a run
            labels = meta["labels"]
            if whole := run.state is RunState.COMPLETE:
                run.require_whole(digests=True)
        self.session.identify(self._path, RunDirectory(self._path).scenario_text(), labels=labels)
        if meta is not None and (scenario := self.session.scenario) is not None:
            require_same_trace(scenario, meta, "clients.availability")
            require_same_partitions(scenario, meta, "data.partition")  # bids depend on it, as on a plug-in
        return whole

    def _follow(self) -> None:
        scenario = self.session.scenario
        assert scenario is not None  # noqa: S101 - it has been identified
        services = [service.name for service in scenario.services]
        reader = RunReader(self._path)
        while not self._stop.is_set():
            # In this order: what was written before meta.json is in the tables when they are read.
            state = state_of(self._path)
            if state is RunState.RUNNING:
                self._move(state)  # before rounds are read, of which there may be thousands
            for text in reader.grow(len(services)):
                LoggedRound.read(text).check(services, scenario.clients.count)
                self.session.add(text)
            if state in {RunState.COMPLETE, RunState.FAILED}:
                self._conclude()
                return
            self._move(state)
            # Where files have no locks, an interrupted run may only have paused: keep reading.
            self._stop.wait(INTERVAL)

    def _move(self, state: RunState) -> None:
        if state is not self.session.state:
            self.session.move(state)

    def _conclude(self) -> None:
        run = RunDirectory(self._path)
        error = run.meta().get("error")
        if run.state is RunState.COMPLETE and len(self.session.history) != run.meta()["rounds"]:
            raise LogError("the run was started over while it was watched; open it again")
        if run.state is RunState.COMPLETE:
            self.session.sweep = run.meta()["sweep"]
            self.session.move(RunState.COMPLETE)
        else:
            self.session.move(RunState.FAILED, f"{error or 'the run failed'}\nlog: {self._path / LOG}")
