"""All policies face the same world: data, DQI, bids, speeds and ties depend on the seed, never on what anyone did."""

from dataclasses import replace

import numpy as np
import pytest

from des.clients.data_tables import Group, PopulationSpec
from des.clients.population import Population
from des.costs.linear import Linear
from des.observation import Observation, Offer
from fl.arithmetic.streams import stream
from fl.data.dqi import PUBLISHED
from flmarket.core.errors import InputError
from support.clients import changed
from support.emd import emd


def worlds(market, act, rounds: int) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Return what is seen in each round: all bids, and each service's DQI."""
    seen = []
    for _ in range(rounds):
        observations = market.open_round()
        first = next(iter(observations.values()))
        seen.append((first.bids.copy(), {name: o.dqi.copy() for name, o in observations.items()}))
        market.close_round({name: act(o) for name, o in observations.items()})
    return seen


def same(one, other) -> bool:
    return repr(one) == repr(other)


def spendthrift(observation: Observation) -> Offer:
    """All the money to the last client."""
    return Offer(np.array([observation.clients - 1]), np.array([observation.budget]))


def test_the_world_is_the_same_whatever_the_services_do(make_market, paper_clients, pay_the_bid) -> None:
    def market():
        return make_market(["alpha", "beta"], paper_clients, rounds=4, seed=5)

    idle = worlds(market(), lambda _: Offer.none(), 4)
    assert same(worlds(market(), pay_the_bid, 4), idle)
    assert same(worlds(market(), spendthrift, 4), idle)
    assert not same(worlds(make_market(["alpha", "beta"], paper_clients, seed=6), spendthrift, 4), idle)


def test_the_world_stays_when_a_service_leaves(make_market, plain_service, paper_clients, pay_the_bid) -> None:
    early = replace(plain_service, name="alpha", target_accuracy=0.2)  # leaves after its first round
    both = worlds(make_market([early, "beta"], paper_clients), pay_the_bid, 3)
    alone = worlds(make_market(["alpha", "beta"], paper_clients), pay_the_bid, 3)
    assert [list(dqi) for _, dqi in both] == [["alpha", "beta"], ["beta"], ["beta"]]
    for (bids, dqi), (bids_alone, dqi_alone) in zip(both, alone, strict=True):
        assert same(bids[1], bids_alone[1])
        assert same(dqi["beta"], dqi_alone["beta"])


def test_a_service_added_at_the_end_changes_nothing_for_the_others(make_market, paper_clients) -> None:
    two = worlds(make_market(["alpha", "beta"], paper_clients), lambda _: Offer.none(), 3)
    three = worlds(make_market(["alpha", "beta", "gamma"], paper_clients), lambda _: Offer.none(), 3)
    for (bids, dqi), (more_bids, more_dqi) in zip(two, three, strict=True):
        assert same(bids, more_bids[:2])
        assert all(same(dqi[name], more_dqi[name]) for name in dqi)


def winners(market, wanting: list[str], rounds: int) -> list[str]:
    """Who gets client 0's only core in each round when the services ``wanting`` it all pay the bid."""
    won = []
    for _ in range(rounds):
        seen = market.open_round()
        bid = {name: seen[name].own_bids[0] for name in wanting}
        offers = {
            name: Offer(np.array([0]), np.array([bid[name]])) if name in wanting else Offer.none() for name in seen
        }
        report = market.close_round(offers)
        won += [offer.service for offer in report.offers if offer.core is not None]
    return won


def test_ties_are_drawn_anew_each_round_and_alike_in_each_run(make_market, stub_federation) -> None:
    def run(services: list[str], seed: int = 0) -> list[str]:
        market = make_market(services, rounds=40, seed=seed, federation=stub_federation(gain=0.0))
        return winners(market, ["alpha", "beta"], 40)

    won = run(["alpha", "beta"])
    assert 10 <= won.count("alpha") <= 30  # fair: 20 expected, standard deviation 3.2
    assert run(["alpha", "beta"]) == won
    assert run(["alpha", "beta"], seed=1) != won
    assert run(["alpha", "beta", "gamma"]) == won  # a bystander added at the end changes no tie


def test_clients_data_come_from_the_scenario_s_sets(paper_clients) -> None:
    world = Population(paper_clients, [10, 10], [PUBLISHED, PUBLISHED], seed=0)
    rounds = [world.draw(n) for n in range(1, 51)]
    sizes = np.array([r.data_size for r in rounds])  # [50 rounds, 2 services, 20 clients]: 2000 draws of 4
    emds = np.array([r.emd for r in rounds])
    for values, options in ((sizes, (100, 200, 300, 400)), (emds, (0.4, 0.6, 0.8, 1.0))):
        found, counts = np.unique(np.round(values, 9), return_counts=True)
        assert found.tolist() == list(options)
        assert (abs(counts - 500) < 100).all()  # uniform: standard deviation 19
    pairs = len({(d, round(v, 9)) for d, v in zip(sizes.ravel(), emds.ravel(), strict=True)})
    assert pairs == 16  # sizes and EMDs are drawn independently


def test_neither_more_clients_nor_the_rounds_asked_for_before_change_a_world(paper_clients) -> None:
    few = Population(paper_clients, [10, 10], [PUBLISHED, PUBLISHED], seed=4)
    many = Population(changed(paper_clients, count=50), [10, 10], [PUBLISHED, PUBLISHED], seed=4)
    for round_ in (1, 300, 2, 40, 41, 1):
        assert few.draw(round_).bid.tolist() == many.draw(round_).bid[:, :20].tolist()


def test_emds_are_those_the_labels_allow(paper_clients) -> None:
    # 3 images over 2 labels: (2, 1) or (3, 0), an EMD of 1/3 or 1.
    # Over 10 labels the least is an image each for three of them: 3 (1/3 - 1/10) + 7/10 = 1.4.
    spec = changed(paper_clients, data_sizes=(3,), emds=(0.4,), cost=Linear(per_sample=0.025))
    world = Population(spec, [2, 10], [PUBLISHED, PUBLISHED], seed=0).draw(1)
    assert world.emd[0] == pytest.approx(np.full(20, emd([2, 1])))
    assert world.emd[1] == pytest.approx(np.full(20, 1.4))


def test_speeds_last_for_the_whole_run(paper_clients) -> None:
    spec = changed(paper_clients, speeds=(0.5, 1.0, 2.0))
    population = Population(spec, [10], [PUBLISHED], seed=3)
    assert set(population.speed.tolist()) == {0.5, 1.0, 2.0}
    before = population.speed.copy()
    population.draw(1)
    assert same(population.speed, before)
    assert same(population.speed, Population(spec, [10, 10], [PUBLISHED] * 2, seed=3).speed)


def test_what_a_policy_sees_cannot_be_changed(make_market, plain_service) -> None:
    market = make_market([replace(plain_service, name="alpha", privileged=True)])
    seen = market.open_round()["alpha"]
    for array in (seen.dqi, seen.bids, seen.own_bids, seen.privileged.data_size, seen.privileged.emd):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_only_a_privileged_policy_sees_sizes_and_emds(make_market, plain_service) -> None:
    market = make_market(["alpha", replace(plain_service, name="beta", privileged=True)])
    seen = market.open_round()
    assert seen["alpha"].privileged is None
    assert seen["beta"].privileged.data_size.tolist() == [100] * 3
    assert seen["beta"].privileged.emd.tolist() == pytest.approx([0.4] * 3)


def test_an_observation_is_the_paper_s_state(make_market, plain_service) -> None:
    market = make_market(["alpha", replace(plain_service, name="beta", budget=7_500_000)], cores=2, rounds=9, seed=4)
    seen = market.open_round()["beta"]
    assert (seen.round, seen.rounds, seen.service, seen.services) == (1, 9, "beta", ("alpha", "beta"))
    assert (seen.budget, seen.cores, seen.clients) == (7.5, 2, 3)
    assert (seen.accuracy, seen.target_accuracy) == (0.1, 0.97)
    assert seen.own_bids.tolist() == [2.1] * 3
    # Its random numbers are its own, the same every time they are asked for, and other ones in the next round.
    assert seen.rng().random() == seen.rng().random() == stream(4, "policy", "beta", 1).random()


def test_the_ranges_of_bids_and_dqi_are_those_of_all_rounds_of_each_service() -> None:
    """Two services of other numbers of labels, with more pairs of data size and EMD than services."""
    spec = PopulationSpec(1, (Group(40, (20, 50, 80), (0.0, 0.7), Linear(per_sample=0.05, per_emd=0.3)),))
    population = Population(spec, [10, 3], [PUBLISHED, PUBLISHED], seed=3)
    rounds = [population.draw(number) for number in range(1, 40)]
    for drawn, (lowest, highest) in (
        ([it.bid for it in rounds], population.bid_range),
        ([it.dqi for it in rounds], population.seen_range),
    ):
        every = np.concatenate(drawn, axis=1)
        np.testing.assert_array_equal(every.min(axis=1), lowest)
        np.testing.assert_array_equal(every.max(axis=1), highest)
    assert population.bid_range[0].shape == (2,)


def test_dqi_parameters_that_give_no_finite_numbers_are_refused() -> None:
    spec = PopulationSpec(1, (Group(4, (100,), (0.2,), Linear(per_sample=0.05, per_emd=0.3)),))
    with pytest.raises(InputError, match=r"data quality indicator \(eq. 6\) give values that are not finite"):
        Population(spec, [10], [replace(PUBLISHED, eta2=-1e6)], seed=3)
