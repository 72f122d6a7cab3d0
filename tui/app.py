"""The Textual app: holds the open runs, and leads from screen to screen.

It imports little on purpose: the first screen should appear at once. Screens that need pydantic, NumPy or the plots are
imported when they are opened (``tui.screens``).
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.segment import Segment, Segments
from rich.style import Style
from textual.app import SystemCommand
from textual.binding import Binding
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.errors import NoWidget
from textual.events import Event, Key, MouseDown
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.widgets import OptionList

from flmarket.core.errors import InputError, RunError
from flmarket.core.text import counted
from scenarios.builtin import builtin_names, builtin_path
from tui import screens
from tui.screens.home import HomeScreen
from tui.settings import KeptSettings, SettingsError, own_themes
from tui.state.catalogue import read_scenario
from tui.style.colors import with_legible_text
from tui.style.key_names import HELP, SEARCH, SearchedByTyping, stands_for
from tui.terminal import Printable, TerminalDriver, edit
from tui.textual_internals import SteadyApp, is_going

if TYPE_CHECKING:
    from scenarios.running.steering import Start
    from tui.screens.configure import ConfigureScreen
    from tui.screens.run_dialogs import ChosenRuns
    from tui.screens.search import Listing
    from tui.state.runs import LiveBatch, Runs
    from tui.state.watched_run import Session


LOOKED = 0.5  # seconds between two looks at whether the directories of open runs are still there

_PRINTABLE = Printable()


class ThinBar(ScrollBarRender):
    """Draws the part of a bar that moves as a line, and nothing of the rest."""

    VERTICAL_BARS = HORIZONTAL_BARS = [" "]  # whole cells

    @classmethod
    def render_bar(cls, *args: Any, **sizes: Any) -> Segments:
        bar, line = super().render_bar(*args, **sizes), "▐" if sizes["vertical"] else "▂"
        bar.segments = [
            Segment(line * len(text), style + Style(reverse=False)) if style and style.reverse else Segment(text, style)
            for text, style, _ in bar.segments
        ]
        return bar


ScrollBar.renderer = ThinBar


class MarketApp(SteadyApp):
    """flmarket in the terminal."""

    TITLE = "flmarket"
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-high")]
    # Any screen may open a dialog. Home is the default screen, whose own CSS_PATH Textual does not load.
    CSS_PATH = ["app.tcss", "screens/dialog.tcss", "screens/home.tcss"]
    BINDINGS = [
        *HELP,
        Binding("q", "quit", "Quit"),
        Binding("ctrl+q", "quit", "Quit", show=False, priority=True),
        Binding("colon", "command_palette", "Command", show=False, tooltip="Type a command"),
        Binding("ctrl+p", "command_palette", "Command", show=False, priority=True, tooltip="Type a command"),
        Binding(
            "ctrl+z",
            "suspend_process",
            "Suspend",
            show=False,
            priority=True,
            tooltip="Suspend flmarket (fg resumes it)",
        ),
        *SEARCH,
    ]

    def __init__(
        self,
        *,
        scenario: str | None = None,  # a scenario file or built-in name; the app asks how to run it
        run: Path | None = None,  # a run directory to replay
        round_: int = 0,  # the round of it to show first; 0 for the newest
        batch: Path | None = None,  # a folder of runs to follow
        trainings: Sequence[Path] = (),  # logs of trainings to follow
        out: Path = Path("runs"),  # folder for run directories, old and new
        folder: Path | None = None,  # folder with the user's scenario files; the current one if not given
        runner: Sequence[str] | None = None,  # the command of the runner process; tests use others
        # the file in which the app remembers settings between starts; None if it is not to
        settings: Path | None = None,
    ) -> None:
        """Start with a scenario to run, a run to replay, a folder of runs or trainings to follow, or at home."""
        super().__init__()
        self._before = ""  # the key before
        self.sought: Sequence[str] = ()
        self._scenario, self._run_path, self._round = scenario, run, round_
        self._follow, self._trainings = batch, trainings
        self.out, self.batch, self.folder = out, batch or out, folder or Path()
        self._runner = runner
        self._runs: Runs | None = None
        self._memory = KeptSettings(settings)
        self.settings = self._memory.settings
        self._began_with = self.theme

    @property
    def runs(self) -> "Runs":
        if self._runs is None:
            from tui.state.runs import Runs

            self._runs = Runs(self._work, self._runner)
        return self._runs

    @property
    def sessions(self) -> "Sequence[Session]":
        return self._runs.sessions if self._runs is not None else ()

    @property
    def live_batch(self) -> "LiveBatch | None":
        return self._runs.batch if self._runs is not None else None

    def _work(self, job: Callable[[], None], group: str) -> object:
        return self.run_worker(job, thread=True, group=group, exit_on_error=False)

    def _miss(self) -> None:
        """Look in a thread, as the disk may be slow, for runs whose directories have been removed."""
        if self._runs is not None and not any(worker.group == "miss" for worker in self.workers):
            self._work(self._runs.miss, "miss")

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Notify the user in text without markup, as it quotes names and paths; what is shown is not repeated."""
        words = f"{title}: {message}" if title else message  # on one line
        if not self.has_notified(words):
            super().notify(words, severity=severity, timeout=timeout, markup=False)

    async def on_turn(self, event: Event) -> None:
        if not self.screen_stack:
            return  # a key that was pressed as the app ended
        if isinstance(event, Key):
            before, self._before = self._before, event.key
            if meant := stands_for(self.screen, event.key):
                if event.key == "g" != before:
                    return  # gg is one key
                event, self._before = Key(meant, None), ""
            elif self._searches(event):
                self.action_search(event.character or "")
                return
        elif isinstance(event, MouseDown):
            with suppress(NoWidget):
                if is_going(self.get_widget_at(event.x, event.y)[0]):
                    return  # Textual fails on one that is still painted, but has no parent any more
        await super().on_turn(event)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what lines go through before they are drawn: no text reaches the terminal but what is printable."""
        return [_PRINTABLE, *super().get_line_filters()]

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of the theme, with text that is legible whatever the theme is."""
        self.theme_variables = with_legible_text(super().get_css_variables(), colors=not self.no_color)
        return self.theme_variables

    def get_default_screen(self) -> HomeScreen:
        """Return the home screen, which is always at the bottom of the stack."""
        return HomeScreen(self)

    def get_driver_class(self) -> type[Driver]:
        """Return what the app is drawn by; a browser and tests have others than a terminal."""
        chosen = super().get_driver_class()
        return TerminalDriver if chosen is LinuxDriver else chosen

    def on_mount(self) -> None:
        self._add_own_themes()
        if self.settings.theme in self.available_themes:
            self.theme = self.settings.theme
        self._began_with = self.theme
        self.set_keymap(self.settings.keys)
        self.set_interval(LOOKED, self._miss)  # here, as a timer needs an app that runs
        if problem := self._memory.problem:
            self.notify(f"{problem}\nThe settings are not used, and not changed.", severity="error", timeout=12)
        elif self.settings.keys:
            self.call_after_refresh(self._check_keys)
        if self._scenario is not None or self._run_path is not None or self._follow is not None or self._trainings:
            self.call_after_refresh(self._begin)

    def _add_own_themes(self) -> None:
        folder = None if self._memory.file is None else self._memory.file.parent / "themes"
        if folder is None or not folder.is_dir():
            return
        for theme in own_themes(folder):
            if isinstance(theme, SettingsError):
                self.notify(str(theme), title="A theme is not used", severity="error", timeout=12)
            else:
                self.register_theme(theme)

    def _check_keys(self) -> None:
        for name in self.settings.keys:
            if problem := screens.unknown_key(name):
                self.notify(f"{self._memory.file}: keys: {problem}", severity="error", timeout=12)

    def _begin(self) -> None:
        if self._run_path is not None:
            self.show_market(self.runs.open(self._run_path), self._round)
        elif self._follow is not None:
            self.show_batch(self._follow)
        elif self._trainings:
            self.show_trainings(self._trainings)
        elif self._scenario is not None:
            built_in = self._scenario in builtin_names()
            path = builtin_path(self._scenario) if built_in else Path(self._scenario)
            self.ask_and_run(read_scenario(path), str(path))

    # What screens ask for: see tui.screens.navigation.Navigator.

    def show_market(self, session: "Session", round_: int = 0) -> None:
        """Watch one run, from a round on."""
        self.push_screen(screens.MarketScreen(session, self, round_))

    def show_fork(self, session: "Session", selected: tuple[int, int | None]) -> None:
        """Compare a fork with its original, and watch it after that, with the choices that were made there."""
        screen = screens.MarketScreen(session, self)
        screen.selected = selected
        self.switch_screen(screen)
        if session.origin is not None:
            self.show_comparison([session, session.origin])

    def show_comparison(self, sessions: "Sequence[Session]") -> None:
        """Compare two or more runs."""
        if self.settings.speed is None:  # one that was started to be watched does not keep the others back
            for session in sessions:
                self.runs.play_at(session, None)
        self.push_screen(screens.CompareScreen(sessions, self))

    def show_batch(self, folder: Path) -> None:
        """Show all runs of a folder, and follow them."""
        self.push_screen(screens.BatchScreen(folder, self))

    def show_trainings(self, logs: Sequence[Path]) -> None:
        """Show trainings by their logs, and follow them."""
        self.push_screen(screens.TrainingScreen(logs))

    def edit_outside(self, path: Path) -> bool:
        """Edit a file in the user's own editor; return whether there was one to do it in."""
        return edit(self, path)

    def show_form(self, text: str, file: str, own: Path | None) -> None:
        """Edit a scenario in a form; a file that is not TOML has none."""
        try:
            form = screens.ConfigureScreen(text, file, own, self)
        except InputError as error:
            self.notify(f"{error}; correct it in a text editor", title="Not opened", severity="error", timeout=8)
        else:
            self.push_screen(form)

    def ask_and_run(self, text: str, file: str) -> None:
        """Ask how to run a scenario, then show its runs: one on the market screen, several on the compare screen."""
        from scenarios.loader import ScenarioError, parse

        try:
            scenario = parse(text, file)
        except ScenarioError as error:
            # The screen below lists them.
            problems = counted(len(error.problems), "problem")
            self.notify(f"{problems}; correct the scenario first", title="Not run", severity="error", timeout=6)
        else:
            self.push_screen(screens.StartRunDialog(scenario, text, file, self.out), self._start_runs)
            self.runs.prepare(scenario)

    def _start_runs(self, choice: "ChosenRuns | None") -> None:
        if choice is None:
            self.runs.release()
        elif choice.batch is None:
            self.play(choice.starts, choice.replay, choice.note)
        else:
            self.runs.release()
            try:
                self.runs.play_batch(choice.batch)
            except RunError as error:
                self.notify(str(error), severity="error", timeout=6)
            else:
                self.show_batch(self.out)

    def play(self, starts: "Sequence[tuple[Start, str]]", replay: Sequence[Path] = (), note: str = "") -> None:
        """Start runs, each with a label, open others, and show all; a note follows if any of them is new."""
        known = set(self.runs.sessions)
        if (speed := self.settings.speed) is not None:
            starts = [(replace(start, speed=None if speed == inf else speed), label) for start, label in starts]
        sessions = [self.runs.start(start, label) for start, label in starts]
        sessions += [self.runs.open(path) for path in replay]
        self.runs.release()
        if note and not known.issuperset(sessions):
            self.notify(note, title="Interrupted run", timeout=8)
        if len(sessions) == 1:
            self.show_market(sessions[0])
        else:
            self.show_comparison(sessions)

    # Keys

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, screens.Palette):
            self.push_screen(screens.Palette())

    def action_help(self) -> None:
        if not isinstance(self.screen, screens.HelpScreen):
            self.push_screen(screens.HelpScreen.of_focus(self, self.settings.keys))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key is of use: only lists are searched."""
        return self._list is not None if action in {"search", "next_hit"} else True

    @property
    def _list(self) -> "Listing | None":
        """The list that has the focus, if one has."""
        if isinstance(self.focused, OptionList):  # that of the first picture, which needs no imports
            return self.focused
        return self.focused if self.focused is not None and screens.is_listing(self.focused) else None

    def _searches(self, key: Key) -> bool:
        """Whether a key is a letter that begins a search: in a list of choices, where it has no other meaning."""
        listed = self.focused if isinstance(self.focused, OptionList) else None
        if listed is None or not (key.character or "").isalpha() or key.key in self.screen.active_bindings:
            return False
        return isinstance(listed, SearchedByTyping) or not listed.check_consume_key(key.key, key.character)

    def action_search(self, begun: str = "") -> None:
        """Search the list that has the focus, for what was typed in it if anything was."""

        def keep(words: Sequence[str] | None) -> None:
            self.sought = self.sought if words is None else words

        if (listing := self._list) is not None:
            self.push_screen(screens.SearchLine(listing, self.sought, begun), keep)

    def action_next_hit(self, step: int) -> None:
        """Go to the next line that was searched for, or if there was no search to the next line."""
        if (listing := self._list) is not None and not screens.next_hit(listing, self.sought, step):
            self.notify(f"No line here has {' '.join(self.sought)}.", timeout=3)

    def action_help_quit(self) -> None:
        self.notify("Press q to quit, or ctrl+q while you type.")

    @property
    def home(self) -> HomeScreen:
        [home] = (screen for screen in self.screen_stack if isinstance(screen, HomeScreen))
        return home

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Return what the command palette offers."""
        return screens.commands(self, self, self.home, screen)

    async def action_quit(self) -> None:
        """Quit, after asking what becomes of changes in a form, and whether live runs are to stop."""
        form = next((screen for screen in self.screen_stack if getattr(screen, "unsaved", False)), None)
        if form is None:
            self._quit()
        elif not isinstance(self.screen, screens.LeaveDialog):
            cast("ConfigureScreen", form).leave(self._quit)

    def _quit(self) -> None:
        running = self._runs.live if self._runs is not None else 0
        if not running:
            self.exit()
            return

        def quit_if(sure: bool | None) -> None:
            if sure:
                self.exit()

        if not isinstance(self.screen, screens.QuitDialog):
            self.push_screen(screens.QuitDialog(running), quit_if)

    def on_unmount(self) -> None:
        if self._runs is not None:
            self._runs.close()
        if self.theme != self._began_with:
            self.settings.theme = self.theme
        self._memory.keep()
