"""Clients with label mixes from a Dirichlet distribution: their data, EMDs and bids, and the ranges of these."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.behaviour import BEHAVIOURS
from des.clients.data_tables import Group, Lasting, PopulationSpec
from des.clients.population import Population
from des.cost import CostError
from des.costs.linear import Linear
from des.market import Market
from des.money import MICRO
from fl.data.dqi import PUBLISHED, DQIParameters, dqi
from support.clients import changed
from support.emd import emd
from support.tiers import examples

LABELS = [10, 4]
SPEC = PopulationSpec(2, (Group(30, (20, 50, 81), (), Linear(per_sample=0.05, per_emd=0.3), concentration=0.4),))


def population(spec: PopulationSpec = SPEC, seed: int = 3, labels: list[int] = LABELS, **changes: Any) -> Population:
    return Population(changed(spec, **changes), labels, [PUBLISHED] * len(labels), seed)


def test_the_emd_is_that_of_the_images_that_a_client_trains_on() -> None:
    world = population().draw(2)
    for m, labels in enumerate(LABELS):
        jobs = world.held.jobs("any", m, range(30))
        for client, job in enumerate(jobs):
            assert job.counts is not None
            assert len(job.counts) == labels
            assert sum(job.counts) == job.size == world.data_size[m, client]
            assert emd(job.counts) == pytest.approx(world.emd[m, client], abs=1e-12)
        assert [job.counts for job in world.held.jobs("any", m, [4, 17])] == [jobs[4].counts, jobs[17].counts]
    assert len(np.unique(world.emd)) > 30  # continuous


def test_dqi_and_cost_follow_from_size_and_emd() -> None:
    world = population().draw(1)
    assert world.dqi == pytest.approx(dqi(world.data_size, world.emd, PUBLISHED), rel=1e-11)
    assert (world.bid == np.rint((0.05 * world.data_size - 0.3 * world.emd) * MICRO)).all()


def test_the_concentration_decides_how_lopsided_data_is() -> None:
    means = [population(concentration=a).draw(1).emd[0].mean() for a in (0.05, 0.5, 5.0, 500.0)]
    assert means == sorted(means, reverse=True)
    assert means[0] > 1.4
    assert means[-1] < 0.2


@examples(30)
@given(
    seed=st.integers(0, 2**32),
    lasting=st.builds(Lasting, persistence=st.sampled_from([0.0, 0.5, 1.0]), drift=st.sampled_from([0.0, 0.2])),
    order=st.lists(st.integers(1, 80), min_size=1, max_size=4),
)
def test_a_round_is_the_same_whatever_was_asked_for_before_and_whoever_else_there_is(
    seed: int, lasting: Lasting, order: list[int]
) -> None:
    forward, jumping = (population(seed=seed, lasting=lasting) for _ in range(2))
    more = population(seed=seed, lasting=lasting, count=41, labels=[*LABELS, 7])
    walked = {number: forward.draw(number) for number in range(1, max(order) + 1)}
    for number in order:
        one, other, crowd = walked[number], jumping.draw(number), more.draw(number)
        for name in ("data_size", "emd", "dqi", "bid"):
            assert (getattr(one, name) == getattr(other, name)).all()
            assert (getattr(one, name) == getattr(crowd, name)[:2, :30]).all()


def test_a_mix_lasts_as_long_as_the_size() -> None:
    always = population(lasting=Lasting(persistence=1.0))
    one, later = always.draw(1), always.draw(50)
    assert (one.emd == later.emd).all()
    assert one.held.jobs("any", 0, range(30)) == later.held.jobs("any", 0, range(30))
    assert not (population().draw(1).emd == population().draw(2).emd).all()


def test_a_round_that_does_not_keep_what_lasts_has_the_data_that_it_has_without() -> None:
    half, always, fresh = (population(lasting=Lasting(persistence=p)) for p in (0.5, 1.0, 0.0))
    kept = []
    for number in (1, 2, 9):
        one, lasts, new = half.draw(number), always.draw(number), fresh.draw(number)
        kept.append(one.emd == lasts.emd)
        assert (np.where(kept[-1], lasts.emd, new.emd) == one.emd).all()
    assert 0.35 < np.mean(kept) < 0.65


def test_drift_replaces_mixes_for_good() -> None:
    drifting = population(lasting=Lasting(persistence=1.0, drift=0.05))
    emds = np.stack([drifting.draw(number).emd for number in range(1, 41)])
    changes = (np.diff(emds, axis=0) != 0).any(axis=1)  # of all services of a client at once
    assert changes.mean() == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize(
    "behaviour",
    [
        ("truthful", {}),
        ("markup", {"share": 0.2}),
        ("misreport", {"size": 0.5, "emd": -0.4, "share": 0.5}),
        ("misreport", {"size": -0.5, "emd": 2.0}),
        ("adaptive", {}),
        ("ring", {}),
    ],
)
@pytest.mark.parametrize("concentration", [0.001, 0.3, 50.0])
def test_all_rounds_lie_in_the_ranges(behaviour: tuple[str, dict[str, Any]], concentration: float) -> None:
    people = population(concentration=concentration, behaviour=BEHAVIOURS.create(behaviour[0], **behaviour[1]))
    for number in range(1, 6):
        world = people.draw(number)
        for drawn, (lowest, highest) in ((world.bid, people.bid_range), (world.dqi, people.seen_range)):
            assert (lowest <= drawn.min(axis=1)).all()
            assert (drawn.max(axis=1) <= highest).all()
        assert set(world.data_size.ravel().tolist()) <= set(people.data_sizes)


def test_ranges_reach_about_as_far_as_what_is_drawn() -> None:
    people, *all_of_them = (population(concentration=a, count=300) for a in (1.0, 0.01, 300.0))
    worlds = [each.draw(number) for each in all_of_them for number in range(1, 10)]
    bids, worth = (np.concatenate([getattr(it, name) for it in worlds], axis=1) for name in ("bid", "dqi"))
    for drawn, (lowest, highest), slack in ((bids, people.bid_range, 0.15 * MICRO), (worth, people.seen_range, 0.1)):
        assert (drawn.min(axis=1) - lowest < slack).all()
        assert (highest - drawn.max(axis=1) < slack).all()


def test_a_cost_that_could_be_negative_is_refused_whatever_is_drawn() -> None:
    """All 20 images of one of ten labels: 0.05 * 20 = 1 is just enough at an EMD of 1.8."""
    population(cost=Linear(per_sample=0.05, per_emd=1 / 1.8), concentration=1000.0)
    with pytest.raises(CostError, match="a cost is negative"):
        population(cost=Linear(per_sample=0.05, per_emd=1.01 / 1.8), concentration=1000.0)


def test_those_who_misreport_train_on_what_they_hold() -> None:
    people = population(behaviour=BEHAVIOURS.create("misreport", size=1.0))
    world = people.draw(1)
    assert (world.data_size == 2 * world.held.data_size).all()
    assert (world.emd == world.held.emd).all()
    [job] = world.held.jobs("any", 1, [7], [int(world.data_size[1, 7])])
    assert sum(job.counts or ()) == job.size == job.weight / 2


def test_markets_train_on_the_counts(make_market, pay_the_bid, stub_federation) -> None:
    federation = stub_federation()
    market: Market = make_market(["alpha"], replace(SPEC, lasting=Lasting(0.5, 0.1)), federation=federation, rounds=3)
    while not market.finished:
        market.close_round({name: pay_the_bid(it) for name, it in market.open_round().items()})
    jobs = [job for _, asked in federation.asked for job in asked]
    assert jobs
    for job in jobs:
        assert emd(job.counts) == pytest.approx(job.emd, abs=1e-12)


def test_ten_thousand_clients_of_ten_services_are_drawn_as_arrays() -> None:
    """No function is called for each client."""
    crowd, calls = population(count=10_000, labels=[10] * 10), []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code) if event == "call" else None)
    try:
        crowd.draw(1)
    finally:
        sys.setprofile(None)
    assert len(calls) < 10_000


def test_parameters_of_the_dqi_may_have_their_peak_inside() -> None:
    odd = DQIParameters(0.2, 0.3, 0.01, 0.7, -0.6, 0.4)
    people = Population(SPEC, [10], [odd], seed=0)
    lowest, highest = people.seen_range
    for number in range(1, 20):
        assert ((people.draw(number).dqi >= lowest) & (people.draw(number).dqi <= highest)).all()
