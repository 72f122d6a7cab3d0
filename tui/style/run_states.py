"""The look of a run's state, wherever it stands: its sign and its colour."""

from rich.style import Style
from textual.app import App

from scenarios.logs.run_state import RunState
from tui.style.colors import tint

_LOOKS = {
    RunState.FAILED: ("✘", "error"),
    RunState.UNREADABLE: ("✘", "error"),
    RunState.INTERRUPTED: ("■", "warning"),
    RunState.INCOMPLETE: ("▷", "warning"),
    RunState.PAUSED: ("⏸", "warning"),
    RunState.STARTING: ("…", "primary"),
    RunState.RUNNING: ("▶", "success"),
    RunState.WAITING: ("…", "foreground"),
    RunState.COMPLETE: ("✔", "primary"),
}


def state_sign(state: RunState) -> str:
    return _LOOKS[state][0]


def signed(state: RunState) -> str:
    return f"{state_sign(state)} {state}"


def state_style(app: App[object], state: RunState) -> Style:
    return tint(app, _LOOKS[state][1], bold=state is not RunState.WAITING)
