"""Triggers: when a model is due, and how much of a stale update counts; worked by hand, and trained for real."""

from typing import Any

import numpy as np
import pytest

from fl.training.trigger import TRIGGERS, Gathered, Trigger
from flmarket.core.errors import InputError

OLD, BEGUN, MODEL = (np.array(it, dtype=np.float32) for it in ([2.0, 0.0], [1.0, 0.0], [1.0, 4.0]))


def trigger(name: str, **options: Any) -> Trigger:
    return TRIGGERS.create(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "due"),
    [
        # (arrived, at work, the period ends): due?
        ("wait-for-all", {}, {(3, 0, False): True, (3, 1, False): False, (3, 1, True): False}),
        ("wait-for-all", {"first": 3}, {(3, 4, False): True, (2, 4, False): False, (2, 0, False): True}),
        ("fedasync", {}, {(1, 5, False): True}),
        ("fedbuff", {"buffer": 3}, {(2, 0, False): False, (3, 5, False): True, (2, 0, True): False}),
        ("semi-async", {}, {(9, 0, False): False, (1, 5, True): True}),
    ],
)
def test_models_are_due(name: str, options: dict[str, Any], due: dict[tuple[int, int, bool], bool]) -> None:
    made = trigger(name, **options)
    assert {it: made.due(Gathered(*it)) for it in due} == due


def test_who_waits_for_all_recruits_nobody_meanwhile() -> None:
    nobody, some = Gathered(0, 0, closing=False), Gathered(3, 9, closing=False)
    assert [trigger("wait-for-all").recruits(it) for it in (nobody, some)] == [True, False]
    assert all(trigger(it).recruits(some) for it in ("fedasync", "fedbuff", "semi-async"))


def test_who_waits_for_the_first_recruits_again_once_they_are_there_and_takes_nothing_from_the_late() -> None:
    """2 of 5 make a model; the other 3 are late, and while they are still at work 4 others begin."""
    made = trigger("wait-for-all", first=2)
    assert not made.due(Gathered(1, 4, closing=False))
    assert made.due(Gathered(2, 3, closing=False))
    assert made.recruits(Gathered(0, 3, closing=True, late=3))
    assert not made.recruits(Gathered(0, 7, closing=True, late=3))
    assert not made.due(Gathered(1, 6, closing=False, late=3))
    # the other three of the four are lost, and the late ones are not waited for
    assert made.due(Gathered(1, 3, closing=False, late=3))
    # it is short of clients as long as it cannot have two updates
    assert made.recruits(Gathered(0, 4, closing=False, late=3))
    assert [made.share(it) for it in (0, 1, 5)] == [1.0, 0.0, 0.0]


def test_a_stale_update_counts_less() -> None:
    # FedBuff: the change [0, 4] counts (1 + 3)^-1/2 = 1/2 of the old model's time
    assert trigger("fedbuff").brought_up(MODEL, BEGUN, OLD, 3).tolist() == [2.0, 2.0]
    assert trigger("fedbuff", exponent=1.0).brought_up(MODEL, BEGUN, OLD, 3).tolist() == [2.0, 1.0]
    # FedAsync: 0.6 (1 + 3)^-1/2 = 0.3 of the model itself, and 0.7 of the old one
    assert trigger("fedasync").brought_up(MODEL, BEGUN, OLD, 3) == pytest.approx([1.7, 1.2])
    # one that is fresh counts 0.6, too
    assert trigger("fedasync").brought_up(MODEL, OLD, OLD, 0) == pytest.approx([1.4, 2.4])
    # a fresh one counts whole, to the bit
    assert trigger("semi-async").brought_up(MODEL, MODEL, MODEL, 0) is MODEL


class Careful(Trigger):
    """Takes half of everything."""

    def due(self, gathered: Gathered) -> bool:
        return True

    def share(self, staleness: int) -> float:
        return 0.5


def test_a_share_of_a_fresh_update_is_taken_where_a_trigger_says_so() -> None:
    assert Careful().brought_up(MODEL, OLD, OLD, 0).tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("fedbuff", {"buffer": 0}, "buffer must be a whole number of at least 1"),
        ("wait-for-all", {"first": 0}, "first must be a whole number of at least 1"),
        ("fedasync", {"mixing": 2}, "mixing must be a number from 0 to 1"),
        ("semi-async", {"exponent": -1}, "exponent must be a finite number of at least 0"),
    ],
)
def test_wrong_options_are_named(name: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        trigger(name, **options)
