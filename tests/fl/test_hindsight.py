"""What a round added to a run, against runs that really are played again with other images in it."""

import numpy as np
import pytest

from fl.hindsight import added
from fl.jobs import TrainingJob
from fl.surrogate import Curve, SurrogateFederation, Trained
from support.curves import CURVE

ROUNDS: list[list[tuple[int, float]] | None] = [
    [(300, 0.4), (100, 1.2)],
    [(50, 1.6)],
    None,
    [(400, 0.2), (400, 0.3), (20, 1.0)],
    [(250, 0.9)],
]
"""Sizes and EMDs of each round's clients; in the third, nobody served."""

USUAL = [(200, 0.8), (200, 0.8)]


def images(clients: list[tuple[int, float]] | None) -> Trained | None:
    return clients and Trained.on((size, size, emd) for size, emd in clients)


def accuracies(curve: Curve, rounds: list[list[tuple[int, float]] | None]) -> list[float]:
    federation, found = SurrogateFederation({"s": curve}, 0), []
    for n, clients in enumerate(rounds, 1):
        jobs = [TrainingJob("s", c, size, emd) for c, (size, emd) in enumerate(clients or [])]
        federation.train_round(n, jobs)
        found.append(federation.accuracy("s"))
    return found


def test_it_is_what_the_run_would_have_lost_with_other_images_in_that_round() -> None:
    instead = images(USUAL)
    assert instead is not None
    found = added(CURVE, [images(clients) for clients in ROUNDS], instead)
    as_played = np.sum(accuracies(CURVE.noiseless(), ROUNDS))
    replayed = [np.sum(accuracies(CURVE.noiseless(), [*ROUNDS[:n], USUAL, *ROUNDS[n + 1 :]])) for n in range(5)]
    np.testing.assert_allclose(found, as_played - np.array(replayed), atol=1e-12)
    assert found[2] < 0 < found[3], "a round without clients loses, one with much good data gains"


def test_the_usual_images_add_nothing() -> None:
    instead = images(USUAL)
    assert instead is not None
    np.testing.assert_array_equal(added(CURVE, [instead] * 4, instead), np.zeros(4))


@pytest.mark.parametrize("rounds", [0, 1])
def test_short_runs(rounds: int) -> None:
    assert added(CURVE, [None] * rounds, Trained(10, 10, 8.0, 100)).shape == (rounds,)
