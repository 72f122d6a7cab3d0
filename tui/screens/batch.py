"""The batch screen: all runs of a folder, followed while other processes play them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container
from textual.widgets import Static

from flmarket.analysis.results.measures import AUC
from flmarket.core.text import counted, duration
from scenarios.logs.run_state import RunState
from tui.screens.following_files import FollowingScreen
from tui.state.batch_folder import ORDERS, Look, Place, RunGroup, RunLine, RunsFolder, grouped, leagues, ordered
from tui.state.catalogue import Entry
from tui.style.colors import state_sign, state_style, tint
from tui.style.formats import bar, plain
from tui.style.key_names import named
from tui.widgets.batch_tables import BatchTable, LeagueChart
from tui.widgets.key_bar import KeyBar
from tui.widgets.preview_pane import PreviewPane

if TYPE_CHECKING:
    from tui.screens.navigation import Navigator

Leagues = Mapping[Path, Sequence[Place]]

PROGRESS = 20  # cells of the bar of all rounds
WIDE, LOW = 150, 28  # columns from which on two things stand side by side; rows below which there are not three
LEAST, GOOD = 7, 30  # rows of a preview at least, and with a plot that is worth the width of the screen

CLOSED = {
    RunState.WAITING: "This run has not begun; it opens once it has.",
    RunState.GONE: "The directory of this run has been removed.",
}


class BatchScreen(FollowingScreen[tuple[Look | None, Leagues, str]]):
    """Lists the runs of a folder, by run or by groups of seeds, with leagues of policies and the curves of a run."""

    BINDINGS = named(
        "batch",
        [
            Binding("enter", "open", "Open: Open the run; of a group of seeds, its runs", key_display="enter"),
            Binding("s", "sort", "Sort: Sort by scenario, AUC, time left, state, change or accuracy"),
            Binding("g", "group", "Group seeds: One line for all seeds of a scenario and policy"),
            Binding("n", "next_problem(1)", "Next problem: Go to the next run that failed or was interrupted"),
            Binding(
                "N",
                "next_problem(-1)",
                "Previous problem: Go to the previous run that failed or was interrupted",
                show=False,
            ),
            Binding("space", "mark", "Mark: Mark the run, or all of the group, to compare them"),
            Binding("c", "compare", "Compare: Compare the marked runs"),
            Binding("e", "end", "End batch: End the batch that was started here; started again, it continues"),
            Binding("escape", "back", "Back: Go back"),
            Binding("q", "app.quit", "Quit", show=False),
        ],
    )
    NAME = "Batch"
    HELP = """All runs of a folder, also those that other programs play now, such as [b]flmarket run --jobs[/b].

▶ running   … waiting for its turn   ✔ complete   ■ interrupted (the same command continues it)   ✘ failed

A line for all seeds shows the means of those that are complete. What is wrong with a run stands below the table.

The league has the policies of each scenario, the best first, on one axis: ● the mean of the runs that are complete, ∙
each of them, ━ the mean's 95 % interval, from three seeds on. It goes by AUC, as `flmarket report` does: the mean
accuracy over all rounds and services, in which a service that meets its target earlier is ahead.

Accuracy is the mean over the services after the last round, on test images, or on fitted curves where a scenario's
backend trains nothing.
Time left is what is left at the present pace, at most: a run ends early when all its services have left."""
    CSS_PATH = "batch.tcss"
    AUTO_FOCUS = "#batch-table"

    def __init__(self, folder: Path, navigator: "Navigator") -> None:
        super().__init__()
        self.folder = folder
        self._navigator = navigator
        self._runs = RunsFolder(folder)
        self._problem = ""
        self.look: Look | None = None
        self._leagues: Leagues = {}
        self._previewed: object = None
        self.order = next(iter(ORDERS))
        self.groups = False
        self.only: object = None  # the group whose runs are shown; None for all runs
        self.marked: frozenset[object] = frozenset()

    def compose(self) -> ComposeResult:
        yield Static("", id="batch-status")
        with Container(id="batch"):
            yield BatchTable(id="batch-table")
            yield LeagueChart()
            yield PreviewPane()
        yield Static("", id="batch-detail")
        yield KeyBar()

    def see(self) -> tuple[Look | None, Leagues, str]:
        """Look at the folder; return what is in it, or what is wrong with it."""
        try:
            look = self._runs.look()
        except OSError as error:
            return None, {}, f"cannot be read: {error.strerror}"
        opened = {run.directory.absolute(): run.state for run in self._navigator.sessions if run.directory}
        runs = tuple(
            # To who looks at its files alone, a run that is paused here is running.
            replace(run, standing=replace(run.standing, state=RunState.PAUSED), rate=None)
            if run.standing.state is RunState.RUNNING and opened.get(run.standing.path.absolute()) is RunState.PAUSED
            else run
            for run in look.runs
        )
        return replace(look, runs=runs), leagues(runs), ""

    def take(self, seen: tuple[Look | None, Leagues, str]) -> None:
        """Take what is in the folder; where it cannot be read, what was seen before stays."""
        look, leagues, self._problem = seen
        if look is not None:
            self.look, self._leagues = look, leagues

    def draw(self) -> None:
        if not self.is_mounted or not self.query("#batch-table"):
            return
        status, words = self.query_one("#batch-status", Static), Text("\n").join(self._status())
        if words != status.content:
            status.update(words, layout=False)
        self.refresh_bindings()
        if self.look is None:
            return
        runs = [run for run in self.look.runs if self.only in (None, run.standing.path.parent)]
        lines: Sequence[RunLine | RunGroup] = (grouped if self.groups else ordered)(runs, self.order)
        self.query_one(BatchTable).show(lines, self.marked)
        self._lay_out(len(lines))
        self._detail()

    def _lay_out(self, lines: int) -> None:
        """Place the preview below the tables where it has much room, else beside them or below, or leave it out.

        Where there is no room for all lines, the league gets what the runs leave, but two fifths at least.
        """
        room, table = self.query_one("#batch").size, lines + 1
        league = sum(1 + len(places) for places in self._leagues.values()) + 2  # with its frame
        below = room.height - table - league
        beside, full = below < GOOD and room.width >= WIDE, below < LEAST and room.height < LOW
        self.set_class(beside, "-beside")
        self.set_class(full, "-full")
        height = room.height if beside or full else max(0, room.height - LEAST)
        most = max(2 * room.height // 5, height - table)
        self.query_one(LeagueChart).styles.max_height = most
        self.query_one(BatchTable).styles.max_height = height - min(league, most)

    def _status(self) -> list[Text]:
        where, batch = plain(f" {self.folder} ", "bold"), self._navigator.live_batch
        playing = batch is not None and not batch.over
        problem = plain(f" {batch.problem if batch and batch.problem else self._problem}", tint(self.app, "error"))
        if batch is not None and playing and not batch.runs:
            return [where, plain(" planning the batch …")]
        if self._problem:
            return [where, problem]
        if self.look is None:
            return [where, plain(" looking …")]
        if not self.look.runs:
            return [where, problem if batch and batch.problem else plain(" no run yet; runs are shown as they begin")]
        ours = [run for run in self.look.runs if batch is not None and playing and run.standing.path in batch.runs]
        shown = RunGroup(tuple(ours or self.look.runs))
        line = plain(f" {'batch of ' if ours else ''}{counted(len(shown.runs), 'run')}: ")
        for state in reversed(RunState):
            if count := shown.states[state]:
                line.append(f"{state_sign(state)} {count} {state}  ", state_style(self.app, state))
        if shown.left is not None:
            line.append(f"· at most {duration(shown.left)} left")
        done, rounds = shown.rounds
        if rounds and shown.states.keys() & {RunState.RUNNING, RunState.WAITING}:
            where.append(f" {bar(done / rounds, PROGRESS)}", tint(self.app, "primary")).append(f" {done / rounds:.0%} ")
        order = plain(f" by {self.order}", tint(self.app, "foreground", dim=True))
        if self.look.abandoned:
            order.append(
                f" · {counted(self.look.abandoned, 'run')} of an earlier batch not begun; the same command plays "
                f"{'it' if self.look.abandoned == 1 else 'them'}"
            )
        return [line, problem if batch and batch.problem else where.append_text(order)]

    def _detail(self) -> None:
        line = self.query_one(BatchTable).chosen
        shown = plain("")
        if isinstance(line, RunLine):
            run = line.standing
            shown = Text(str(run.path), tint(self.app, "foreground", dim=True))
            if run.problem:
                shown.append(f"\n{run.problem}", tint(self.app, "error"))
            elif run.state is RunState.INTERRUPTED:
                shown.append("\ninterrupted; the same command continues it from its last checkpoint")
        elif isinstance(line, RunGroup):
            shown = Text(str(line.key), tint(self.app, "foreground", dim=True))
        detail = self.query_one("#batch-detail", Static)
        if shown != detail.content:  # else all would be laid out again
            detail.update(shown)
        self._beside(line)

    def _beside(self, line: RunLine | RunGroup | None) -> None:
        """Show the leagues, and preview the chosen line's run, or the first one of its group."""
        run = line.runs[0] if isinstance(line, RunGroup) else line
        self.set_class(run is None, "-empty")
        if run is None:
            return
        self.query_one(LeagueChart).show(self._leagues, run.standing.path.parents[1])
        if run.standing != self._previewed:
            self._previewed = run.standing
            self.query_one(PreviewPane).ask(Entry("run", run.title, run.standing.path, run.standing.state))

    @on(BatchTable.Moved)
    def _moved(self) -> None:
        self._detail()

    @on(BatchTable.TitleClicked)
    def _title_clicked(self, event: BatchTable.TitleClicked) -> None:
        by = {"state": "state", "left": "time left", "auc": AUC.name, "accuracy": "accuracy", "age": "last change"}
        self.order = by.get(event.key, next(iter(ORDERS)))
        self.draw()

    def action_open(self) -> None:
        line = self.query_one(BatchTable).chosen
        if isinstance(line, RunGroup):
            self.only, self.groups = line.key, False
            self.draw()
        elif line is None:
            self.notify("There is no run yet.", timeout=3)
        elif (why := CLOSED.get(line.standing.state)) is not None:
            self.notify(why, timeout=3)
        else:
            self._navigator.show_market(self._navigator.runs.open(line.standing.path))

    def action_sort(self) -> None:
        names = list(ORDERS)
        self.order = names[(names.index(self.order) + 1) % len(names)]
        self.draw()

    def action_group(self) -> None:
        """Show a line for all seeds of a scenario and policy, or for each run."""
        self.groups, self.only = not self.groups, None
        self.draw()

    def action_next_problem(self, step: int) -> None:
        table = self.query_one(BatchTable)
        bad = {RunState.FAILED, RunState.UNREADABLE, RunState.GONE, RunState.INTERRUPTED}
        places = [i for i, line in enumerate(table.lines) if bad & _states_of(line)]
        if not places:
            self.notify("No run has failed or been interrupted.", timeout=3)
            return
        beyond = [place for place in places[::step] if step * place > step * table.cursor]
        table.cursor = [*beyond, *places[::step]][0]

    def action_mark(self) -> None:
        """Mark the run, or all runs of the group; where they are marked already, no longer."""
        line = self.query_one(BatchTable).chosen
        runs = {run.standing.path for run in (line.runs if isinstance(line, RunGroup) else [line]) if run and run.begun}
        if not runs:
            self.notify("Only runs that have begun and are there can be marked.", timeout=3)
            return
        self.marked = self.marked - runs if runs <= self.marked else self.marked | runs
        self.draw()

    def action_compare(self) -> None:
        runs = [run.standing.path for run in (self.look.runs if self.look else ()) if run.standing.path in self.marked]
        if len(runs) < 2:
            self.notify("Mark at least two runs first (space).", timeout=4)
            return
        self._navigator.show_comparison([self._navigator.runs.open(path) for path in runs])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key is of use: a batch that another program plays is not ended here."""
        batch = self._navigator.live_batch
        return (batch is not None and not batch.over) if action == "end" else True

    def action_end(self) -> None:
        if (batch := self._navigator.live_batch) is not None:
            batch.stop()

    def action_back(self) -> None:
        if self.only is not None:
            self.only, self.groups = None, True
            self.draw()
        else:
            self.app.pop_screen()


def _states_of(line: RunLine | RunGroup) -> set[RunState]:
    return {line.standing.state} if isinstance(line, RunLine) else set(line.states)
