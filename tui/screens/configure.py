"""The configure screen: a scenario as a form that is made from the schema and checked while the user types."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock

from rich.console import RenderableType
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
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
from scenarios.file.keys import keys
from scenarios.file.problems import Path as KeyPath
from scenarios.file.problems import key_text
from scenarios.loader import Problem, ScenarioError, parse, points
from scenarios.playable import remarks, validation
from tui.screens.dialog import Box, Dialog, Jump, LeaveDialog
from tui.screens.navigation import Navigator
from tui.state.catalogue import read_scenario
from tui.state.scenario_document import ScenarioDocument, Version
from tui.style.formats import end_of
from tui.style.key_names import named
from tui.style.redraw import hand_over
from tui.style.sentences import Meanings, meanings, plugin_meanings
from tui.textual_internals import is_going
from tui.widgets.form_field import FieldRow
from tui.widgets.key_bar import KeyBar
from tui.widgets.preview import numbered, scenario_preview

PAUSE = 0.15  # seconds between the last keystroke and the checks

PANES = {
    "Market": "tab-market",
    "Clients": "tab-clients",
    "Services": "tab-services",
    "Training": "tab-training",
    "Timeline": "tab-timeline",
    "Sweep, interventions": "tab-changes",
}

MARKET = ("name", "description", "rounds", "dqi", "market")
CLIENTS = ("clients", "data")
CHANGES = ("sweep", "runs", "interventions")
SERVICES = ("services",)


class Fields(VerticalScroll, can_focus=False):
    """The fields of a tab, one below the other; the tab key goes from field to field."""


class KeyButton(Button, can_focus=False):
    """A button that has a key: the tab key skips it."""


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
            Binding("f2", "add_service", "Add service: Add a service", key_display="F2"),
            Binding("f3", "duplicate_service", "Duplicate: Add a copy of the service", key_display="F3"),
            Binding("f4", "remove_service", "Remove: Remove the service", key_display="F4"),
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
        self.service = 0
        self._timer: Timer | None = None
        self._now = self.document.version
        # versions before changes; of each change the tab, the service, and the key if it was typed or chosen
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

    def _rows_of(self, pane: str) -> ComposeResult:
        head = pane.removeprefix("tab-")
        match head:
            case "market" | "changes":
                yield from self._rows((), MARKET if head == "market" else CHANGES)
            case "clients":
                yield from self._rows((head,))
                yield from self._rows((), ("data",))
            case "services":
                if self.document.entries(SERVICES):
                    yield from self._rows((head, self.service))
            case _:
                yield from self._rows((head,))

    def _rows(self, table: KeyPath, only: tuple[str, ...] = ()) -> ComposeResult:
        names = installed().names
        for key in keys(table):
            if not only or key.path[0] in only:
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
        if pane.id == PANES["Services"]:
            buttons = [
                KeyButton(label, id=name, compact=True)
                for name, label in (("add", "Add F2"), ("duplicate", "Duplicate F3"), ("remove", "Remove F4"))
            ]
            side = Vertical(OptionList(id="service-list"), *buttons, id="service-side")
            await pane.mount(Horizontal(side, Fields(*self._rows_of(PANES["Services"]), id="service-form")))
            self._list_services()
        else:
            await pane.mount(Fields(*self._rows_of(str(pane.id))))
        self._mark()

    # Services

    def _choose(self, service: int) -> None:
        """Choose the service at a place, or the last one."""
        self.service = max(0, min(len(self.document.entries(SERVICES)) - 1, service))

    async def _show_services(self) -> None:
        self._choose(self.service)
        pane = self.query_one("#form", TabbedContent).get_pane(PANES["Services"])
        if not pane.children:
            await self._fill(pane)
            return
        self._list_services()
        form = self.query_one("#service-form", Fields)
        await form.remove_children()
        await form.mount_all(self._rows_of(PANES["Services"]))
        self._mark()

    def _list_services(self) -> None:
        """List the services, if their tab has been shown."""
        for listed in self.query("#service-list").results(OptionList):
            self._list_in(listed)

    def _list_in(self, listed: OptionList) -> None:
        names = []
        for place in range(len(self.document.entries(SERVICES))):
            prefix = key_text(("services", place), self.document.data)
            wrong = any(problem.key == prefix or problem.key.startswith(f"{prefix}.") for problem in self.problems)
            new = self.document.origins(SERVICES)[place] is None
            name = f"{'✘' if wrong else ' '} {self.document.entry_name(SERVICES, place)}{' (new)' if new else ''}"
            names.append(name.replace("[", r"\["))
        if names != [str(option.prompt) for option in listed.options]:
            with self.prevent(OptionList.OptionHighlighted):
                listed.clear_options()
                listed.add_options(map(Content, names))
                listed.highlighted = self.service if names else None

    @on(OptionList.OptionHighlighted, "#service-list")
    async def _choose_service(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index != self.service:
            self.service = event.option_index
            await self._show_services()

    @on(Button.Pressed, "#add")
    async def action_add_service(self) -> None:
        last = len(self.document.entries(SERVICES)) - 1
        await self._added(self.document.add_entry(SERVICES, last if last >= 0 else None))

    @on(Button.Pressed, "#duplicate")
    async def action_duplicate_service(self) -> None:
        if self.document.entries(SERVICES):
            await self._added(self.document.add_entry(SERVICES, self.service))
        else:
            self.notify("There is no service to duplicate; press F2 to add one.", severity="warning")

    async def _added(self, place: int) -> None:
        self.query_one("#form", TabbedContent).active = "tab-services"
        self.service = place
        await self._show_services()
        self.query("#service-form Input").first().focus()  # its name
        self._check()

    @on(Button.Pressed, "#remove")
    async def action_remove_service(self) -> None:
        self.query_one("#form", TabbedContent).active = "tab-services"
        if len(self.document.entries(SERVICES)) > 1:
            self.document.remove_entry(SERVICES, self.service)
            await self._show_services()
            self.query_one("#service-list").focus()
            self._check()
        else:
            self.notify("A market needs at least one service.", severity="warning")

    # Checks

    @on(FieldRow.Edited)
    def _edited(self, event: FieldRow.Edited) -> None:
        row = event.row
        if is_going(row):
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
                self._past.append((self._now, self.query_one("#form", TabbedContent).active, self.service, path))
            self._now = self.document.version

    async def action_undo(self) -> None:
        self._remember()
        if not self._past:
            self.notify("There is nothing to undo.")
            return
        self._now, tab, service, path = self._past.pop()
        self.document.version = self._now
        self._choose(service)
        form = self.query_one("#form", TabbedContent)
        for pane in form.query(TabPane):
            await pane.remove_children()
        form.active = tab
        await self._fill(form.get_pane(tab))
        changed: Widget = next((row for row in self.query(FieldRow) if row.path == path), form.get_pane(tab))
        changed.query("OptionList, .editor").first().focus()
        self._check()

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
        hand_over(self.app, self._checked, problems, said)

    def _understood(self, preview: RenderableType | None, meant: Meanings, text: Text | None) -> None:
        self.meanings = meant
        with suppress(NoMatches):  # the user has left the screen
            if preview is not None:  # else the last one that was valid stays
                self.query_one("#form-meaning", Static).update(preview)
            if text is not None:
                self.query_one("#form-text", Static).update(text)
            self._mark()

    def _checked(self, problems: tuple[Problem, ...], said: Sequence[str]) -> None:
        self.problems, self.remarks = problems, said
        with suppress(NoMatches):
            self._list_services()
            self._mark()

    def _mark(self) -> None:
        data = self.document.data
        for row in self.query(FieldRow):
            if is_going(row):  # its service may have gone
                continue
            key = key_text(row.path, data)
            own = [p for p in self.problems if p.key and _concerns(p.key, key)]
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
        form = self.query_one("#form", TabbedContent)
        for name, pane in PANES.items():
            head = pane.removeprefix("tab-")
            shown = {"market": MARKET, "clients": CLIENTS, "changes": CHANGES}.get(head, (head,))
            count = sum(problem.key.partition(".")[0] in shown for problem in self.problems)
            tab, label = form.get_tab(pane), f"{name} ✘{count}" if count else name
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
                    places.append((place, Offset(max(0, shown.x - 1), shown.y)))
        self.app.push_screen(Jump(places), self._go)

    def _go(self, to: Widget | int | None) -> None:
        form = self.query_one("#form", TabbedContent)
        if isinstance(to, Tab):
            form.active = (to.id or "").removeprefix("--content-tab-")
        elif isinstance(to, Widget):
            to.focus()
        elif to is not None:
            fields = form.get_pane(form.active).query_one(Fields)
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
        self._list_services()
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
    return problem == key or problem.startswith(f"{key}.") or key.startswith(f"{problem}.")
