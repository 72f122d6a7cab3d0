"""The home screen: scenarios to run, and runs to open or to compare."""

from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from fl.counting import counted

if TYPE_CHECKING:
    from tui.screens.navigation import Navigator
    from tui.watching.catalogue import Entry

LATER = 0.05
"""Seconds for the screen to draw itself before the lists are loaded."""

SECTIONS = {"open": "Open now", "built-in": "Built-in scenarios", "file": "Your scenarios", "run": "Recent runs"}


class HomeScreen(Screen[None]):
    """Lists scenarios and runs, with a preview of the highlighted one."""

    BINDINGS = [
        Binding("enter", "choose", "Run/open", show=True, priority=False),
        Binding("r", "run", "Run"),
        Binding("e", "edit", "Edit"),
        Binding("p", "replay", "Replay"),
        Binding("space", "mark", "Mark"),
        Binding("c", "compare", "Compare marked"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("f5", "reload", "Reload", show=False),
        Binding("escape", "leave_search", "List", show=False),
        Binding("q", "app.quit", "Quit"),
    ]
    AUTO_FOCUS = "#entries"
    HELP = """Choose a scenario to run it, or a run to open it.

[b]enter[/b]  run a scenario, open a run
[b]e[/b]  edit a scenario in a form    [b]r[/b]  run (for a run: run its scenario again)
[b]p[/b]  replay a run                 [b]/[/b]  search
[b]space[/b]  mark runs; [b]c[/b] compares the marked runs

Your scenarios are the scenario files (*.toml) in the folder where flmarket was started. Recent runs are those in runs/,
or in the folder given with --out."""

    def __init__(self, navigator: "Navigator") -> None:
        super().__init__()
        self._navigator = navigator
        self.entries: list[Entry] = []
        self.marked: set[Path] = set()

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static("[b]flmarket[/b]  federated-learning services compete for clients", id="home-title")
        with Horizontal(id="home"):
            with Vertical(id="home-left"):
                yield Input(placeholder="search", id="search", compact=True)
                yield OptionList(id="entries")
            with VerticalScroll(id="home-right", can_focus=True):
                yield Static("loading …", id="preview")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Load the lists once the screen is drawn."""
        # Its imports would delay the first picture.
        self.set_timer(LATER, self.action_reload)

    def on_screen_resume(self) -> None:
        """Reload: there may be new runs."""
        if self.entries:
            self.action_reload()

    @work(thread=True, exclusive=True, group="reload")
    def action_reload(self) -> None:
        """Load the lists of scenarios and runs."""
        from tui.watching.catalogue import builtins, own_files, recent_runs

        found = [*builtins(), *own_files(self._navigator.folder), *recent_runs(self._navigator.out)]
        self.app.call_from_thread(self._list, found)

    def _list(self, found: "list[Entry]") -> None:
        self.entries = found
        self._refill()

    def _refill(self) -> None:
        """List the entries that match the search, in sections."""
        options = self.query_one("#entries", OptionList)
        kept = self.chosen
        words = self.query_one("#search", Input).value.lower().split()
        options.clear_options()
        self._shown: dict[str, Entry | int] = {}
        self._add_open(options, words)
        for kind in ("built-in", "file", "run"):
            some = [e for e in self.entries if e.kind == kind and all(word in e.title.lower() for word in words)]
            if some:
                options.add_option(Option(f"[b]{SECTIONS[kind]}[/b]", disabled=True))
            for entry in some:
                mark = "✓ " if entry.path in self.marked else "  "
                key = f"{kind}:{entry.path}"
                self._shown[key] = entry
                options.add_option(Option(Content(mark + entry.title), id=key))
        if not self._shown:
            options.add_option(Option("nothing matches", disabled=True))
        self._restore(options, kept)

    def _add_open(self, options: OptionList, words: list[str]) -> None:
        """List the runs that are open in this app."""
        some = [
            (i, s)
            for i, s in enumerate(self._navigator.runs.sessions)
            if all(word in s.label.lower() for word in words)
        ]
        if some:
            options.add_option(Option(f"[b]{SECTIONS['open']}[/b]", disabled=True))
        for i, session in some:
            self._shown[f"open:{i}"] = i
            options.add_option(Option(Content(f"  {session.label} ({session.phase.value})"), id=f"open:{i}"))

    def _restore(self, options: OptionList, kept: "Entry | int | None") -> None:
        keys = list(self._shown)
        old = next((key for key in keys if self._shown[key] == kept), None)
        key = old or next((key for key in keys if not key.startswith("open:")), None)
        if key is not None:
            options.highlighted = options.get_option_index(key)

    @property
    def chosen(self) -> "Entry | int | None":
        """What is highlighted: an entry, or the number of an open session."""
        option = self.query_one("#entries", OptionList).highlighted_option
        return self._shown.get(option.id or "") if option and hasattr(self, "_shown") else None

    @on(OptionList.OptionHighlighted)
    def _highlighted(self) -> None:
        self._preview()

    @work(thread=True, exclusive=True, group="preview")
    def _preview(self) -> None:
        from tui.widgets.preview import preview

        chosen = self.chosen
        if isinstance(chosen, int):
            session = self._navigator.runs.sessions[chosen]
            played = f"{session.phase.value}, {counted(len(session.history), 'round')} played"
            shown = Content(f"{session.label}\n\n{played}\n\nPress enter to open it.")
            self.app.call_from_thread(self._show_preview, shown)
        elif chosen is not None:
            self.app.call_from_thread(self._show_preview, preview(chosen))

    def _show_preview(self, shown: object) -> None:
        self.query_one("#preview", Static).update(shown)  # type: ignore[arg-type]

    @on(Input.Changed, "#search")
    def _search(self) -> None:
        if hasattr(self, "_shown"):
            self._refill()

    @on(Input.Submitted, "#search")
    def _searched(self) -> None:
        self.query_one("#entries").focus()

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_choose()

    def action_search(self) -> None:
        """Go to the search field."""
        self.query_one("#search").focus()

    def action_leave_search(self) -> None:
        """Clear the search and go to the list."""
        self.query_one("#search", Input).value = ""
        self.query_one("#entries").focus()

    def action_choose(self) -> None:
        """Run the chosen scenario, or open the chosen run."""
        chosen = self.chosen
        if isinstance(chosen, int) or (chosen is not None and chosen.is_run):
            self.action_replay()
        elif chosen is not None:
            self.action_run()

    def action_run(self) -> None:
        """Run the chosen scenario, or the scenario of the chosen run."""
        chosen = self.chosen
        if chosen is not None and not isinstance(chosen, int):
            self._navigator.ask_and_run(chosen.scenario_file.read_text(encoding="utf-8"), str(chosen.scenario_file))

    def action_edit(self) -> None:
        """Edit the chosen scenario, or that of the chosen run, in a form."""
        chosen = self.chosen
        if chosen is not None and not isinstance(chosen, int):
            file = chosen.scenario_file
            own = file if chosen.kind == "file" else None
            self._navigator.show_form(file.read_text(encoding="utf-8"), str(file), own)

    def action_replay(self) -> None:
        """Open the chosen run."""
        chosen = self.chosen
        if isinstance(chosen, int):
            self._navigator.show_market(self._navigator.runs.sessions[chosen])
        elif chosen is not None and chosen.is_run:
            self._navigator.show_market(self._navigator.runs.open(chosen.path))
        else:
            self.notify("That is a scenario; press r to run it.", timeout=3)

    def action_mark(self) -> None:
        """Mark or unmark a run for comparison."""
        chosen = self.chosen
        if chosen is None or isinstance(chosen, int) or not chosen.is_run:
            self.notify("Only runs can be marked.", timeout=3)
            return
        self.marked ^= {chosen.path}
        self._refill()

    def action_compare(self) -> None:
        """Compare the marked runs."""
        if len(self.marked) < 2:
            self.notify("Mark at least two runs first (space).", timeout=4)
            return
        chosen = [entry.path for entry in self.entries if entry.path in self.marked]
        self._navigator.show_comparison([self._navigator.runs.open(path) for path in chosen])
