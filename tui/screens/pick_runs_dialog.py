"""The runs to compare one with: open runs, earlier ones, or the same market under another policy, started now."""

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, SelectionList, Static
from textual.widgets.selection_list import Selection

from scenarios.loader import dumps
from scenarios.logs.directory import META, SCENARIO
from scenarios.running.steering import Start
from tui.screens.dialog import Box, Dialog
from tui.screens.start_run_dialog import RESUMES
from tui.state.known_runs import all_runs, policies_of
from tui.state.run_standing import run_label
from tui.state.runs import Runs
from tui.state.watched_run import Session
from tui.widgets.tick_boxes import MarkList


class PickRunsDialog(Dialog[list[Session]]):
    """Asks for runs to compare one with; those that are new are started."""

    AUTO_FOCUS = "#others"
    labels = {"go": "Compare"}

    def __init__(self, session: Session, runs: Runs, out: Path) -> None:
        """Ask; ``out`` is the folder of run directories, where the run's own is not known yet."""
        super().__init__()
        self._session, self._runs = session, runs
        self._out = out if session.directory is None else session.directory.parent.parent.parent

    def compose(self) -> ComposeResult:
        session = self._session
        options = [
            Selection(Content(f"open: {self._named(other)}"), f"open:{i}", initial_state=other is session.origin)
            for i, other in enumerate(self._runs.sessions)
            if other is not session
        ]
        if session.scenario is not None:
            options += [
                Selection(f"new: {name} for all services, seed {session.seed}", f"policy:{name}")
                for name in policies_of(session.scenario)
                if name != session.policy
            ]
        options += [Selection(Content(f"run: {name}"), f"run:{path}") for name, path in self._earlier()]
        with Box():
            title = (f"Compare {session.label} with", "bold")
            yield Static(Content.assemble(title, "  (space marks several, enter compares)"))
            yield MarkList[str](*options, id="others", compact=True)
            yield from self.answers("Compare")

    def _named(self, other: Session) -> str:
        words = ", the original" if other is self._session.origin else ""
        return f"{other.label} ({other.state}{words})"

    def _earlier(self) -> list[tuple[str, Path]]:
        """Return all runs on disk that are not open, those of the same market first, the newest first."""
        opened = {other.directory.resolve() for other in self._runs.sessions if other.directory is not None}
        found = [(name, path) for name, path in all_runs(self._out) if path.resolve() not in opened]
        directory = self._session.directory
        same = None if directory is None else directory.parent.parent.name
        return sorted(found, key=lambda item: item[1].parent.parent.name != same)

    @on(Button.Pressed, "#go")
    def _go(self) -> None:
        chosen = self.query_one(SelectionList).selected
        if not chosen:
            self.show_problem("mark at least one run with space")
            return
        self.dismiss(list(map(self._open, chosen)))

    def _open(self, chosen: str) -> Session:
        kind, _, rest = chosen.partition(":")
        if kind == "open":
            return self._runs.sessions[int(rest)]
        if kind == "run":
            return self._runs.open(Path(rest))
        session = self._session
        assert session.scenario is not None  # noqa: S101 - policies are offered only where it is known
        assert session.directory is not None  # noqa: S101
        known = self._out / session.directory.parent.parent.name / rest / session.directory.name
        if (known / SCENARIO).exists() and (known / META).exists():
            return self._runs.open(known)
        text, label = dumps(session.scenario), run_label(session.scenario.name, rest, session.seed)
        opened, unfinished = set(self._runs.sessions), (known / SCENARIO).exists()
        started = self._runs.start(Start(text, "the same market", str(self._out), rest, seed=session.seed), label)
        if unfinished and started not in opened and self._runs.steerable(started):
            self.app.notify(RESUMES, title="Interrupted run", timeout=8)
        return started
