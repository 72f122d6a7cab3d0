"""Credit by hand, and in hindsight: what a training knows of an episode, and what each decision is credited with."""

from dataclasses import replace

import numpy as np
import pytest

from fl.surrogate.learning_curves import SurrogateFederation, Trained, added
from learning.mahdrl.advantages import Baseline, Usual, advantages, progress
from learning.mahdrl.hyper_parameters import MahdrlSettings
from learning.mahdrl.learner import MahdrlLearner
from learning.training.loop import EpisodeRecord, MarketShape
from scenarios.build import market_factory
from scenarios.loader import load
from support.curves import CURVE


def test_progress_is_bounded_where_nothing_is_wrong_any_more():
    np.testing.assert_allclose(progress([0.0, 0.9, 1.0]), [0.0, np.log(10), np.log(1e4)])


def test_the_next_rounds_are_averaged_and_cut_at_the_end():
    d = np.array([1.0, 2.0, 3.0, 4.0])
    found = advantages(d, np.ones(4), horizon=2, scale=3.0)
    np.testing.assert_allclose(found, 3.0 * np.array([1.5, 2.5, 3.5, 4.0]))


def test_a_deviation_counts_as_much_as_the_error_that_is_left():
    d, error = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25, 0.25])
    found = advantages(d, error, horizon=2, scale=1.0)
    np.testing.assert_allclose(found, [(0.5 * 1 + 0.25 * 2) / 0.75, 2.5, 3.0])


def test_the_usual_error_of_a_round():
    baseline = Baseline(services=1, rounds=2)
    baseline.deviations(0, progress([0.5, 0.9]))
    np.testing.assert_allclose(baseline.errors(0), [0.5, 0.1])


def test_the_baseline_is_the_mean_of_earlier_episodes():
    baseline = Baseline(services=2, rounds=3)
    assert baseline.deviations(0, np.array([1.0, 2.0, 3.0])) is None
    np.testing.assert_allclose(baseline.deviations(0, np.array([3.0, 2.0, 3.0])), [2.0, 0.0, 0.0])
    np.testing.assert_allclose(baseline.mean, [[2.0, 2.0, 3.0], [0.0, 0.0, 0.0]])


def test_a_service_that_left_is_held_in_the_baseline():
    baseline = Baseline(services=1, rounds=3)
    baseline.deviations(0, np.array([1.0, 5.0]))
    np.testing.assert_allclose(baseline.mean[0], [1.0, 5.0, 5.0])
    assert len(baseline.deviations(0, np.array([2.0]))) == 1


RICH = [f"services.{name}.budget=100" for name in ("mnist", "fashion-mnist", "emnist")]
OVERRIDES = ["training.backend=surrogate", "rounds=6", "clients.cores=1", *RICH]


def market(*overrides, seed=1):
    return market_factory(load("paper", [*OVERRIDES, *overrides]), workers=0)(seed)


def learner_of(names, rounds):
    shape = MarketShape(names, 20, 1, rounds, dict.fromkeys(names, 100.0))
    return MahdrlLearner([names], [shape], 0, MahdrlSettings(hindsight=True, updates=0.1))


def explored(learner, market, record):
    """Yield what is observed in each round of a market in which a learner explores, and the round's report."""
    learner.begin(1)
    while not market.finished:
        observations = market.open_round()
        offers = learner.act(observations, 1.0)
        report = market.close_round(offers)
        learner.observe(observations, offers, report.feedback)
        record.add(report)
        yield observations, report


@pytest.mark.parametrize(
    "overrides",
    [
        ["services.mnist.arrival=3", "services.emnist.target_accuracy=0.3"],
        ['clients.behaviour={kind="misreport", options={size=1.0, emd=-0.5}}'],
        ['clients.behaviour={kind="misreport", options={size=-0.5}}', "services.mnist.total_budget=30"],
        ["clients.departure_rate=0.01", "clients.lasting.persistence=0.5"],
        ["clients.emd=[]", "clients.label_mix.dirichlet=0.5"],
    ],
    ids=["arrives and leaves", "lies", "runs out of money", "clients go away", "dirichlet"],
)
def test_it_knows_what_each_service_trained_on_in_each_round(overrides, monkeypatch):
    """The truth, whatever clients report."""
    playing, trained, played = market(*overrides, "rounds=12"), {}, {}
    names = tuple(spec.name for spec in playing.services)
    train_round = playing.federation.train_round

    def recorded(number, jobs):
        for name in names:
            own = [(job.size, job.weight, job.emd) for job in jobs if job.service == name]
            trained[number, name] = Trained.on(own) if own else None
        return train_round(number, jobs)

    monkeypatch.setattr(playing.federation, "train_round", recorded)
    learner, record, outcomes = learner_of(names, rounds=12), EpisodeRecord.of(playing), set()
    for observations, report in explored(learner, playing, record):
        outcomes |= {str(offer.outcome) for offer in report.offers}
        for name in observations:
            played.setdefault(name, []).append(trained[report.round, name])
    assert record.rounds == played
    assert ("dropped" in outcomes) == ("clients.departure_rate=0.01" in overrides)
    assert (len(set(map(len, played.values()))) > 1) == ("services.mnist.arrival=3" in overrides)
    learner.end(record)  # would raise if a service had more transitions than credit


def test_nothing_is_known_where_models_are_trained(make_market):
    assert EpisodeRecord.of(make_market(("alpha",))) is None


def test_the_usual_images_are_those_of_the_episodes_so_far():
    usual = Usual(services=2, rounds=2)
    small, large = Trained.on([(100, 100, 0.5)]), Trained.on([(400, 400, 1.0), (400, 400, 1.0)])
    assert usual.worth(1, CURVE, [small, None]) == pytest.approx(added(CURVE, [small, None], small))
    twice = usual.worth(1, CURVE, [large, large])
    assert twice == pytest.approx(added(CURVE, [large, large], small)), "before this episode was taken in"
    # 800 images of two clients, and 100 of one: the means are those of the logarithms.
    between = Trained.on([(1, 1, 0.75)])._replace(
        samples=np.sqrt(80_000), weights=np.sqrt(80_000), weighted=0.75 * np.sqrt(80_000), squares=80_000 / np.sqrt(2)
    )
    assert usual.worth(1, CURVE, [small]) == pytest.approx(added(CURVE, [small], between))
    assert usual.episodes.tolist() == [0, 3]


def test_an_episode_without_clients_teaches_nothing():
    usual = Usual(services=1, rounds=2)
    assert usual.worth(0, CURVE, [None, None]).tolist() == [0.0, 0.0]
    assert usual.episodes.tolist() == [0]


def test_credit_counts_in_the_usual_size_of_the_round_and_of_the_run():
    small, large = Trained.on([(100, 100, 0.5)]), Trained.on([(400, 400, 1.0), (400, 400, 1.0)])
    usual, worth = Usual(1, 3), Usual(1, 3).worth(0, CURVE, [small, large, large])
    own = np.maximum(np.abs(worth), 0.1 * np.sqrt(np.mean(worth**2)))
    expected = worth / np.sqrt(own * np.sqrt(np.mean(worth**2)))
    assert usual.credit(0, CURVE, [small, large, large]) == pytest.approx(np.clip(expected, -3, 3))
    # The service leaves after a round of the second episode: the other rounds' sizes stay as they were.
    second = Usual(1, 3)
    second.images[0], second.episodes[0] = usual.images[0], 1
    again = second.worth(0, CURVE, [large])
    usual.credit(0, CURVE, [large])
    assert usual.square[0] == pytest.approx([(worth[0] ** 2 + again[0] ** 2) / 2, worth[1] ** 2, worth[2] ** 2])


def test_luck_and_noise_are_no_credit():
    rounds = [Trained.on([(100, 100, 0.5)]), Trained.on([(300, 300, 0.9)])]
    first = [Usual(1, 2).credit(0, curve, rounds) for curve in (CURVE, CURVE.noiseless(), replace(CURVE, luck=9.0))]
    np.testing.assert_array_equal(first[0], first[1])
    np.testing.assert_array_equal(first[0], first[2])


def test_decisions_are_credited_with_what_they_added_in_its_usual_size():
    playing, learner = market(), learner_of(("mnist", "fashion-mnist", "emnist"), rounds=6)
    assert isinstance(playing.federation, SurrogateFederation)
    record = EpisodeRecord.of(playing)
    list(explored(learner, playing, record))
    learner.end(record)
    expected = Usual(1, 6).credit(0, record.curves["mnist"], record.rounds["mnist"])
    np.testing.assert_allclose(learner._replay.fields["advantage"][0, :6, 0], expected, rtol=1e-5)
    assert np.abs(expected).max() > 0.5
