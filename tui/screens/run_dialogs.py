"""The dialogs that ask for runs: how to run a scenario, or a whole sweep of it, and which runs to compare one with."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Key
from textual.widgets import Button, Input, Label, Select, SelectionList, Static
from textual.widgets.selection_list import Selection

from fl.backends import BACKENDS
from flmarket.core.declared import declared
from flmarket.core.errors import InputError
from flmarket.core.installation import usable_cores
from flmarket.core.text import counted, spans
from learning.policy import AS_CONFIGURED
from scenarios.file.schema import Scenario
from scenarios.loader import SweepPoint, dumps, points, settled, with_policy, with_values
from scenarios.logs.directory import META, SCENARIO, RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running.run_options import RunOptions, parse_seeds
from scenarios.running.steering import Start
from tui.screens.dialog import Box, Dialog, MarkList, Tick
from tui.state.known_runs import all_runs, find_run, policies_of
from tui.state.pace import to_watch
from tui.state.run_standing import run_label
from tui.state.runs import LiveBatch, Runs
from tui.state.watched_run import Session
from tui.style.redraw import hand_over
from tui.style.sentences import plugin_words

RESUMES = "The run resumes from its last checkpoint. To begin again at round 1, run it with “start over” ticked."
"""Shown when an interrupted run is started."""


MOST_RUNS = 100  # runs that are opened and compared as they play; more are a batch
MOST_IN_BATCH = 10_000
SEEDS_ARE = "10 is seeds 0 to 9 | 0,3,7 | 0..9"  # how seeds are typed
WHOLE = -1  # the place of no point: all of them
TICKED = tuple(declared(Start))  # what a run can be told, as boxes to tick


@dataclass(frozen=True)
class ChosenRuns:
    """The user's choice."""

    starts: tuple[tuple[Start, str], ...]  # the runs to start, each with its label
    replay: tuple[Path, ...]  # the directories of complete runs to open
    note: str = ""  # what to say of those that are started
    batch: LiveBatch | None = None  # in their place, a batch to play


@dataclass(frozen=True, slots=True)
class _Planned:
    """One run that is asked for, and its directory if it exists."""

    policy: str
    point: int
    seed: int
    directory: RunDirectory | None

    @property
    def unfinished(self) -> bool:
        return self.directory is not None and self.directory.state is not RunState.COMPLETE

    @property
    def played(self) -> bool:
        return self.unfinished and self.directory is not None and self.directory.being_played()


class StartRunDialog(Dialog[ChosenRuns]):
    """Asks how to run a scenario. Enter opens a complete run; replacing it takes the button “Run again”."""

    NAME = "Run"
    HELP = """\
The seed decides all that is random: the same scenario, policies and seed give the same run. Seeds are
typed as after [b]flmarket run --seeds[/b]: [b]5[/b] is seeds 0 to 4, [b]0,3[/b] is these two, and [b]3..3[/b] is seed 3
alone. Each gives a run, and several are compared by their means. Each marked policy plays a run of its own, in which
all services use it; “as configured” leaves each service the policy of the scenario. As many runs play at a time as
there are cores; the others wait.

All points of a sweep, or more than 100 runs, are played as [b]flmarket run[/b] plays them, and followed on the screen
Batch: complete runs are skipped, interrupted ones resume.

A run that is complete can be opened, or run again, which replaces it. One that was interrupted resumes from its last
checkpoint, or starts over.

To tick: """ + " ".join(option.sentence for option in TICKED)
    AUTO_FOCUS = "#policies"

    def __init__(self, scenario: Scenario, text: str, file: str, out: Path) -> None:
        """Ask; where the file is a run's, propose that run."""
        super().__init__()
        self._scenario, self._text, self._file, self._out = scenario, text, file, out
        self._points = points(scenario)
        self._seated: dict[tuple[str, str], list[SweepPoint]] = {}  # by backend and policy

    def compose(self) -> ComposeResult:
        policies = policies_of(self._scenario)
        policy, seed = _as_played(Path(self._file))
        with Box():
            yield Static(f"[b]Run {self._scenario.name}[/b]")
            with Horizontal(classes="row"):
                own = self._scenario.training.backend
                backends = [(f"{own} (the scenario's)", ""), *((name, name) for name in BACKENDS if name != own)]
                yield Label("backend")
                yield Select(backends, value="", allow_blank=False, id="backend", compact=True)
                if len(self._points) > 1:
                    places = [(Text(point.label), i) for i, point in enumerate(self._points)]  # which typing searches
                    whole = (f"all {len(places)} points", WHOLE)
                    yield Label("sweep")
                    yield Select([whole, *places], value=WHOLE, allow_blank=False, id="point", compact=True)
            with Horizontal(classes="row"):
                yield Label("seeds")
                yield Input(f"{seed}..{seed}" if seed else "1", id="seed", compact=True)
                for option in TICKED:
                    yield Tick(option.label, option.default, id=option.name, compact=True)
            yield Static(id="seed-hint")
            yield Label("policies for all services (space marks, typing searches; several are compared)")
            yield MarkList[str](
                Selection("as configured: each service uses its own", AS_CONFIGURED, policy not in policies),
                *(Selection(name, name, name == policy) for name in policies),
                id="policies",
                compact=True,
            )
            yield Static("", classes="problem", id="run-problem")
            with Horizontal(classes="buttons"):
                yield Button("Run", variant="primary", id="go", compact=True)
                yield Button("Open complete run", id="replay", compact=True)
                yield Button("Cancel", id="cancel", compact=True)

    def on_mount(self) -> None:
        self._update()
        self._describe(policies_of(self._scenario))

    @work(thread=True)
    def _describe(self, policies: Sequence[str]) -> None:
        """Say in the list what each policy is; in a thread, because some take seconds to load."""
        for place, name in enumerate(policies, 1):
            what, options = plugin_words("policy", name)
            words = f"{what} ({options})" if options else what
            hand_over(self.app, self.query_one(MarkList).describe, place, name, words)

    def on_key(self, event: Key) -> None:
        """Take digits that are typed elsewhere as new seeds, with what follows them before the field has the focus."""
        if event.character in set("0123456789.,"):
            seed = self.query_one("#seed", Input)
            self.set_focus(seed)  # which selects the old text, so that the digit replaces it
            seed.post_message(Key(event.key, event.character))
            event.stop()

    @property
    def labels(self) -> dict[str, str]:
        return {"go": str(self.query_one("Button.-primary", Button).label)}

    @property
    def _seeds(self) -> list[int]:
        return parse_seeds(self.query_one("#seed", Input).value)

    @property
    def _options(self) -> RunOptions:
        """The options of ``flmarket run`` that are chosen."""
        backend, fresh = self.query_one("#backend", Select).value, self.query_one("#fresh", Tick).value
        return RunOptions(out=self._out, backend=str(backend) or None, fresh=fresh, jobs=usable_cores())

    @property
    def _point(self) -> int:
        values = [select.value for select in self.query("#point").results(Select)]
        return next((value for value in values if isinstance(value, int)), 0)

    def _count(self) -> int:
        """Return how many runs are asked for; raise InputError if they cannot be played."""
        places = [len(self._points_with(policy)) for policy in self.query_one(SelectionList).selected]
        count = len(self._seeds) * (sum(places) if self._point == WHOLE else len(places))
        if count > MOST_IN_BATCH:
            raise InputError(f"{count:,} runs are too many; choose at most {MOST_IN_BATCH:,}, or use flmarket run")
        return count

    def _is_batch(self, count: int) -> bool:
        return count > 0 and (self._point == WHOLE or count > MOST_RUNS)

    def _points_with(self, policy: str) -> Sequence[SweepPoint]:
        values = self._options.values
        key = str(values), policy
        if key not in self._seated:
            scenario = with_values(self._scenario, values)
            self._seated[key] = points(scenario if policy == AS_CONFIGURED else with_policy(scenario, policy))
        return self._seated[key]

    def _planned(self) -> list[_Planned]:
        planned = []
        for policy in self.query_one(SelectionList).selected:
            scenario = self._points_with(policy)[self._point].scenario
            text = dumps(settled(scenario))
            planned += [
                _Planned(policy, self._point, seed, find_run(self._out, text, scenario.name, policy, seed))
                for seed in self._seeds
            ]
        return planned

    @on(Input.Changed)
    @on(Select.Changed)
    @on(SelectionList.SelectedChanged)
    @on(Tick.Changed)
    def _update(self) -> None:
        self._explain_seeds()
        go, replay = self.query_one("#go", Button), self.query_one("#replay", Button)
        try:
            batch = self._is_batch(count := self._count())
            planned = [] if batch else self._planned()
            states = [run.directory.state for run in planned if run.directory is not None]
        except InputError as error:
            go.disabled, replay.display = True, False
            go.variant, replay.variant = "primary", "default"
            self.show_problem(str(error))
            return
        complete, over = states.count(RunState.COMPLETE), self.query_one("#fresh", Tick)
        go.disabled = not count
        replay.display = bool(complete)
        over.display = batch or any(run.unfinished for run in planned)
        self.query_one("#paused").display = not batch
        played = sum(run.played for run in planned)
        self.show_problem(self._about_batch(count) if batch else self._explain(count, states, played))
        go.variant, replay.variant = ("default", "primary") if complete else ("primary", "default")
        go.label = "Run" if not states else "Run again" if complete or over.value else "Resume"
        if played and played == len(states) and not over.value:
            go.label = "Watch" if played == len(planned) else "Run"
        if batch:
            go.label = f"Run {count:,}"
        replay.label = "Open complete run" if len(planned) == 1 else "Open complete runs"
        if 0 < complete < len(planned):
            replay.label = f"Open {complete}, run {len(planned) - complete}"
        self.refresh_bindings()

    def _explain_seeds(self) -> None:
        """Say what the typed seeds are, and how others are typed."""
        meant = ""
        with suppress(InputError):
            seeds = sorted(self._seeds)
            meant = f"{'seed' if len(seeds) == 1 else 'seeds'} {spans(seeds)}; "
        self.query_one("#seed-hint", Static).update(Content(meant + SEEDS_ARE))

    def _about_batch(self, count: int) -> str:
        """Return what becomes of the runs of a batch, of which there are so many."""
        cores, over = usable_cores(), self.query_one("#fresh", Tick).value
        those = "all start over" if over else "complete ones stay, the others are played"
        return f"{counted(count, 'run')}, {cores} at a time; {those}."

    def _explain(self, count: int, states: Sequence[RunState], played: int) -> str:
        """Return what the buttons will do, given how many runs are asked for, exist in these states, and are played."""
        complete, over = states.count(RunState.COMPLETE), self.query_one("#fresh", Tick).value
        if not count:
            return "mark at least one policy"
        if 0 < complete < count:
            return f"{complete} of {count} runs are complete: open them and run the others, or run all again."
        if complete and count == 1:
            return "A complete run exists: open it, or run it again to replace it."
        if complete:
            return "All these runs are complete: open them, or run them again to replace them."
        if states:
            which = "An interrupted run exists" if len(states) == 1 else f"{len(states)} interrupted runs exist"
            one = len(states) == 1
            if played and not over:
                return (
                    "This run is being played: watch it."
                    if count == 1
                    else f"{played} of these runs are being played; they are opened."
                )
            if over:
                return f"{which}; {'it starts' if one else 'they start'} over."
            return f"{which}; {'it resumes where it stopped' if one else 'they resume where they stopped'}."
        cores = usable_cores()
        waits = f"{count} runs: {cores} at a time, as many as there are cores; the others wait."
        return waits if count > cores else ""

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._update()  # enter may come before the news of what was typed
        if self.query_one("#replay").display:
            self._replay()
        else:
            self._go()

    @on(Button.Pressed, "#go")
    def _go(self) -> None:
        self._update()
        if self.query_one("#go", Button).disabled:
            return
        if self._is_batch(self._count()):
            policies = self.query_one(SelectionList).selected
            self.dismiss(ChosenRuns((), (), batch=LiveBatch(self._scenario, policies, self._seeds, self._options)))
        else:
            self._finish(self._planned(), [])

    @on(Button.Pressed, "#replay")
    def _replay(self) -> None:
        self._update()
        if not self.query_one("#replay").display:
            return
        done, others = [], []
        for run in self._planned():
            if run.directory and run.directory.state is RunState.COMPLETE:
                done.append(run.directory.path)
            else:
                others.append(run)
        self._finish(others, done)

    def _finish(self, planned: Sequence[_Planned], done: Sequence[Path]) -> None:
        starts, resumes = [], False
        values = self._options.values
        text = dumps(with_values(self._scenario, values)) if values else self._text
        for run in planned:
            rounds = self._points[run.point].scenario.rounds
            speed = to_watch(rounds) if len(planned) + len(done) == 1 else None
            over = run.directory is not None and (not run.unfinished or self.query_one("#fresh", Tick).value)
            start = Start(
                text, self._file, str(self._out), None if run.policy == AS_CONFIGURED else run.policy, run.point,
                run.seed, fresh=over, paused=self.query_one("#paused", Tick).value, speed=speed,
            )  # fmt: skip
            starts.append((start, run_label(self._scenario.name, run.policy, run.seed)))
            resumes = resumes or (run.unfinished and not run.played and not over)
        self.dismiss(ChosenRuns(tuple(starts), tuple(done), RESUMES if resumes else ""))


def _as_played(file: Path) -> tuple[str, int]:
    """Return the policy and the seed of the run whose scenario a file is; of another file, how it is played first."""
    seed = re.fullmatch(r"seed-(\d+)", file.parent.name)
    return (file.parent.parent.name, int(seed[1])) if seed else (AS_CONFIGURED, Start.seed)


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
                Selection(f"new: {name}, seed {session.seed}", f"policy:{name}")
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
        runs = [(name, path) for name, path in all_runs(self._out) if path.resolve() not in opened]
        directory = self._session.directory
        same = None if directory is None else directory.parent.parent.name
        return sorted(runs, key=lambda item: item[1].parent.parent.name != same)

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
