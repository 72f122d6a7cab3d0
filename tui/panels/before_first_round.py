"""The picture while there is no round: the steps of the process, why it ended, and the market that it plays."""

from rich.console import Group, RenderableType
from rich.text import Text
from textual.widgets import Static

from scenarios.logs.run_state import RunState
from tui.state.watched_run import Session
from tui.style.colors import tint
from tui.style.formats import plain
from tui.widgets.preview import services_table
from tui.widgets.scenario_story import story

NOW = {
    RunState.STARTING: "starting the run's process",
    RunState.RUNNING: "playing the first round",
    RunState.INCOMPLETE: "waiting for the first round of another process",
}


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
