"""The configure screen: a scenario as a form that is made from the schema and checked while the user types."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from threading import Lock

from rich.console import RenderableType
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.css.query import NoMatches
from textual.errors import NoWidget
from textual.geometry import Offset
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Static, Tab, TabbedContent, TabPane
from textual.worker import get_current_worker

from fl.data.registry import load
from flmarket.core.errors import InputError
from flmarket.core.files import replacing_text
from scenarios.build import Shelf
from scenarios.file.checks import installed
from scenarios.file.keys import Key, keys, schema_at
from scenarios.file.problems import NAMED, key_text
from scenarios.file.problems import Path as KeyPath
from scenarios.file.sweeps import flatten, sweepable
from scenarios.file.toml import Positions, value_text
from scenarios.loader import Problem, ScenarioError, parse, points
from scenarios.playable import remarks, validation
from tui.screens.dialog import Box, Dialog, Jump, LeaveDialog
from tui.screens.navigation import Navigator
from tui.state.catalogue import read_scenario
from tui.state.scenario_document import ABSENT, ScenarioDocument, Version
from tui.style.formats import end_of
from tui.style.key_names import named
from tui.style.redraw import hand_over
from tui.style.sentences import Meanings, meanings, plugin_meanings
from tui.textual_internals import is_going
from tui.widgets.form_field import FieldRow
from tui.widgets.key_bar import KeyBar
from tui.widgets.preview import numbered, scenario_preview
from tui.widgets.sub_form import Fields, SubForm

PAUSE = 0.15  # seconds between the last keystroke and the checks

PANES = {
    "Market": "tab-market",
    "Clients": "tab-clients",
    "Groups": "tab-groups",
    "Services": "tab-services",
    "Training": "tab-training",
    "Timeline": "tab-timeline",
    "Sweep": "tab-sweep",
    "Interventions": "tab-interventions",
}

# on tabs of other names
ELSEWHERE = {"data": "clients", "runs": "sweep", **dict.fromkeys(("name", "description", "rounds", "dqi"), "market")}
SERVICES = ("services",)
ON_TAB = "on its tab a group, an intervention or a swept key"
SWEEP = PANES["Sweep"]
NEW = ("sweep", "")  # the row in which a key that is to be swept is chosen


@cache
def sub_forms() -> Mapping[str, Key]:
    """Return the keys whose values are lists of tables with keys of their own, by the tab of each."""
    lists = [key for key in keys() if "properties" in (schema_at((*key.path, 0)) or {})]
    return {f"tab-{key.path[-1]}": key for key in lists}


class SaveDialog(Dialog[Path]):
    """Asks for a file; an existing one is replaced only if Save is pressed twice."""

    def __init__(self, proposed: Path) -> None:
        super().__init__()
        self._proposed = proposed
        self._confirmed_once: Path | None = None

    def compose(self) -> ComposeResult:
        with Box():
            yield Static("[b]Save as[/b]")
            yield Input(str(self._proposed), id="path", compact=True)
            yield from self.answers("Save")

    @on(Button.Pressed, "#go")
    @on(Input.Submitted)
    def _go(self) -> None:
        path = Path(self.query_one("#path", Input).value).expanduser()
        if path.suffix != ".toml":
            self.show_problem("the name of a scenario file must end in .toml")
        elif path.exists() and path != self._confirmed_once:
            self._confirmed_once = path
            self.show_problem(f"{path.name} already exists; press Save again to replace it")
        else:
            self.dismiss(path)


class ConfigureScreen(Screen[None]):
    """A form for one scenario file."""

    BINDINGS = named(
        "form",
        [
            Binding("ctrl+s", "save", "Save: Save; the file's comments stay"),
            Binding("f5,ctrl+r", "run", "Run: Run the scenario as it is here, saved or not", key_display="F5"),
            Binding("ctrl+o", "jump", "Jump: Go to the field or tab whose letter is pressed; page down shows more"),
            Binding("f6", "undo", "Undo: Undo the last change since the form was opened or saved", key_display="F6"),
            Binding("f2", "add", f"Add: Add a service, or {ON_TAB}", key_display="F2"),
            Binding("f3", "duplicate", "Duplicate: Add a copy of the service, group or intervention", key_display="F3"),
            Binding("f4", "remove", f"Remove: Remove the service, or {ON_TAB}", key_display="F4"),
            Binding("escape", "back", "Back: Go back"),
        ],
    )
    HELP = r"""The scenario as a form. Every key shows its meaning and its limits; [b]✘[/b] marks a problem, in
the words of [i]flmarket validate[/i]; [b]✎[/b] marks a change to the file. An empty field takes its default.

Saving keeps the file's comments. Lists are written as in TOML: \[100, 200]."""

    CSS_PATH = "configure.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (140, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (40, "-tall")]

    def __init__(self, text: str, file: str, own: Path | None, navigator: Navigator) -> None:
        """Edit a scenario; ``own`` is the file to save to, None for one that is never overwritten."""
        super().__init__()
        self.document = ScenarioDocument(text, file)
        self._stored = text  # the file as it was read or saved
        self.file, self.own = file, own
        self._navigator = navigator
        self.problems: tuple[Problem, ...] = ()
        self.remarks: Sequence[str] | None = None  # on a valid scenario; None while it is checked
        self._shelf, self._turn = Shelf(partial(load, download=False)), Lock()
        self.meanings: Meanings = {}
        self._lines: Mapping[KeyPath, int] = {}  # of the text that was checked, if it has problems
        self._timer: Timer | None = None
        self._now = self.document.version
        # versions before changes; of each change the tab, the entry, and the key if it was typed or chosen
        self._past: list[tuple[Version, str, int, KeyPath]] = []

    def compose(self) -> ComposeResult:
        yield Static("", id="form-title")
        with Horizontal():
            with TabbedContent(id="form"):
                for name, pane in PANES.items():
                    yield TabPane(name, id=pane)
            with VerticalScroll(id="form-side"):
                yield Static("", id="form-meaning")
                yield Static("", id="form-text")
        with VerticalScroll(id="form-verdict"):
            yield Static("", id="form-problems", markup=False)
        yield KeyBar()

    @property
    def _form(self) -> TabbedContent:
        return self.query_one("#form", TabbedContent)

    def _rows_of(self, pane: str) -> Iterator[FieldRow]:
        if pane == SWEEP:
            yield from self._sweep_rows()
        yield from self._rows((), [key for key in keys() if _tab(key.label) == pane and key.label != "sweep"])

    def _sweep_rows(self) -> Iterator[FieldRow]:
        """Yield a row for each swept key, and one in which another key is chosen."""
        table, known = self.document.get(("sweep",)), sweepable(self.document.data)
        for (_, label), path in flatten(table if isinstance(table, dict) else {})[1].items():
            words = f"The values of {label}, each for a run of its own."
            if str(label) in known:
                key, _ = known[str(label)]
                words = f"{words} {key.description}{f' ({key.range})' if key.range else ''}"
            key = Key((str(label),), {"description": words, "type": "array", "items": {}}, required=True)
            yield FieldRow(key, path, (), self.document.get(path))
        (sweep,) = (key for key in keys() if key.label == "sweep")
        yield FieldRow(replace(sweep, path=("add a key",), required=True), NEW, tuple(known), ABSENT)

    def _rows(self, table: KeyPath, shown: Sequence[Key] = ()) -> Iterator[FieldRow]:
        """Yield the rows of some keys of a table, or of all."""
        names = installed().names
        for key in shown or keys(table):
            path = (*table, *key.path)
            choices = key.choices if key.names is None else tuple(names[key.names])
            yield FieldRow(key, path, choices, self.document.get(path))

    def on_mount(self) -> None:
        for tab in self.query(Tab):
            self.watch(tab, "virtual_size", partial(self._underline, tab), init=False)

    @on(TabbedContent.TabActivated, "#form")
    async def _activated(self, event: TabbedContent.TabActivated) -> None:
        await self._fill(event.pane)

    async def _fill(self, pane: TabPane) -> None:
        """Make what is in a tab when it is first shown; that of all tabs would take most of a second."""
        if pane.children:
            return
        if key := sub_forms().get(str(pane.id)):
            await pane.mount(SubForm(key, self.document, self._rows, self._is_wrong))
        else:
            await pane.mount(Fields(*self._rows_of(str(pane.id))))
        self._mark()

    # Entries of lists of tables, and swept keys

    async def _sub_form(self) -> SubForm:
        """Return the list on the tab that is shown, else that of the services, whose tab is shown from now on."""
        if self._form.active not in sub_forms():
            self._form.active = PANES["Services"]
        pane = self._form.get_pane(self._form.active)
        await self._fill(pane)
        return pane.query_one(SubForm)

    async def action_add(self) -> None:
        if self._form.active == SWEEP:
            await self._show(SWEEP, NEW)
            await next(row for row in self.query(FieldRow) if row.path == NEW).open()
            return
        entries = await self._sub_form()
        last = len(self.document.entries(SERVICES)) - 1 if entries.path == SERVICES else -1
        await self._added(entries, last if last >= 0 else None)

    async def action_duplicate(self) -> None:
        entries = await self._sub_form()
        if self.document.entries(entries.path):
            await self._added(entries, entries.place)
        else:
            self.notify(f"There is no {entries.kind} to duplicate; press F2 to add one.", severity="warning")

    async def _added(self, entries: SubForm, like: int | None) -> None:
        await entries.show(self.document.add_entry(entries.path, like))
        entries.query(Input).first().focus()  # its name
        self._check()

    async def action_remove(self) -> None:
        if self._form.active == SWEEP:
            for row in self.query("FieldRow:focus-within").results(FieldRow):
                if row.path[0] == "sweep":
                    self.document.put(row.path, "")
                    await self._show(SWEEP, NEW)
            return
        entries = await self._sub_form()
        # Services may all be of streams, which the form does not show.
        alone = entries.path == SERVICES and not self.document.entries(("streams",))
        least = 1 if alone else entries.key.schema.get("minItems", 0)
        if len(self.document.entries(entries.path)) > least:
            self.document.remove_entry(entries.path, entries.place)
            await entries.show(entries.place)
            entries.query_one(OptionList).focus()
            self._check()
        else:
            why = f"A market needs at least {least} of them." if least else "There is none."
            self.notify(f"{why} Nothing is removed.", severity="warning")

    async def _show(self, tab: str, path: KeyPath = (), place: int = 0) -> None:
        """Make what is on a tab anew, and go to the field of a key, or else to the first one."""
        pane = self._form.get_pane(tab)
        await pane.remove_children()
        self._form.active = tab
        await self._fill(pane)
        for entries in pane.query(SubForm):
            await entries.show(place)
        shown: Widget = next((row for row in pane.query(FieldRow) if row.path == path), pane)
        shown.query("OptionList, .editor").first().focus()
        self._check()

    # Checks

    @on(FieldRow.Edited)
    async def _edited(self, event: FieldRow.Edited) -> None:
        row = event.row
        if is_going(row):
            return
        if row.path == NEW:
            known = sweepable(self.document.data)  # without the old name of a service that was renamed meanwhile
            now = self.document.get(known[event.text][1]) if event.text in known else ABSENT
            self.document.put(("sweep", event.text), "[]" if now is ABSENT else value_text([now]))
            await self._show(SWEEP, ("sweep", event.text))
            return
        self.document.put(row.path, event.text, is_text=row.key.is_text)
        self._remember(row.path)
        self.remarks = None
        self._show_verdict()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PAUSE, self._check)

    def _check(self) -> None:
        self._remember()
        self._examine()

    def _remember(self, path: KeyPath = ()) -> None:
        """Keep what was before a change, of a key if one is given; what is typed into one field is one change."""
        if self.document.version is not self._now:
            if not path or not self._past or self._past[-1][-1] != path:
                tab = self._form.active
                place = next((entries.place for entries in self._form.get_pane(tab).query(SubForm)), 0)
                self._past.append((self._now, tab, place, path))
            self._now = self.document.version

    async def action_undo(self) -> None:
        self._remember()
        if not self._past:
            self.notify("There is nothing to undo.")
            return
        self._now, tab, place, path = self._past.pop()
        self.document.version = self._now
        for pane in self._form.query(TabPane):
            await pane.remove_children()
        await self._show(tab, path, place)

    @work(thread=True, exclusive=True, group="check")
    def _examine(self) -> None:
        """Check the text as ``validate`` does; in a thread, because a large sweep takes a while, and reading images."""
        text, data, scenario = self.document.text, self.document.data, None
        problems: tuple[Problem, ...] = ()
        try:
            scenario = parse(text, self.file)
        except ScenarioError as error:
            problems = error.problems
        wide = self.has_class("-wide")  # what is not shown is not laid out
        preview = scenario_preview(scenario) if wide and scenario is not None else None
        meant = {**plugin_meanings(data), **({} if scenario is None else meanings(scenario))}
        hand_over(self.app, self._understood, preview, meant, numbered(text, self.app) if wide else None)
        said: list[str] = []
        if scenario is not None:
            with self._turn:  # of many letters typed, only the last is worth it
                if get_current_worker().is_cancelled:
                    return
                try:
                    scenario = parse(text, self.file, catalogue=validation(self._shelf))
                    said = [*remarks([point.scenario for point in points(scenario)], self._shelf)]
                except ScenarioError as error:
                    problems = error.problems
        lines = Positions(text).lines if problems else {}
        hand_over(self.app, self._checked, problems, said, lines)

    def _understood(self, preview: RenderableType | None, meant: Meanings, text: Text | None) -> None:
        self.meanings = meant
        with suppress(NoMatches):  # the user has left the screen
            if preview is not None:  # else the last one that was valid stays
                self.query_one("#form-meaning", Static).update(preview)
            if text is not None:
                self.query_one("#form-text", Static).update(text)
            self._mark()

    def _checked(self, problems: tuple[Problem, ...], said: Sequence[str], lines: Mapping[KeyPath, int]) -> None:
        self.problems, self.remarks, self._lines = problems, said, lines
        with suppress(NoMatches):
            self._list_entries()
            self._mark()

    def _list_entries(self) -> None:
        for entries in self.query(SubForm):
            entries.list_entries()

    def _is_wrong(self, entry: KeyPath) -> bool:
        key = key_text(entry, self.document.data)
        return any(_within(problem.key, key) and self._is_in_entry(problem, entry) for problem in self.problems)

    def _is_in_entry(self, problem: Problem, path: KeyPath) -> bool:
        """Whether a problem is in the entry that a path leads into; where entries have no names, its line says so."""
        for depth, part in enumerate(path):
            if isinstance(part, int) and path[:depth] not in NAMED:
                entry = path[: depth + 1]
                return any(line == problem.line for place, line in self._lines.items() if place[: depth + 1] == entry)
        return True

    @on(SubForm.Shown)
    def _mark(self) -> None:
        data = self.document.data
        for row in self.query(FieldRow):
            if is_going(row):  # its service may have gone
                continue
            key = key_text(row.path, data)
            own = [p for p in self.problems if p.key and _concerns(p.key, key) and self._is_in_entry(p, row.path)]
            messages = tuple(dict.fromkeys(problem.message for problem in own))
            meaning = self.meanings.get(row.path, "")
            row.mark(self.document.was(row.path), self.document.get(row.path), messages, meaning)
        self._mark_tabs()
        self._entitle()
        self._show_verdict()

    def _show_verdict(self) -> None:
        box = self.query_one("#form-problems", Static)
        lines = [f"✘ {problem}" for problem in self.problems]
        if not lines:
            lines = ["… checking"] if self.remarks is None else ["✔ valid", *(f"note: {text}" for text in self.remarks)]
        if (words := "\n".join(lines)) != str(box.content):
            box.update(words)
        box.set_class(bool(self.problems), "-wrong")

    def on_resize(self) -> None:
        self._entitle()
        self._check()

    def _entitle(self) -> None:
        """Say which file is edited, and whether it is changed; a long path is cut at its beginning."""
        state = "  ✎ changed" if self.document.changed else "  unchanged"
        where = str(self.own or f"{self.file} (read-only; saved as a new file)")
        title = Content.assemble((end_of(where, self.size.width - 2 - len(state)), "bold"), state)
        self.query_one("#form-title", Static).update(title, layout=False)

    def _mark_tabs(self) -> None:
        counts = Counter(_tab(problem.key) for problem in self.problems)
        for name, pane in PANES.items():
            tab, label = self._form.get_tab(pane), f"{name} ✘{counts[pane]}" if counts[pane] else name
            if str(tab.label) != label:  # else it would be laid out again
                tab.label = label

    def _underline(self, tab: Tab) -> None:
        """Fit the line below the tabs to a tab's new width; Textual moves it before the width is known."""
        tab.post_message(Tab.Relabelled(tab))

    # Elsewhere

    def action_jump(self) -> None:
        places = []
        for place in self.query("Tab, OptionList, .editor"):
            with suppress(NoWidget):  # it belongs to another tab
                if shown := self.find_widget(place).visible_region:
                    places.append((place, Offset(shown.x - place.has_class("editor"), shown.y)))
        self.app.push_screen(Jump(places), self._go)

    def _go(self, to: Widget | int | None) -> None:
        if isinstance(to, Tab):
            self._form.active = (to.id or "").removeprefix("--content-tab-")
        elif isinstance(to, Widget):
            to.focus()
        elif to is not None:
            fields = self._form.get_pane(self._form.active).query_one(Fields)
            fields.scroll_relative(y=to * (fields.size.height - 1), animate=False)
            self.call_after_refresh(self.action_jump)

    def action_run(self) -> None:
        self._navigator.ask_and_run(self.document.text, self.file)

    def action_save(self) -> None:
        self._save_then(lambda: None)

    def _save_then(self, go_on: Callable[[], object]) -> None:
        """Save, after asking for a file if need be; where that was done, go on."""

        def save(path: Path | None) -> None:
            if path is not None and self._save(path):
                go_on()

        if self.own is not None and not self._changed_elsewhere(self.own):
            save(self.own)
            return
        name = self.document.get(("name",))
        proposed = self._navigator.folder / f"{name if isinstance(name, str) and name else 'scenario'}.toml"
        if self.own is not None:
            self.notify(f"{self.own} has changed since it was opened. Save under another name, or replace it.")
            proposed = self.own
        self.app.push_screen(SaveDialog(proposed), save)

    def _changed_elsewhere(self, path: Path) -> bool:
        try:
            return read_scenario(path) != self._stored
        except InputError:  # it is gone, or cannot be written either
            return False

    def _save(self, path: Path) -> bool:
        try:
            with replacing_text(path.resolve()) as file:  # a link stays one
                file.write(self.document.text)
        except OSError as error:
            self.notify(f"{path}: cannot be written: {error.strerror}", severity="error")
            return False
        self.own, self.file, self._stored = path, str(path), self.document.text
        self.document.saved()
        self._past, self._now = [], self.document.version
        self._list_entries()
        self._check()
        self.notify(f"Saved as {path}.")
        return True

    def action_back(self) -> None:
        self.leave(self.app.pop_screen)

    @property
    def unsaved(self) -> bool:
        """Whether something would be lost if the form were left."""
        return self.document.changed

    def leave(self, go_on: Callable[[], object]) -> None:
        """Go on, which leaves the form; if there are changes, ask first what becomes of them."""

        def decide(save: bool | None) -> None:
            if save:
                self._save_then(go_on)
            elif save is not None:
                go_on()

        if self.unsaved:
            self.app.push_screen(LeaveDialog(), decide)
        else:
            go_on()


def _concerns(problem: str, key: str) -> bool:
    """Whether a problem is one of a key, of something in it, or of the table around it."""
    return _within(problem, key) or _within(key, problem)


def _within(key: str, table: str) -> bool:
    return key == table or key.startswith(f"{table}.")


def _tab(key: str) -> str:
    """Return the tab that shows a key."""
    for pane, entries in sub_forms().items():
        if _within(key, entries.label):
            return pane
    section = key.partition(".")[0]
    return f"tab-{ELSEWHERE.get(section, section)}"
