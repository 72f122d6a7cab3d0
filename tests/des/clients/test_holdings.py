"""Data that lasts: which pair a client holds is a function of the seed and the round, and changes as often as asked."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from des.clients.data_sources import FRESH, STRETCH, Choices, Holdings
from des.clients.data_tables import Lasting, PopulationSpec
from des.clients.population import Population
from fl.data.dqi import PUBLISHED

CLIENTS, PAIRS, ROUNDS = 400, 16, 60


def holdings(seed: int = 0, services: int = 2, clients: int = CLIENTS, **lasting: float) -> Holdings:
    return Holdings(services, Choices.of([clients], [PAIRS]), Lasting(**lasting), seed)


def places(world: Holdings, rounds: int = ROUNDS) -> np.ndarray:
    """Return which place each client has for each service in each round, [rounds, M, C]."""
    return np.stack([world.at(n)[0] for n in range(1, rounds + 1)])


def test_without_persistence_every_round_is_drawn_anew_as_in_the_paper() -> None:
    paper, drifting = holdings(), holdings(drift=0.5)
    assert paper.at(3)[1] is None
    assert (places(paper) == places(drifting)).all()


@pytest.mark.parametrize("persistence", [0.0, 0.5])
def test_a_pair_is_one_of_its_services(persistence: float) -> None:
    found = places(holdings(services=3, persistence=persistence))
    assert (found // PAIRS == np.arange(3)[:, None]).all()


def test_data_that_always_lasts_is_the_same_in_every_round() -> None:
    world = holdings(persistence=1.0)
    found = places(world)
    assert (found == found[0]).all()
    assert len(np.unique(found[0])) == 2 * PAIRS  # clients differ, and a service's pairs are its own
    since = world.at(7)[1]
    assert since is not None
    assert (since == 0).all()


def test_a_round_keeps_what_lasts_as_often_as_asked_and_is_else_the_paper_s() -> None:
    world, always, paper = holdings(persistence=0.75), holdings(persistence=1.0), holdings()
    since = np.stack([world.at(n)[1] for n in range(1, ROUNDS + 1)])
    kept = since != FRESH
    assert kept.mean() == pytest.approx(0.75, abs=0.005)
    assert (places(world) == np.where(kept, places(always), places(paper))).all()


def test_drift_replaces_all_that_a_client_holds_at_once_and_for_good() -> None:
    world = holdings(persistence=1.0, drift=0.1)
    since = np.stack([world.at(n)[1] for n in range(1, ROUNDS + 1)])
    assert (since[:, 0] == since[:, 1]).all()  # for all services
    drifted = since[:, 0] == np.arange(1, ROUNDS + 1)[:, None]
    assert drifted.mean() == pytest.approx(0.1, abs=0.01)
    assert (np.diff(since, axis=0)[~drifted[1:][:, None].repeat(2, axis=1)] == 0).all()
    found = places(world)
    same = found[1:, 0] == found[:-1, 0]
    assert same[~drifted[1:]].all()
    assert same[drifted[1:]].mean() == pytest.approx(1 / PAIRS, abs=0.02)  # one in so many draws is the old pair


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32),
    lasting=st.builds(Lasting, persistence=st.sampled_from([0.5, 1.0]), drift=st.sampled_from([0.0, 0.004, 0.2, 1.0])),
    order=st.lists(st.integers(1, 5 * STRETCH), min_size=1, max_size=8),
    clients=st.sampled_from([3, 700]),
)
def test_a_round_is_the_same_whatever_was_asked_for_before(
    seed: int, lasting: Lasting, order: list[int], clients: int
) -> None:
    forward, jumping = (Holdings(2, Choices.of([clients], [PAIRS]), lasting, seed) for _ in range(2))
    walked = {n: forward.at(n) for n in range(1, max(order) + 1)}
    for number in order:
        for one, other in zip(jumping.at(number), walked[number], strict=True):
            assert np.array_equal(one, other)


def test_neither_more_clients_nor_more_services_change_what_there_was() -> None:
    few, many = holdings(4, 2, 30, persistence=0.5, drift=0.1), holdings(4, 3, 50, persistence=0.5, drift=0.1)
    assert (places(many)[:, :2, :30] == places(few)).all()


def test_the_population_holds_reports_and_bids_what_lasts(paper_clients: PopulationSpec) -> None:
    spec = replace(paper_clients, lasting=Lasting(persistence=1.0))
    population = Population(spec, [10, 4], [PUBLISHED, PUBLISHED], seed=2)
    one, later = population.draw(1), population.draw(30)
    assert (one.bid == later.bid).all()
    assert (one.dqi == later.dqi).all()
    assert {job.mix for job in later.held.jobs("alpha", 0, range(20))} == {0}
    assert (later.held.data_size == later.data_size).all()
