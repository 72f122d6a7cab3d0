"""Policies played against the same worlds."""

from dataclasses import replace

import numpy as np
import pytest

from des.market import MarketError
from flmarket.core.plugin_options import OptionsError
from learning.evaluation import evaluate, everywhere, lineup
from learning.seats import context, seat
from support.evaluation import compare


@pytest.fixture
def factory(make_market):
    return lambda seed: make_market(seed=seed)


def test_results_are_rectangular(factory):
    results = evaluate(factory, {"low": everywhere("lcfa"), "any": everywhere("random")}, [3, 5])
    assert (results.entrants, results.seeds, results.services) == (("low", "any"), (3, 5), ("alpha", "beta", "gamma"))
    for array in (results.accuracy, results.reward, results.spent, results.wanted, results.served):
        assert array.shape == (2, 2, 6, 3)
    assert results.targets.tolist() == [0.97] * 3
    assert (results.spent <= 20).all()
    assert (results.served <= results.wanted).all()
    np.testing.assert_allclose(results.reward, 100 ** np.minimum(results.accuracy, 0.97))


def test_it_plays_what_the_walk_plays(factory, make_market):
    from learning.play_round import play

    reports = []
    market = make_market(seed=3)
    play(market, seat(market, dict.fromkeys(["alpha", "beta", "gamma"], "hqfa")), [reports.append])
    results = evaluate(factory, {"hqfa": everywhere("hqfa")}, [3])
    by_hand = [[row.accuracy for row in report.services] for report in reports]
    np.testing.assert_array_equal(results.accuracy[0, 0], by_hand)


def test_entrants_share_their_worlds(factory):
    """The same policy under two names differs in nothing, also after another entrant has played."""
    entrants = {"one": everywhere("random"), "between": everywhere("lcfa"), "two": everywhere("random")}
    results = evaluate(factory, entrants, range(3))
    np.testing.assert_array_equal(results.accuracy[0], results.accuracy[2])
    zero = compare(results, "one", "two")
    assert (zero.estimate, zero.low, zero.high) == (0, 0, 0)


def test_services_that_left_keep_accuracy_and_reward_and_spend_nothing(make_market):
    results = evaluate(
        lambda seed: make_market(seed=seed, speed=2.0, rounds=8, targets={"alpha": 0.1}), {"x": everywhere("hqfa")}, [0]
    )
    rounds, reached = results.rounds_to_target()
    assert reached.all()
    assert rounds.max() < 8  # all have left before the last round
    for m in range(3):
        left = rounds[0, 0, m]  # rounds from 1: this is the index of the first round after
        assert (results.accuracy[0, 0, left:, m] == results.accuracy[0, 0, left - 1, m]).all()
        assert (results.reward[0, 0, left:, m] == results.reward[0, 0, left - 1, m]).all()
        assert not results.spent[0, 0, left:, m].any()
        assert not results.wanted[0, 0, left:, m].any()


def test_auc_is_the_mean_over_rounds(factory):
    results = evaluate(factory, {"x": everywhere("random")}, [0, 1])
    np.testing.assert_allclose(results.auc(), results.accuracy.mean(axis=2))
    np.testing.assert_array_equal(results.reported, results.accuracy)  # there is no other


def test_auc_is_of_the_accuracy_on_test_images_and_targets_go_by_the_other(make_market):
    def factory(seed):
        market = make_market(seed=seed, speed=2.0, rounds=8, targets={"alpha": 0.1})
        train = market._federation.train_round
        market._federation.train_round = lambda *args: {
            name: replace(outcome, test_accuracy=outcome.accuracy / 2) for name, outcome in train(*args).items()
        }
        market._federation.test_accuracy = lambda service: market._federation.accuracy(service) / 2
        return market

    results = evaluate(factory, {"x": everywhere("hqfa")}, [0])
    np.testing.assert_allclose(results.reported[..., 1:, :], results.accuracy[..., 1:, :] / 2)
    np.testing.assert_allclose(results.auc(), results.reported.mean(axis=2))
    assert results.rounds_to_target().reached.all()
    assert (results.reported[:, :, -1] < results.targets).any()


def test_an_evaluation_counts_rounds_from_the_arrival(make_market) -> None:
    specs = [
        replace(spec, arrival=first)
        for spec, first in zip(make_market(["alpha", "beta"]).services, (1, 3), strict=True)
    ]
    results = evaluate(lambda seed: make_market(specs, seed=seed), {"hqfa": everywhere("hqfa")}, [0])
    assert (results.rounds_to_target().rounds == [[[6, 4]]]).all()  # of 6 rounds, of which the last 4
    assert results.accuracy[0, 0, 1, 1] == results.accuracy[0, 0, 0, 1]
    assert (results.reward[0, 0, :2, 1] == 0).all()
    accuracy = results.accuracy[0, 0]
    np.testing.assert_allclose(results.auc(), [[[accuracy[:, 0].mean(), accuracy[2:, 1].mean()]]])


def test_services_that_see_the_quality_of_data_learn_more_than_those_that_see_bids(factory):
    results = evaluate(factory, {"d": everywhere("d-first"), "l": everywhere("lcfa")}, range(4))
    assert compare(results, "d", "l").low > 0


def test_a_lineup_seats_each_service(make_market):
    market = make_market()
    policies = lineup({"alpha": "lcfa", "beta": "d-first", "gamma": "ucb"}, {"gamma": {"exploration": 0.3}})(market)
    assert [spec.policy for spec in market.services] == ["lcfa", "d-first", "ucb"]
    assert [spec.privileged for spec in market.services] == [False, True, False]
    assert policies["gamma"]._exploration == 0.3


def test_an_entrant_must_seat_every_service(factory):
    with pytest.raises(ValueError, match="entrant 'x' has no policy for beta, gamma"):
        evaluate(factory, {"x": lineup({"alpha": "lcfa"})}, [0])


def test_seats_that_are_not_there_and_open_rounds_are_refused(make_market):
    market = make_market()
    with pytest.raises(MarketError, match=r"unknown service 'delta'; did you mean 'beta'\?"):
        seat(market, {"delta": "lcfa"})
    market.open_round()
    with pytest.raises(MarketError, match="round 1 is still open"):
        seat(market, {"alpha": "lcfa"})


def test_nothing_to_evaluate_is_refused(factory):
    with pytest.raises(ValueError, match="at least one"):
        evaluate(factory, {}, [0])
    with pytest.raises(ValueError, match="at least one"):
        evaluate(factory, {"x": everywhere("lcfa")}, [])


def test_markets_are_closed_even_when_a_run_fails(make_market):
    made = []

    def factory(seed):
        made.append(make_market(seed=seed))
        return made[-1]

    with pytest.raises(OptionsError):
        evaluate(factory, {"x": everywhere("ucb", {"discount": 0})}, [0])
    assert [market._federation.closed for market in made] == [True]


def test_progress_is_told_after_each_run(factory):
    told = []
    evaluate(factory, {"x": everywhere("lcfa")}, [4, 2], progress=lambda name, seed: told.append((name, seed)))
    assert told == [("x", 4), ("x", 2)]


def test_a_policy_knows_its_market(make_market):
    known = context(make_market(["alpha", "beta"], cores=3, count=7, budget=12_500_000), "beta")
    assert (known.service, known.services, known.clients, known.cores, known.rounds) == ("beta", 2, 7, 3, 6)
    assert (known.budget, known.target_accuracy, known.reward_base) == (12.5, 0.97, 100.0)
