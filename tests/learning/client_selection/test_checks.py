"""Numbers that are none."""

import pytest

from learning.client_selection.checks import ObservationError, require_finite


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"dqi": [0.1, float("nan")]},
            "service 's0', round 1: the observation's dqi of client 1 is not a finite number",
        ),
        ({"bids": [[1.0, 2.0], [float("inf"), 1.0]]}, "bids of client 0"),
        ({"budget": float("nan")}, "budget is not a finite number"),
        ({"accuracy": float("nan")}, "accuracy is not a finite number"),
    ],
)
def test_numbers_that_are_none_are_refused(make_observation, change, message):
    arguments = {"bids": [[1.0, 2.0], [3.0, 1.0]]} | change
    with pytest.raises(ObservationError, match=message):
        require_finite(make_observation(arguments.pop("bids"), **arguments))
