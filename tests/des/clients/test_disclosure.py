"""Secrets of clients: noise in their costs, bids that rivals do not see, and a DQI that tells less."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.behaviour import BEHAVIOURS
from des.clients.data_tables import Group, PopulationSpec
from des.clients.disclosure import Disclosure, ranks
from des.clients.population import Population
from des.costs.linear import Linear
from fl.data.dqi import PUBLISHED
from support.clients import changed

PAPER = PopulationSpec(
    2, (Group(20, (100, 200, 300, 400), (0.4, 0.6, 0.8, 1.0), Linear(per_sample=0.025, per_emd=1.0)),)
)
OPTIONS = {
    "truthful": {},
    "markup": {"share": 0.25},
    "adaptive": {},
    "misreport": {"size": 0.5, "share": 0.5},
    "ring": {"size": 4},
}


def population_of(seed: int = 3, services: int = 3, **with_: object) -> Population:
    return Population(changed(PAPER, **with_), [10] * services, [PUBLISHED] * services, seed)  # type: ignore[arg-type]


def test_in_the_papers_market_each_bid_tells_data_size_and_emd() -> None:
    """All 16 pairs have different bids, and so each bid, which everybody sees, has one pair behind it."""
    world = population_of(count=400).draw(1)
    pairs = {*zip(world.data_size.ravel().tolist(), world.emd.ravel().tolist(), strict=True)}
    behind = {
        *zip(world.bid.ravel().tolist(), world.data_size.ravel().tolist(), world.emd.ravel().tolist(), strict=True)
    }
    assert len(pairs) == len(behind) == len({bid for bid, _, _ in behind}) == 16


# ---- costs


def test_a_clients_costs_have_one_factor_in_each_round_for_all_services() -> None:
    plain, noisy = population_of(), population_of(cost_noise=0.5)
    found = []
    for number in range(1, 60):
        truth, other = plain.held(number), noisy.held(number)
        assert (truth.data_size == other.data_size).all()
        assert (truth.emd == other.emd).all()
        factors = noisy._cost_noise.factors(number)
        assert (other.cost == np.rint(truth.cost * factors)).all()
        assert (noisy.draw(number).bid == other.cost).all(), "truthful clients bid their costs"
        found.append(factors)
    drawn = np.array(found)
    assert ((drawn >= 0.5) & (drawn < 1.5)).all()
    np.testing.assert_allclose([drawn.mean(), drawn.std()], [1.0, 1 / np.sqrt(12)], atol=0.02)
    assert len(np.unique(drawn)) == drawn.size, "each client and round has a number of its own"


def test_costs_do_not_depend_on_who_else_is_there() -> None:
    few, many = (population_of(count=count, services=m, cost_noise=0.5) for count, m in ((5, 1), (50, 4)))
    assert (few.held(7).cost == many.held(7).cost[:1, :5]).all()


def test_without_noise_nothing_is_drawn() -> None:
    assert (population_of()._cost_noise.factors(1) == 1.0).all()
    assert (population_of().held(1).cost == population_of(cost_noise=0.0).held(1).cost).all()


def test_a_misreport_costs_what_such_data_would_cost_the_same_client_in_this_round() -> None:
    lies = BEHAVIOURS.create("misreport", size=1.0)
    world, plain = (population_of(behaviour=lies, cost_noise=noise).draw(1) for noise in (0.5, 0.0))
    factors = population_of(cost_noise=0.5)._cost_noise.factors(1)
    assert (world.bid == np.rint(plain.bid * factors)).all()
    assert (world.held.cost == np.rint(plain.held.cost * factors)).all()
    assert (world.bid > world.held.cost).all()


@given(st.sampled_from(sorted(OPTIONS)), st.floats(0, 1), st.integers(0, 2**40), st.sampled_from([0.0, 0.9, 1.0]))
def test_bids_stay_within_their_range_and_are_never_negative(
    kind: str, noise: float, seed: int, per_emd: float
) -> None:
    """At the limit, data can cost nothing, and noise can make everything cost nothing."""
    spec = {
        "behaviour": BEHAVIOURS.create(kind, **OPTIONS[kind]),
        "cost_noise": noise,
        "cost": Linear(per_sample=0.025, per_emd=per_emd),
    }
    population = population_of(seed, data_sizes=(40, 100), **spec)
    (low, high), kept = population.bid_range, []
    for number in (1, 2, 3):
        world = population.draw(number)
        kept.append(world.bid)
        assert (world.held.cost >= 0).all()
    bids = np.concatenate(kept, axis=1)
    assert (bids >= 0).all()
    assert (bids >= low[:, None]).all()
    assert (bids <= high[:, None]).all()


@pytest.mark.parametrize("noise", [-0.1, 1.1, float("nan")])
def test_noise_out_of_range_is_refused(noise: float) -> None:
    with pytest.raises(ValueError, match="the noise of costs must be from 0 to 1, not"):
        population_of(cost_noise=noise)
    with pytest.raises(ValueError, match="the noise of the DQI must be from 0 to 1, not"):
        population_of(disclosure=Disclosure(dqi_noise=noise))


# ---- quality


def test_by_default_services_see_the_dqi_itself() -> None:
    population = population_of()
    world = population.draw(1)
    assert (world.seen == world.dqi).all()


def test_noise_moves_the_dqi_that_services_see_and_not_the_dqi() -> None:
    plain, noisy = population_of(count=2000), population_of(count=2000, disclosure=Disclosure(dqi_noise=0.2))
    world = noisy.draw(1)
    assert (world.dqi == plain.draw(1).dqi).all()
    low, high = plain.seen_range
    off = (world.seen - world.dqi) / (high - low)[:, None]
    assert (np.abs(off) <= 0.2 + 1e-12).all()
    np.testing.assert_allclose([off.mean(), off.std()], [0, 0.2 / np.sqrt(3)], atol=0.004)
    assert len(np.unique(off)) > 0.99 * off.size, "a draw for each service and client"
    assert (off != (noisy.draw(2).seen - noisy.draw(2).dqi) / (high - low)[:, None]).all(), "and for each round"


def test_a_rank_says_nothing_of_the_others_distance() -> None:
    assert ranks(np.array([[0.1, 0.9, 0.2, 0.11]])).tolist() == [[0, 1, 2 / 3, 1 / 3]]
    assert ranks(np.array([[7.0, 7.0, 9.0]])).tolist() == [[0.25, 0.25, 1.0]]
    assert ranks(np.array([[7.0], [9.0]])).tolist() == [[0.5], [0.5]], "nobody to be compared with"


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=30))
def test_ranks_keep_the_order_and_equality_of_values(values: list[float]) -> None:
    row = np.array(values)
    [found] = ranks(row[None])
    assert ((found >= 0) & (found <= 1)).all()
    assert found.mean() == pytest.approx(0.5)
    assert (np.sign(found[:, None] - found) == np.sign(row[:, None] - row)).all()


@given(st.booleans(), st.floats(0, 1), st.integers(0, 2**40))
def test_what_services_see_lies_in_its_range(rank: bool, noise: float, seed: int) -> None:
    population = population_of(seed, disclosure=Disclosure(dqi_rank=rank, dqi_noise=noise))
    low, high = population.seen_range
    for number in (1, 2, 3):
        seen = population.draw(number).seen
        assert (seen >= low[:, None]).all()
        assert (seen <= high[:, None]).all()


# ---- bids


def test_a_service_sees_the_bids_to_itself_alone(make_market) -> None:
    names = ["alpha", "beta", "gamma"]
    hidden = make_market(names, disclosure=Disclosure(public_bids=False), cost_noise=0.3)
    public = make_market(names, cost_noise=0.3)
    for (name, seen), whole in zip(hidden.open_round().items(), public.open_round().values(), strict=True):
        assert not seen.bids_public
        assert whole.bids_public
        assert (seen.own_bids == whole.own_bids).all()
        assert (seen.own_bids > 0).all()
        others = np.delete(seen.bids, names.index(name), axis=0)
        assert (others == 0).all()
        assert not seen.bids.flags.writeable


def test_what_is_hidden_changes_nothing_for_whoever_does_not_look(make_market, pay_the_bid) -> None:
    """A policy that goes by its own bids plays the same rounds, to the last event."""

    def reports(disclosure: Disclosure) -> list[object]:
        market = make_market(["alpha", "beta"], cost_noise=0.4, disclosure=disclosure, rounds=4)
        found = []
        while not market.finished:
            report = market.close_round({name: pay_the_bid(seen) for name, seen in market.open_round().items()})
            found.append((report.services, report.offers, report.events))
        return found

    assert reports(Disclosure()) == reports(Disclosure(public_bids=False, dqi_rank=True, dqi_noise=0.5))
