"""Foreign code in its context: what it raises becomes an error of flmarket's, save for what may pass."""

import os
import signal

import pytest

from fl.blame import Foreign, describe
from fl.errors import InputError, RunError


class NotedError(InputError):
    """One that code may raise on purpose."""


@pytest.mark.parametrize("raised", [ValueError("no"), SystemExit(0), GeneratorExit(), StopIteration(), RunError("own")])
def test_whatever_is_raised_becomes_the_error_that_is_told_with_its_cause(raised: BaseException) -> None:
    with pytest.raises(RunError) as told, Foreign(lambda error: RunError(f"failed: {describe(error)}"), InputError):
        raise raised
    assert str(told.value) == f"failed: {describe(raised)}"
    assert told.value.__cause__ is raised


@pytest.mark.parametrize("passing", [KeyboardInterrupt(), InputError("wrong"), NotedError("wrong")])
def test_ctrl_c_and_the_errors_that_may_pass_stay_as_they_are(passing: BaseException) -> None:
    with pytest.raises(type(passing)) as found, Foreign(lambda _: RunError("failed"), InputError):
        raise passing
    assert found.value is passing


def test_nothing_is_told_where_nothing_is_raised() -> None:
    with Foreign(lambda _: RunError("failed")):
        result = 1
    assert result == 1


def test_a_keyboard_interrupt_where_ctrl_c_is_for_another_process_is_what_the_code_raised() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with pytest.raises(RunError), Foreign(lambda _: RunError("failed")):
            raise KeyboardInterrupt
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize("raised", [None, ValueError("in the child"), KeyboardInterrupt()])
def test_a_process_that_the_code_forks_does_not_leave_it(raised: BaseException | None) -> None:
    forked = 0
    try:
        with Foreign(lambda _: RunError("failed")):
            forked = os.fork()
            if not forked and raised is not None:
                raise raised
    finally:
        if not forked:  # the child must not come here; if it does, it must not play the other tests, either
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 1
