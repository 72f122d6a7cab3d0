"""The look of states."""

from scenarios.logs.run_state import RunState
from tui.style.colors import signed


def test_each_state_has_a_sign() -> None:
    assert all(signed(state)[1:] == f" {state}" for state in RunState)
