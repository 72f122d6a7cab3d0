"""A service's progress: before the first round, at its target, and after it."""

from dataclasses import replace

import pytest

from des.observation import Status
from des.service import ServiceSpec, ServiceState
from fl.data.dqi import DQIParameters

SPEC = ServiceSpec(
    "alpha", "digits", 10, DQIParameters(0.1, 0.1, 0.1, 0.1, 0.1, 0.1), 5_000_000, 0.9, 60.0, 1, "random"
)


def test_accuracy_on_test_images_is_the_same_where_no_images_are_held_back() -> None:
    assert ServiceState.first(SPEC, 0.2, None) == ServiceState(0.2, 0.2)
    assert ServiceState.first(SPEC, 0.2, 0.3) == ServiceState(0.2, 0.3)


def test_a_service_waits_until_its_round() -> None:
    late = replace(SPEC, arrival=3)
    state = ServiceState.first(late, 0.1, None)
    assert (state.status, state.active, state.stays) == (Status.WAITING, False, True)
    assert [state.arrives(late, n) for n in (2, 3, 4)] == [False, True, True]
    assert not ServiceState.first(SPEC, 0.1, None).arrives(SPEC, 3)


@pytest.mark.parametrize(("accuracy", "leaves"), [(0.89, False), (0.9, True), (0.95, True)])
def test_a_service_is_gone_from_the_round_after_the_one_in_which_it_met_its_target(
    accuracy: float, *, leaves: bool
) -> None:
    state = ServiceState.first(SPEC, accuracy, None)
    assert state.leave_at(0.9) is leaves
    assert state.status is (Status.REACHED if leaves else Status.TRAINING)
    state.end_round()
    assert state.status is (Status.LEFT if leaves else Status.TRAINING)
    assert state.stays is not leaves
