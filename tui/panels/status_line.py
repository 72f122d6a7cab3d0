"""The lines above the panels: the run, its state, the round and time that are shown, and the bar of its rounds.

While there is no round, the steps of the run's start take the place of the panels.
"""

from rich.console import Group, RenderableType
from rich.segment import Segment
from rich.text import Text
from textual import events
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from des.money import MICRO
from flmarket.core.text import counted, duration
from scenarios.logs.run_state import RunState
from tui.panels.panel import Seek
from tui.state.moment import Moment
from tui.state.watched_run import Session
from tui.style.colors import signed, state_style, tint
from tui.style.formats import fit, per_second, plain, seconds, within, wrapped
from tui.style.sentences import event_words, story
from tui.widgets.preview import services_table

NOW = {
    RunState.STARTING: "starting the run's process",
    RunState.READING: "reading the run's files",
    RunState.RUNNING: "playing the first round",
    RunState.INCOMPLETE: "waiting for the first round of another process",
}
"""What happens before the first round, by the state of the run."""

_WAITING = NOW | {
    RunState.STARTING: "loading data and models",
    RunState.PAUSED: "paused before the first round: space plays the run, s one round",
}
"""The second line before the first round is over."""

HINT = " (F: full speed)"


class StatusLine(Static):
    """Two lines of text; three where an error takes two."""

    def show(self, view: Moment, *, following: bool, playing: bool, steerable: bool) -> None:
        """Show the state of the run at a moment, and whether new rounds are shown as they come."""
        session = view.session
        state = plain(f" {'▶ replaying' if playing else signed(session.state)} ", state_style(self.app, session.state))
        rounds = session.scenario.rounds if session.scenario else 0
        place = f"round {view.round}" + (f"/{rounds}" if rounds else "")
        if not following and view.round < len(session.history):
            place += f" ({len(session.history)} played)"
        faint = tint(self.app, "foreground", dim=True)
        ended = session.over and view.round == len(session.history) > 0
        summary = ("  7: summary" if ended else "", tint(self.app, "accent"))
        clock, speed = f"  clock {seconds(view.clock / MICRO)}", f"  {_speed(session, steerable=steerable)}"
        shorter = ("",) if session.over and not playing else (speed, speed.replace(HINT, ""))
        for times in (clock + speed, *shorter):  # the first that fits: the clock stands in the panels, too
            first = Text.assemble(state, (place, "bold"), summary, times, "  ", (session.label, faint), no_wrap=True)
            if first.cell_len <= self.size.width:
                break
        first.overflow = "ellipsis"
        second = self._second(view, session)
        below = [second]
        if session.error is not None and self.size.width:
            head, *rest = wrapped(second.plain.strip(), self.size.width - 1)
            below = [plain(f" {words}", second.style) for words in (head, " ".join(rest)) if words]
        if self.size.height != 1 + len(below):
            self.styles.height = 1 + len(below)
        self.update(Text("\n").join([first, *below]), layout=False)

    def _second(self, view: Moment, session: Session) -> Text:
        if session.error is not None:
            # There is no room for the run's directory after the reason, and the screen is about the run anyway.
            words = within(session.directory or session.label, session.error).replace("\n", " · ")
            return plain(f" {words}", tint(self.app, "error", bold=True))
        if session.slow and not session.over:
            return plain(f" {fit(session.slow, 200)}", tint(self.app, "warning"))
        if session.state is RunState.WAITING:
            return plain(
                " waits until a core is free; it begins when one of the runs that play ends",
                tint(self.app, "foreground", dim=True),
            )
        if session.catching_up:
            number = len(session.history) + 1
            words = f" replaying round {number} of the {session.hurry} shared with the original"
            return plain(words if session.scenario else " loading data and models", tint(self.app, "warning"))
        if view.event is not None:
            words = "before the first event" if view.latest is None else event_words(view.latest)
            return plain(f" event {view.event}/{len(view.events)}: {words}", tint(self.app, "warning"))
        if not view.begun:
            words = _WAITING.get(session.state, "no round was played")
            return plain(f" {words}", tint(self.app, "foreground", dim=True))
        rows = view.logged.services
        there = sum(row.status.takes_part for row in rows)
        spent = sum(row.spent for row in rows) / MICRO
        served, refused = sum(row.served for row in rows), sum(row.refused for row in rows)
        words = (
            f" {there} of {counted(len(rows), 'service')} take{'s' * (there == 1)} part · "
            f"{counted(served, 'offer')} served, {refused:,} refused · {spent:.2f} spent"
        )
        changes = [
            f"{c.key} = {c.value}"
            for c in (session.scenario.interventions if session.scenario else ())
            if c.round == view.round
        ]
        intervention = f" · intervention: {', '.join(changes)}" if changes else ""
        return Text.assemble(
            (words, tint(self.app, "foreground", dim=True)),
            (intervention, tint(self.app, "warning", bold=True)),
            no_wrap=True,
        )


def _speed(session: Session, *, steerable: bool) -> str:
    """Return how fast the run may be and is, and how long it will take at most: it ends early if all services leave."""
    words = "full speed" if session.speed is None else f"{per_second(session.speed)} rounds/s"
    if not (steerable or session.over):
        words = "by another process"
    elif session.speed is not None and not session.over:
        words += HINT
    rate = session.pace.rate() if session.state in {RunState.RUNNING, RunState.INCOMPLETE} else None
    if rate is None or session.scenario is None:
        return words
    if steerable and session.speed is not None:
        rate = min(rate, session.speed)  # what came before may have been faster
    left = max(0, session.scenario.rounds - len(session.history)) / rate
    return f"{words}, now {per_second(rate)}/s, at most {duration(left)} left"


class SeekBar(Widget):
    """``━━━◆━━●──────``: rounds played, exits (◆), the round shown (●), rounds to come. A click goes to a round."""

    DEFAULT_CSS = "SeekBar { height: 1; }"

    _view: Moment | None = None

    def show(self, view: Moment) -> None:
        self._view = view
        self.refresh()

    @property
    def _total(self) -> int:
        view = self._view
        if view is None:
            return 1
        played = len(view.session.history)
        if view.session.over or view.scenario is None:
            return max(1, played)
        return max(1, played, view.scenario.rounds)

    def _cell(self, number: int) -> int:
        width = max(1, self.size.width - 2)
        return min(width - 1, int((number - 1) / max(1, self._total - 1) * (width - 1))) if number else 0

    def render_line(self, y: int) -> Strip:
        view, width, base = self._view, max(1, self.size.width - 2), self.rich_style
        if view is None:
            return Strip.blank(self.size.width, base)
        history = view.session.history
        played = self._cell(len(history)) + 1 if len(history) else 0
        cells = ["━"] * played + ["─"] * (width - played)
        styles = [tint(self.app, "primary")] * played + [tint(self.app, "foreground", dim=True)] * (width - played)
        for number in history.exits:
            cells[self._cell(number)], styles[self._cell(number)] = "◆", tint(self.app, "success", bold=True)
        if view.round:
            cells[self._cell(view.round)] = "●"
            styles[self._cell(view.round)] = tint(self.app, "accent", bold=True)
        line = [Segment(cell, base + style) for cell, style in zip(cells, styles, strict=True)]
        return Strip([Segment(" ", base), *line, Segment(" ", base)], self.size.width).simplify()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if event.button:
            self.on_click(event)

    def on_click(self, event: events.MouseEvent) -> None:
        if self._view is not None and len(self._view.session.history):
            width = max(1, self.size.width - 2)
            wanted = 1 + round((event.x - 1) / max(1, width - 1) * (self._total - 1))
            self.post_message(Seek(max(1, min(len(self._view.session.history), wanted))))


class StartSteps(Static):
    """The steps of a run's start, the present one last, what went wrong, and its market once it is known."""

    can_focus = True

    def show(self, session: Session) -> None:
        """Show how far the start of a run is, or why it has no round."""
        faint, done = tint(self.app, "foreground", dim=True), tint(self.app, "success")
        steps = list(session.opening)
        if session.state is not RunState.STARTING or not steps:
            steps += filter(None, [NOW.get(session.state)])
        over = session.state in {RunState.PAUSED, RunState.WAITING}
        lines: list[RenderableType] = [
            Text.assemble(("✔ ", done), plain(step, faint))
            if over or number < len(steps)
            else Text.assemble("✘ " if session.error else "… ", plain(step))
            for number, step in enumerate(steps, 1)
        ]
        if session.error is not None:
            lines.append(Text(session.error, tint(self.app, "error")))
        if session.scenario is not None:
            lines += [Text(), *map(Text, story(session.scenario)), Text(), services_table(session.scenario)]
        self.update(Group(*lines))
