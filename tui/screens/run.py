"""The dialog before a run: seed, policies, point of the sweep, and what to do if the run already exists."""

from dataclasses import dataclass
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Key
from textual.widgets import Button, Input, Label, Select, SelectionList, Static
from textual.widgets.selection_list import Selection

from fl.errors import InputError
from learning.policy import AS_CONFIGURED
from learning.policy import names as policy_names
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, points, settled, with_policy
from scenarios.logs.directory import RunDirectory, State
from scenarios.running.protocol import Start
from tui.screens.dialog import Box, Dialog
from tui.watching.catalogue import find_run
from tui.widgets.marks import MarkList, Tick

RESUMES = "The run resumes from its last checkpoint. To begin again at round 1, run it with “start over” ticked."
"""Shown when an interrupted run is started."""


@dataclass(frozen=True)
class Choice:
    """What the user chose.

    Attributes:
        starts: the runs to start, each with its label.
        replay: the directories of complete runs to open.
        resumes: whether some of the runs were interrupted, and resume.
    """

    starts: tuple[tuple[Start, str], ...]
    replay: tuple[Path, ...]
    resumes: bool = False


class _Seed(Input):
    """The field of the seed. It leaves other characters than digits to the keys of the dialog."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether a key is typed into the field."""
        return super().check_consume_key(key, character) and (character or "").isdigit()


class RunDialog(Dialog[Choice]):
    """Asks how to run a scenario. Enter opens a complete run; replacing it takes the button “Run again”."""

    NAME = "Run"
    HELP = """\
The seed decides all that is random: the same scenario, policies and seed give the same run. Each marked policy plays a
run of its own, in which all services use it; “as configured” leaves each service the policy of the scenario.

A run that is complete can be opened, or run again, which replaces it. One that was interrupted resumes from its last
checkpoint, or starts over."""
    BINDINGS = [Binding("question_mark,f1", "app.help", "Help", key_display="?", priority=True)]

    def __init__(self, scenario: Scenario, text: str, file: str, out: Path) -> None:
        super().__init__()
        self._scenario, self._text, self._file, self._out = scenario, text, file, out
        self._points = points(scenario)

    def compose(self) -> ComposeResult:
        """Lay out the dialog."""
        with Box():
            yield Static(f"[b]Run {self._scenario.name}[/b]")
            with Horizontal(classes="row"):
                yield Label("seed")
                yield _Seed("0", type="integer", id="seed", compact=True)
                yield Tick("start paused", id="paused", compact=True)
                yield Tick("start over", id="over", compact=True)
            if len(self._points) > 1:
                yield Label("point of the sweep")
                places = [(Content(point.label), i) for i, point in enumerate(self._points)]
                yield Select(places, value=0, allow_blank=False, id="point", compact=True)
            yield Label("policies (mark with space; several run at once and are compared)")
            yield MarkList[str](
                Selection("as configured: each service uses its own", AS_CONFIGURED, initial_state=True),
                *(Selection(f"{name} for all services", name) for name in policy_names()),
                id="policies",
                compact=True,
            )
            yield Static("", classes="problem", id="run-problem")
            with Horizontal(classes="buttons"):
                yield Button("Run", variant="primary", id="go", compact=True)
                yield Button("Open complete run", id="replay", compact=True)
                yield Button("Cancel", id="cancel", compact=True)

    def on_mount(self) -> None:
        """Check which runs already exist, and focus what comes next: opening a complete run, or else the seed."""
        self._update()
        self.query_one("#replay" if self.query_one("#replay").display else "#seed").focus()

    def on_key(self, event: Key) -> None:
        """Take digits that are typed while a button has the focus as a new seed."""
        if isinstance(self.focused, Button) and event.character in set("0123456789"):
            seed = self.query_one("#seed", Input)
            self.set_focus(seed)  # which selects the old seed, so that the digit replaces it
            seed.post_message(Key(event.key, event.character))
            event.stop()

    @property
    def _seed(self) -> int | None:
        text = self.query_one("#seed", Input).value
        return int(text) if text.isdigit() and len(text) <= 9 else None

    def _planned(self) -> list[tuple[str, int, RunDirectory | None]]:
        """Return each run's policy, sweep point, and directory if it exists.

        Raises:
            ScenarioError: the sweep point asks for another policy.
            PluginError: a marked policy's package is broken.
        """
        seed, point = self._seed, 0
        if self.query("#point"):
            value = self.query_one("#point", Select).value
            point = value if isinstance(value, int) else 0
        planned = []
        for policy in self.query_one(SelectionList).selected:
            scenario = self._points[point].scenario
            chosen = scenario if policy == AS_CONFIGURED else with_policy(scenario, policy)
            found = None if seed is None else find_run(self._out, dumps(settled(chosen)), scenario.name, policy, seed)
            planned.append((policy, point, found))
        return planned

    @on(Input.Changed)
    @on(Select.Changed)
    @on(SelectionList.SelectedChanged)
    @on(Tick.Changed)
    def _update(self) -> None:
        """Show what the buttons will do."""
        go, replay = self.query_one("#go", Button), self.query_one("#replay", Button)
        try:
            planned = self._planned()
            states = [found.state for _, _, found in planned if found is not None]
        except InputError as error:
            go.disabled, replay.display = True, False
            self.show_problem(str(error))
            return
        go.disabled = self._seed is None or not planned
        replay.display = State.COMPLETE in states
        over = self.query_one("#over", Tick)
        over.display = State.INCOMPLETE in states
        if self._seed is None:
            self.show_problem("the seed must be a whole number of at most nine digits")
        elif not planned:
            self.show_problem("mark at least one policy")
        elif State.COMPLETE in states:
            self.show_problem("A complete run exists: open it, or run it again to replace it.")
        elif states and over.value:
            self.show_problem("An interrupted run exists; it starts over.")
        elif states:
            self.show_problem("An interrupted run exists; it resumes where it stopped.")
        else:
            self.show_problem("")
        go.variant, replay.variant = ("default", "primary") if replay.display else ("primary", "default")
        go.label = "Run" if not states else "Run again" if State.COMPLETE in states or over.value else "Resume"

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if self.query_one("#replay").display:
            self._replay()
        else:
            self._go()

    @on(Button.Pressed, "#go")
    def _go(self) -> None:
        seed = self._seed
        if seed is None or self.query_one("#go", Button).disabled:
            return
        planned = self._planned()
        starts, resumes = [], False
        for policy, point, found in planned:
            unfinished = found is not None and found.state is State.INCOMPLETE
            over = found is not None and (not unfinished or self.query_one("#over", Tick).value)
            start = Start(
                self._text, self._file, str(self._out), None if policy == AS_CONFIGURED else policy, point, seed,
                fresh=over, paused=self.query_one("#paused", Tick).value,
            )  # fmt: skip
            starts.append((start, f"{self._scenario.name} · {policy} · seed {seed}"))
            resumes = resumes or (unfinished and not over)
        self.dismiss(Choice(tuple(starts), (), resumes))

    @on(Button.Pressed, "#replay")
    def _replay(self) -> None:
        done = [found.path for _, _, found in self._planned() if found and found.state is State.COMPLETE]
        self.dismiss(Choice((), tuple(done)))

    @on(Button.Pressed, "#cancel")
    def _cancel(self) -> None:
        self.dismiss(None)
