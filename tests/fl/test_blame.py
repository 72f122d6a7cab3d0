"""Foreign code in its context: what it raises becomes an error of flmarket's, save for what may pass."""

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
