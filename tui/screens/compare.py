"""The compare screen: a curve and table rows for each run, with differences from a baseline.

Runs that differ in their seed alone are shown as one, by their means, unless the user asks for each run.
"""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from flmarket.analysis.results.measures import AUC
from flmarket.analysis.results.report_tables import finding
from flmarket.core.text import counted
from learning.statistics.intervals import FEWEST
from scenarios.logs.reading import LogError
from scenarios.logs.run_state import RunState
from tui.screens.export_dialog import ExportDialog
from tui.screens.navigation import Navigator
from tui.state.compared_runs import (
    DECIDES,
    PolicyRuns,
    ServiceRow,
    caveats,
    common_rounds,
    compare,
    first_intervention,
    groups,
    intervened,
    market_name,
    name_of,
    original,
)
from tui.state.history import COMPARED
from tui.state.watched_run import Session, SessionChanged
from tui.style.colors import SERIES, policy_places, series_color, sign, signed, state_sign, tint
from tui.style.formats import plain, shortened, told_apart
from tui.style.key_names import named
from tui.style.redraw import Redraw
from tui.widgets.comparison import CompareCurves, CompareTable
from tui.widgets.key_bar import KeyBar
from tui.widgets.zoom import MOVE, ZOOM, Zooming, ZoomPlot

LEAST_NAMED = 12  # cells of names to which they are cut before what the runs do is left out


class CompareScreen(Screen[None], Zooming):
    """Compares two or more runs, at the same round unless the user asks for each run's latest."""

    BINDINGS = named(
        "compare",
        [
            Binding("v", "next_metric", "Next curve: Show the next curve: accuracy, reward, spend, price"),
            Binding("tab,right", "service(1)", "Next service: Show the next service in the plot"),
            Binding("shift+tab,left", "service(-1)", "Previous service: Show the service before", show=False),
            Binding("l", "align", "Same round/latest: Compare at the same round, or each run at its latest"),
            Binding("s", "seeds", "Means/each run: Show means over seeds, or each run"),
            *ZOOM,
            *MOVE,
            Binding("b", "baseline", "Next baseline: Measure differences from the next run"),
            Binding("space", "pause", "Pause/resume all: Pause or resume the live runs"),
            Binding("enter", "open", "Open run: Open the run; of a mean, show its runs", key_display="enter"),
            Binding("x", "picture", "Picture: Export a picture of the screen"),
            Binding("escape", "app.pop_screen", "Back: Go back; the runs continue"),
        ],
    )
    HELP = """Runs compared: in the plot a curve for each run, in the table a row for each service and run. The line ┄
in the plot is the target. Where there is room, a second plot shows the differences from the baseline. Accuracy is on
test images, as in `flmarket report`, or on fitted curves where a scenario's backend trains nothing; where a scenario
holds out validation images, services meet their targets by the accuracy on those.

The first line says who is ahead on the service in the plot: of several, the best against the baseline. It goes by AUC,
the mean accuracy over the rounds, as `flmarket report` does, and says how much sooner the target was met where all runs
of both met it; beside another curve ([b]v[/b]) it goes by the normalised reward, what was spent, or the mean price.
Columns that find no room are left out, those that decide least first, and … ends the titles.

Δ is the difference from the baseline: at first the original if there are forks of it, else the first run ([b]b[/b]
chooses the next one). All numbers are for the last round that every run has reached ([b]l[/b]: for each run's latest
round), so live runs can be compared too. A run in which all services have left counts with its last round.

Runs that differ in their seed alone are shown as one, with means over the seeds; [b]s[/b] shows each run. From three
seeds on, and when the runs are over, 95 % intervals follow in brackets; upright lines near the end of the curves are
the last ones. The axes fit the means of the later half of the rounds shown; a target that is far from these stands in
the title. Of more than ten curves the chosen row's, the baseline's and the five of the highest accuracy have colours.
Where forks part from their original, an upright line says in which round, and what changed.
Differences are paired by seed, over the seeds that both have; > and < mark one of which only a bound is known. Those
that are clear (their interval is without 0) are green where they are for the better, and red where for the worse."""
    CSS_PATH = "compare.tcss"
    AUTO_FOCUS = "#compare-table"

    def __init__(self, sessions: Sequence[Session], navigator: Navigator) -> None:
        super().__init__()
        self.sessions = list(sessions)
        self._navigator, self._runs = navigator, navigator.runs
        self._service: int | None = None  # that the user has chosen
        self.metric, self.aligned = COMPARED[0], True
        self.singly = False  # each run by itself, although some differ in their seed alone
        self._baseline: int | None = None
        self._redraw = Redraw(self, self.draw)

    def compose(self) -> ComposeResult:
        yield Static("", id="compare-status")
        yield CompareCurves(id="compare-curves")
        yield CompareTable(id="compare-table")
        yield KeyBar()

    def on_mount(self) -> None:
        for session in self.sessions:
            session.watch(self)
        self.app.theme_changed_signal.subscribe(self, lambda _: self.draw())
        self.call_after_refresh(self.draw)

    def on_unmount(self) -> None:
        for session in self.sessions:
            session.unwatch(self)

    def on_screen_resume(self) -> None:
        self._redraw.request()

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    @on(SessionChanged)
    def _session_changed(self) -> None:
        self._redraw.request()

    @property
    def services(self) -> list[str]:
        scenario = next((session.scenario for session in self.sessions if session.scenario), None)
        return [service.name for service in scenario.services] if scenario else []

    @property
    def service(self) -> int:
        """The place of the service in the plot: at first that of a fork's intervention, if it is of a service."""
        changed, names = intervened(self.sessions), self.services
        first = names.index(changed) if changed in names else 0
        return first if self._service is None else self._service

    @property
    def shown(self) -> list[PolicyRuns]:
        """The groups of runs that are shown as one; each run by itself where there are none."""
        by_seed = groups(self.sessions)
        if self.singly or len(by_seed) == len(self.sessions):
            return [PolicyRuns(name_of(run, self.sessions), (place,)) for place, run in enumerate(self.sessions)]
        # Runs that have not begun belong to a group that is not known yet.
        return [group for group in by_seed if self.sessions[group.runs[0]].scenario is not None]

    def _colors(self, shown: Sequence[PolicyRuns]) -> list[str]:
        """Return the colours of what is shown: those of the policies where these tell it apart."""
        policies = [self.sessions[group.runs[0]].policy for group in shown]
        places = policy_places(policies)
        alone = len(places) == len(shown)
        return [series_color(places[policy] if alone else place) for place, policy in enumerate(policies)]

    @property
    def baseline(self) -> int:
        """The place, in what is shown, of what differences are measured from."""
        return self._baseline_of(self.shown)

    def _baseline_of(self, shown: Sequence[PolicyRuns]) -> int:
        if self._baseline is not None:
            return self._baseline % len(shown)
        first = original(self.sessions)
        return next((place for place, group in enumerate(shown) if first in group.runs), 0)

    @property
    def _rounds(self) -> list[int]:
        return common_rounds(self.sessions) if self.aligned else [len(session.history) for session in self.sessions]

    def draw(self) -> None:
        """Show the runs as they are now."""
        # The plots are there later than the table, and go sooner.
        if not (self.is_mounted and self.query("#compare-table") and self.query(ZoomPlot)):
            return
        for session in self.sessions:
            session.seen(self)
        try:
            self._show()
        except LogError as error:
            for session in self.sessions:
                if session.history.reading is not None:
                    session.spoil(error)  # which has the screen drawn again

    def _show(self) -> None:
        # Once: runs are read in threads, and what is known of them may change meanwhile.
        rounds, shown = self._rounds, self.shown
        baseline, colors = self._baseline_of(shown), self._colors(shown)
        rows = compare(self.sessions, rounds, shown, baseline)
        # Until a run has been read, nothing is known of its services.
        finding = self._finding(rows, rounds, shown, baseline) if self.services else ""
        self._status(rounds, shown, baseline, colors, finding)
        if not self.services:
            return
        service = self.services[self.service]
        table = self.query_one(CompareTable)
        table.show(rows, [group.name for group in shown], colors)
        curves = self.query_one(CompareCurves)
        curves.show(self.sessions, rounds, service, self.metric, shown, colors, baseline, table.place)

    def _finding(
        self, rows: Sequence[ServiceRow], rounds: Sequence[int], shown: Sequence[PolicyRuns], baseline: int
    ) -> str:
        """Return who is ahead of the baseline on the service in the plot, or whom the baseline leaves behind."""
        measure, service = DECIDES[self.metric], self.services[self.service]
        own = [row for row in rows if row.service == service]
        against = {row.group: (row.differences[measure.name], row) for row in own if measure.name in row.differences}
        if not against:
            if any(row.differences for row in own):
                return f"No client has served {service} in both: no {measure.name} to compare"
            begun = {row.group for row in rows}
            if baseline in begun and len(begun) > 1:
                return "No seed in common: no differences"
            waiting = [group.name for place, group in enumerate(shown) if place not in begun]
            return f"{waiting[0]} has no round yet" if len(waiting) == 1 else ""
        estimates = {place: difference.interval.estimate for place, (difference, _) in against.items()}
        best = max(estimates, key=lambda place: estimates[place] if measure.better else abs(estimates[place]))
        if parting := self._parting(rounds):
            return parting
        names = [market_name(self.sessions[it.runs[0]], self.sessions) if _means(shown) else it.name for it in shown]
        runs = [self.sessions[run] for place in (best, baseline) for run in shown[place].runs]
        so_far = "" if all(run.over for run in runs) else "So far, "
        difference, row = against[best]
        to_target = row.differences["rounds to target"] if measure is AUC else None
        return f"{so_far}{finding(difference, names[best], names[baseline], to_target)}{row.common}"

    def _parting(self, rounds: Sequence[int]) -> str:
        """Return why forks are like their original so far; empty where they need not be."""
        part = first_intervention(self.sessions)
        if part is None or max(rounds) >= part or len({session.policy for session in self.sessions}) > 1:
            return ""
        found = f"All the same so far: the runs part in round {part}"
        if held := self._held_back(part):
            names = " and ".join(name_of(session, self.sessions) for session in held)
            found += f", before which {names} {'are' if len(held) > 1 else 'is'} paused (space: resume)"
        return found

    def _held_back(self, part: int) -> list[Session]:
        """Return the paused runs of this app which have not come to the round in which forks part from them."""
        return [
            session
            for session in self.sessions
            if session.state is RunState.PAUSED and len(session.history) < part and self._runs.steerable(session)
        ]

    def _status(
        self,
        rounds: Sequence[int],
        shown: Sequence[PolicyRuns],
        baseline: int,
        colors: Sequence[str],
        found: str,
    ) -> None:
        status = self.query_one("#compare-status", Static)
        lines = self._wrapped(plain(f" {found}", "bold"))
        lines += self._header(rounds, shown, baseline, colors, status.size.width)
        lines += self._wrapped(self._notes(shown))
        status.styles.height = len(lines)
        status.update(Text("\n").join(lines), layout=False)

    def _wrapped(self, text: Text) -> list[Text]:
        """Return a text on one line, or on two, of which the second is indented, too."""
        room = self.query_one("#compare-status").size.width
        first, *rest = text.wrap(self.app.console, max(1, room - 1), no_wrap=False) or [text]
        return [first, *(Text(" ").append_text(shortened(Text(" ").join(rest), room - 1)) for _ in rest[:1])]

    def _header(
        self,
        rounds: Sequence[int],
        shown: Sequence[PolicyRuns],
        baseline: int,
        colors: Sequence[str],
        room: int,
    ) -> list[Text]:
        """Return the names, rounds and states of what is shown, on one line, or on two where there is much of it.

        Where there is no room for all, signs stand for states and what all have in common is said once, then names are
        cut, and at last signs stand alone.
        """
        names = [group.name for group in shown]
        numbers = [f"round {max(rounds[run] for run in group.runs)}" for group in shown]
        states = [_state([self.sessions[run] for run in group.runs]) for group in shown]
        signs = [state.split()[0] for state in states]
        common = " ".join(words[0] for words in (numbers, states) if len(set(words)) == 1 < len(words))
        own = [words for words in (numbers, signs) if len(set(words)) > 1]
        every = f" · all: {common}" if common else ""

        def form(names: Sequence[str], *words: Sequence[str], end: str = "") -> list[Text]:
            """Return lines with these words for each of the names, and an end."""
            dot = " ·" if numbers in words else ""
            items = []
            for place, its in enumerate(zip(names, *words, strict=True)):
                item = f" {sign(place)} {' '.join([its[0] + dot, *its[1:]])} "
                items.append(Text(item, f"bold {colors[place]}"))
            items[baseline].append("(baseline) ")
            return _lines([*items, Text(end)], room)

        for lines, least in ((1, LEAST_NAMED), (2, 1)):
            forms = [form(names, numbers, states), form(names, numbers, signs)]
            widths = range(max(map(cell_len, names)), least - 1, -1)
            forms += (form(told_apart(names, width), *own, end=every) for width in widths)
            if (fitting := next((it for it in forms if len(it) <= lines), None)) is not None:
                return fitting
        alone = [Text(f" {sign(place)} ", f"bold {color}") for place, color in enumerate(colors)]
        return _lines(alone, room)

    def _notes(self, shown: Sequence[PolicyRuns]) -> Text:
        seeds = [{self.sessions[run].seed for run in group.runs} for group in shown]
        paired = _means(shown) and all(own == seeds[0] for own in seeds)
        notes = caveats(self.sessions, paired=paired)
        # Of a run that has not begun nothing is known, and runs of one policy differ in nothing.
        alike = len({it.seed for it in self.sessions}) == 1 and all(it.scenario for it in self.sessions)
        differ = len({it.policy for it in self.sessions}) > 1
        words = " · ".join(notes) or ("same market, same seed; only the policies differ" if alike and differ else "")
        look = tint(self.app, "warning") if notes else tint(self.app, "foreground", dim=True)
        line = plain(f" {words}" if words else "", look)
        if _means(shown):
            fewest = min(map(len, seeds))
            how = "with 95 % intervals" if fewest >= FEWEST else f"no intervals for fewer than {FEWEST} seeds"
            even = all(len(own) == fewest for own in seeds)
            over = f"means over {counted(fewest, 'seed')}" if even else "means over seeds"
            later = sum(session.scenario is None and not session.over for session in self.sessions)
            waiting = f"; {counted(later, 'run')} to begin" if later else ""
            line = Text.assemble(f" {over}, {how}{waiting} ", line)
        return line

    @on(ZoomPlot.Zoomed)
    def _zoomed(self) -> None:
        self.draw()

    @on(CompareTable.Moved)
    def _moved(self) -> None:
        if len(self.shown) > len(SERIES):  # the chosen curve has its colour, others do not
            self._redraw.request()

    def action_next_metric(self) -> None:
        self.metric = COMPARED[(COMPARED.index(self.metric) + 1) % len(COMPARED)]
        self.draw()

    def action_service(self, steps: int) -> None:
        self._service = (self.service + steps) % max(1, len(self.services))
        self.draw()

    def action_align(self) -> None:
        self.aligned = not self.aligned
        self.draw()

    def action_seeds(self) -> None:
        if not _means(self.shown) and not self.singly:
            self.notify("No two of these runs differ in their seed alone.", timeout=3)
            return
        self.singly = not self.singly
        self._baseline = None
        self.draw()

    def action_baseline(self) -> None:
        self._baseline = (self.baseline + 1) % len(self.shown)
        self.draw()

    def action_pause(self) -> None:
        ours = [session for session in self.sessions if self._runs.steerable(session)]
        if not ours:
            self.notify("None of these runs is played by this app, so there is nothing to pause.", timeout=4)
        # Those that wait first: none may begin because another one pauses.
        ours.sort(key=lambda session: session.state is not RunState.WAITING)
        running = [session for session in ours if session.state is not RunState.PAUSED]
        if self._parting(self._rounds) and (held := self._held_back(first_intervention(self.sessions) or 0)):
            running, ours = [], held
        for session in running or ours:
            self._runs.send(session, "pause" if running else "resume")

    def action_open(self) -> None:
        """Open the run of the chosen row; where it is the mean of several, show each."""
        place = self.query_one(CompareTable).place
        if place is None:
            return
        runs = self.shown[place].runs
        if len(runs) > 1:
            self.action_seeds()
        else:
            self._navigator.show_market(self.sessions[runs[0]])

    def action_picture(self) -> None:
        self.app.push_screen(ExportDialog(None, self.query_one(CompareCurves), "Curves"))


def _means(shown: Sequence[PolicyRuns]) -> bool:
    """Return whether what is shown are means over several runs."""
    return any(len(group.runs) > 1 for group in shown)


def _lines(words: Sequence[Text], room: int) -> list[Text]:
    """Return words, each whole, on as many lines as they need."""
    lines = [Text()]
    for word in words:
        if lines[-1] and lines[-1].cell_len + cell_len(word.plain.rstrip()) > room:
            lines.append(Text())
        lines[-1].append_text(word)
    return lines


def _state(runs: Sequence[Session]) -> str:
    states = {run.state for run in runs}
    if len(states) == 1:
        return signed(runs[0].state)
    over = sum(run.over for run in runs)
    return f"{state_sign(RunState.INTERRUPTED if over == len(runs) else RunState.RUNNING)} {over} of {len(runs)} over"
