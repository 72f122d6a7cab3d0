"""The home screen: scenarios to run, and runs to open or to compare."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static

from flmarket.core.errors import InputError
from scenarios.logs.run_state import RunState
from tui.state.catalogue import MOST_RUNS, Entry, read_scenario, scenarios
from tui.style.colors import signed
from tui.style.formats import matches
from tui.style.key_names import named
from tui.style.redraw import hand_over
from tui.widgets.entry_list import SECTIONS, Cells, EntryList, Section, cells
from tui.widgets.key_bar import KeyBar
from tui.widgets.preview_pane import PreviewPane

if TYPE_CHECKING:
    from tui.screens.navigation import Navigator
    from tui.state.watched_run import Session

LATER = 0.05  # seconds for the screen to draw itself before the lists are loaded
AGAIN = 1.5  # seconds between two looks while there is something new

NOTHING = "Nothing is chosen."
A_TRAINING = "That is a training; press enter to watch it."
A_SCENARIO = "That is a scenario; press r to run it."
NOT_YET = "This run has not begun yet; try again in a moment."


class HomeScreen(Screen[None]):
    """Lists scenarios and runs, with a preview of the highlighted one."""

    BINDINGS = named(
        "home",
        [
            Binding("1", "begin(0)", "Watch one: Watch a market of three services"),
            Binding("2", "begin(1)", "Paper: Play the paper's market with its policies, and compare them"),
            Binding("3", "begin(2)", "Your own: Write a scenario of your own in a form"),
            Binding("r", "run", "Run: Run the scenario, or that of the run"),
            Binding("e", "edit", "Edit: Edit the scenario in a form"),
            Binding("ctrl+e", "edit_outside", "Your editor: Edit the file in $VISUAL or $EDITOR", show=False),
            Binding("p", "replay", "Replay: Replay the run"),
            Binding("space", "mark", "Mark: Mark the run, to compare it"),
            Binding("c", "compare", "Compare marked: Compare the marked runs"),
            Binding("b", "batch", "Batch: Watch all runs of the folder"),
            Binding("slash", "search", "Search: Show only entries that have some words", key_display="/"),
            Binding("f5", "reload", "Reload: Look again what there is", show=False),
            Binding("escape", "leave_search", "List: Clear the search", show=False),
            Binding("down", "to_list", "To the list: Go to what was found", show=False),  # in the list it moves
            Binding("q", "app.quit", "Quit"),
        ],
    )
    AUTO_FOCUS = "#entries"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide"), (150, "-wider")]
    HELP = """Choose a scenario to run it, or a run to open it.

Your scenarios are the scenario files (*.toml) in the folder where flmarket was started. Recent runs are those in runs/,
or in the folder given with --out. The newest come first."""

    def __init__(self, navigator: "Navigator") -> None:
        super().__init__()
        self._navigator = navigator
        self.entries: list[Entry] = []
        self.marked: set[Path] = set()
        self._states: list[RunState] = []  # of the open runs, as they are listed

    def compose(self) -> ComposeResult:
        yield Static("[b]flmarket[/b]  federated-learning services compete for clients", id="home-title")
        with Horizontal(id="home"):
            with Vertical(id="home-left"):
                yield Input(placeholder="search", id="search", compact=True)
                yield EntryList(id="entries")
            yield PreviewPane(id="home-right")
        yield KeyBar()

    def on_mount(self) -> None:
        self.set_timer(LATER, self._list_scenarios)
        self.set_interval(AGAIN, self._follow)

    def _list_scenarios(self) -> None:
        """List what takes no imports; then the rest."""
        self._list(scenarios(self._navigator.folder, self._navigator.out))
        self.set_timer(LATER, self.action_reload)

    def on_screen_resume(self) -> None:
        if self.entries:
            self.action_reload()

    @property
    def _live(self) -> bool:
        played = any(entry.state in {RunState.RUNNING, RunState.INCOMPLETE} for entry in self.entries)
        return played or any(not session.over for session in self._navigator.sessions)

    @work(thread=True, exclusive=True, group="follow")
    def _follow(self) -> None:
        """List again what there is while runs are played, and where one has another state or has been removed."""
        if self.is_active and self.entries:
            states = [session.state for session in self._navigator.sessions]
            if self._live or states != self._states or any(not it.path.exists() for it in self.entries if it.is_run):
                self._reload()

    @work(thread=True, exclusive=True, group="reload")
    def action_reload(self) -> None:
        self._reload()

    def _reload(self) -> None:
        from tui.state.known_runs import entries

        hand_over(self.app, self._list, entries(self._navigator.folder, self._navigator.out))

    def _list(self, entries: list[Entry]) -> None:
        live, self.entries = self._live, entries
        if self.query(EntryList):  # not while the app ends
            self._refill()
            if live or self._live:
                self._preview()

    def _refill(self) -> None:
        words = self.query_one("#search", Input).value.lower().split()
        opened = {session.directory.absolute() for session in self._navigator.sessions if session.directory}
        others = [e for e in self.entries if not (e.is_run and e.path.absolute() in opened)]
        listed = {kind: [e for e in others if e.kind == kind and matches(e.title, words)] for kind in SECTIONS}
        self._states = [session.state for session in self._navigator.sessions]
        self.refresh_bindings()
        sections: list[Section[Entry | Session]] = [
            (SECTIONS["open"], list(self._open(words))),
            *(
                (self._title(kind), [(f"{kind}:{e.name}:{e.path}", self._say(e), e) for e in some])
                for kind, some in listed.items()
            ),
        ]
        self.query_one(EntryList).fill(sections, SECTIONS["open"])

    def _title(self, kind: str) -> str:
        if kind == "run" and sum(entry.is_run for entry in self.entries) == MOST_RUNS:
            return f"{SECTIONS[kind]}, the newest {MOST_RUNS} (b: all)"
        return SECTIONS[kind]

    def _say(self, entry: Entry) -> Cells:
        if entry.kind == "beginning":
            return cells(f"{self.entries.index(entry) + 1} {entry.name}", below=entry.about)
        state = signed(RunState(entry.state)) if entry.is_run else entry.state and f"✘ {entry.state}"
        marked = entry.path in self.marked
        return cells(entry.name, state, marked=marked, age=entry.age, result=entry.result, about=entry.about)

    def _open(self, words: list[str]) -> "Iterator[tuple[str, Cells, Session]]":
        """Yield the runs that are open, with what their files say of age and result; they are not listed again."""
        files = {entry.path.absolute(): entry for entry in self.entries if entry.is_run}
        # Each is asked once: a run that begins gets its directory meanwhile.
        placed = [(session, session.directory) for session in self._navigator.sessions]
        newest = {directory or session: session for session, directory in placed}
        for place, (session, directory) in enumerate(placed):
            path = directory or Path()
            known = files.get(path.absolute(), Entry("run", session.label, path))
            entry = replace(known, name=session.label, path=path, state=session.state)
            if matches(entry.title, words) and newest[directory or session] is session:
                yield f"open:{place}", self._say(entry), session

    @property
    def chosen(self) -> "Entry | Session | None":
        return next((entries.chosen for entries in self.query(EntryList)), None)  # none while the app ends

    @property
    def _entry(self) -> Entry | None:
        """The entry that is chosen, also of a run that is open; None if nothing is, or the run has no directory yet."""
        chosen = self.chosen
        if chosen is None or isinstance(chosen, Entry):
            return chosen
        return None if chosen.directory is None else Entry("run", chosen.label, chosen.directory, chosen.state)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self) -> None:
        self.refresh_bindings()
        self._preview()

    def _preview(self) -> None:
        if (entry := self._entry) is not None:
            self.query_one(PreviewPane).ask(entry)

    @on(Input.Changed, "#search")
    def _search(self) -> None:
        if self.query_one(EntryList).filled:
            self._refill()

    @on(Input.Submitted, "#search")
    def _searched(self, event: Input.Submitted) -> None:
        self._navigator.sought = event.value.lower().split()
        self.query_one("#entries").focus()

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_choose()

    @property
    def labels(self) -> dict[str, str]:
        """The effect of enter on the chosen entry."""
        match self.chosen:
            case Entry(kind="beginning"):
                return {"select": "Begin"}
            case Entry(kind="training") | Entry(state="running"):
                return {"select": "Watch"}
            case Entry(is_run=False):
                return {"select": "Run"}
            case _:
                return {"select": "Open"}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key is of use: there are beginnings, or else there may be runs."""
        begins = any(entry.kind == "beginning" for entry in self.entries)
        return begins if action == "begin" else not (begins and action in {"replay", "mark", "compare"})

    def action_begin(self, place: int) -> None:
        from tui.state.known_runs import one_to_watch, paper

        if place == 2:
            self.edit_file(self.entries[place].path, own=False)
        else:
            self._navigator.play((one_to_watch, paper)[place](self._navigator.out))

    def action_search(self) -> None:
        self.query_one("#search").focus()

    def action_leave_search(self) -> None:
        self.query_one("#search", Input).value = ""
        self.action_to_list()

    def action_to_list(self) -> None:
        self.query_one("#entries").focus()

    def action_choose(self) -> None:
        match self.chosen:
            case Entry(kind="beginning") as entry:
                self.action_begin(self.entries.index(entry))
            case Entry(kind="training", path=log):
                self._navigator.show_trainings([log])
            case Entry(is_run=False):
                self.action_run()
            case _:
                self.action_replay()

    def action_batch(self) -> None:
        self._navigator.show_batch(self._navigator.batch)

    def action_run(self) -> None:
        if (file := self._scenario_file()) is not None:
            self.run_file(file)

    def run_file(self, file: Path) -> None:
        """Ask how to run a scenario file, and run it."""
        if (text := self._read(file)) is not None:
            self._navigator.ask_and_run(text, str(file))

    def action_edit(self) -> None:
        if (file := self._scenario_file()) is not None:
            self.edit_file(file, own=getattr(self.chosen, "kind", "") == "file")

    def edit_file(self, file: Path, *, own: bool) -> None:
        """Edit a scenario file in a form; one that is not the user's own is saved as a new file."""
        if (text := self._read(file)) is not None:
            self._navigator.show_form(text, str(file), file if own else None)

    def action_edit_outside(self) -> None:
        file = self._scenario_file()
        if file is None:
            return
        if getattr(self.chosen, "kind", "") != "file":
            self.notify("Only your own scenario files are edited in place; e edits a copy in a form.", timeout=4)
        elif self._navigator.edit_outside(file):
            self.action_reload()

    def _scenario_file(self) -> Path | None:
        """Return the scenario file of what is chosen; tell the user if there is none."""
        entry = self._entry
        if entry is None:
            self.notify(NOTHING if self.chosen is None else NOT_YET, timeout=3)
        elif entry.kind == "training":
            self.notify(A_TRAINING, timeout=3)
        else:
            return entry.scenario_file
        return None

    def _read(self, file: Path) -> str | None:
        """Return a scenario file's text; notify the user if it cannot be read."""
        try:
            return read_scenario(file)
        except InputError as error:
            self.notify(str(error), severity="error", timeout=6)
            self.action_reload()
            return None

    def action_replay(self) -> None:
        chosen = self.chosen
        if chosen is None:
            self.notify(NOTHING, timeout=3)
        elif not isinstance(chosen, Entry):
            self._navigator.show_market(chosen)
        elif chosen.is_run:
            self._navigator.show_market(self._navigator.runs.open(chosen.path))
        else:
            self.notify(A_TRAINING if chosen.kind == "training" else A_SCENARIO, timeout=3)

    def action_mark(self) -> None:
        entry = self._entry
        if entry is None:
            self.notify(NOTHING if self.chosen is None else NOT_YET, timeout=3)
        elif not entry.is_run:
            self.notify("Only runs can be marked.", timeout=3)
        else:
            self.marked ^= {entry.path}
            self._refill()

    def action_compare(self) -> None:
        runs = self._navigator.runs
        listed = [*(entry.path for entry in self.entries), *(session.directory for session in runs.sessions)]
        chosen = [path for path in dict.fromkeys(listed) if path is not None and path in self.marked]
        if len(chosen) < 2:
            self.notify("Mark at least two runs first (space).", timeout=4)
            return
        self._navigator.show_comparison([runs.open(path) for path in chosen])
