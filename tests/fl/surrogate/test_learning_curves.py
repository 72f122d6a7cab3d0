"""The surrogate: what its learning curve must do, and that it behaves as a federation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.arithmetic.draws import draw_key, normals
from fl.surrogate import fits
from fl.surrogate.fitted import read, surrogate_fit
from fl.surrogate.learning_curves import Curve, Stale, SurrogateFederation, Trained, added
from fl.training.jobs import Delivery, TrainingJob
from fl.training.trigger import TRIGGERS
from support.curves import CURVE

QUIET = CURVE.noiseless()

jobs = st.lists(
    st.builds(
        TrainingJob,
        service=st.just("s"),
        client=st.integers(0, 9_999),
        size=st.integers(1, 1_000_000),
        emd=st.floats(0.0, 2.0),
        reported=st.none() | st.integers(1, 1_000_000),
        mix=st.none(),
        counts=st.none(),
    ),
    min_size=1,
    max_size=30,
)


def jobs_of(service: str, sizes: list[int], emd: float) -> list[TrainingJob]:
    return [TrainingJob(service, client, size, emd) for client, size in enumerate(sizes)]


def path(curve: Curve, sizes: list[int], emd: float, rounds: int, seed: int = 0) -> list[float]:
    federation = SurrogateFederation({"s": curve}, seed)
    return [federation.train_round(n, jobs_of("s", sizes, emd))["s"].accuracy for n in range(1, rounds + 1)]


def test_more_data_and_evener_labels_learn_faster() -> None:
    base = path(QUIET, [200] * 4, 0.6, 30)
    assert path(QUIET, [400] * 4, 0.6, 30)[-1] > base[-1]
    assert path(QUIET, [200] * 4, 0.2, 30)[-1] > base[-1]


@given(st.lists(jobs, min_size=1, max_size=8), st.integers(0, 2**32))
def test_whatever_is_trained_accuracies_and_losses_are_possible(rounds: list[list[TrainingJob]], seed: int) -> None:
    federation = SurrogateFederation({"s": CURVE}, seed)
    for n, own in enumerate(rounds, start=1):
        outcome = federation.train_round(n, own)["s"]
        assert 0.0 <= outcome.accuracy <= 1.0
        assert outcome.accuracy == federation.accuracy("s")
        assert outcome.losses.shape == (len(own),)
        assert (outcome.losses > 0).all()
        assert np.isfinite(outcome.losses).all()


def test_without_noise_rounds_follow_from_their_data_alone() -> None:
    assert path(QUIET, [100, 300], 0.8, 20, seed=3) == path(QUIET, [100, 300], 0.8, 20, seed=4)
    assert path(QUIET, [100, 300], 0.8, 20) != path(QUIET, [100, 300], 0.7, 20)
    noisy = [path(CURVE, [100, 300], 0.8, 20, seed=seed) for seed in range(400)]
    logs = np.log(1.0 - np.array(noisy) - CURVE.floor)  # noise is on the logarithm of the error, without a mean
    quiet = np.log(1.0 - np.array(path(QUIET, [100, 300], 0.8, 20)) - CURVE.floor)
    np.testing.assert_allclose(logs[:, -5:].mean(axis=0), quiet[-5:], atol=5 * logs.std() / np.sqrt(400))


def test_services_do_not_disturb_each_other_and_one_without_a_job_keeps_its_model() -> None:
    alone = SurrogateFederation({"s": CURVE}, 1)
    both = SurrogateFederation({"t": CURVE, "s": CURVE}, 1)
    for n in range(1, 6):
        own, other = jobs_of("s", [100, 200], 0.4), jobs_of("t", [400], 0.8)
        single = alone.train_round(n, own)
        mixed = both.train_round(n, [job for pair in zip(own, other * 2, strict=True) for job in pair])
        assert mixed["s"].accuracy == single["s"].accuracy
        assert (mixed["s"].losses == single["s"].losses).all()
    held = both.accuracy("t")
    assert set(both.train_round(6, jobs_of("s", [100], 0.4))) == {"s"}
    assert both.accuracy("t") == held


def test_rounds_follow_the_formulas_of_the_module() -> None:
    """The module's formulas written down once more, with vectors, for lopsided rounds of a lucky and an unlucky run."""
    c = CURVE
    rounds = [[(100, 0.4), (300, 1.0)], [(200, 0.6)], [(50, 1.2), (80, 0.4), (400, 0.8)], [(800, 0.2), (900, 0.5)]]
    for seed in range(4):
        federation = SurrogateFederation({"s": c}, seed)
        luck, u, error = float(normals(draw_key(seed, "surrogate", "s"), 0)), 0.0, c.start
        for n, round_ in enumerate(rounds, start=1):
            outcome = federation.train_round(
                n, [TrainingJob("s", client, size, emd) for client, (size, emd) in enumerate(round_)]
            )["s"]
            sizes, emds = np.array(round_).T
            w = sizes / sizes.sum()
            v, left, z = w @ emds, (w @ emds) * np.linalg.norm(w), float(normals(draw_key(seed, "surrogate", "s"), n))
            a, b, early = np.log(sizes.sum() / 400), np.log(1 / np.linalg.norm(w) ** 2), 1 / (1 + u)
            losses = np.exp(c.loss_0 + c.loss_error * np.log(error) + c.loss_emd * emds)
            u += np.exp(
                np.dot([c.step_0, c.step_size, c.step_clients, c.step_emd], [1, a, b, v])
                + early * (np.dot([c.first_size, c.first_clients, c.first_emd], [a, b, v]) + c.luck * luck)
            )
            spread = np.exp(np.dot([c.spread_0, c.spread_progress, c.spread_left], [1, np.log1p(u), left]))
            noise = spread * (z + c.skew * (z**2 - 1)) / np.sqrt(1 + 2 * c.skew**2)
            drift = (1 - 1 / (1 + u)) * np.dot([c.drift_emd, c.drift_left], [v, left])
            fall = -c.decay / c.shape * np.log(1 + u**c.shape) + drift + noise
            error = c.floor + (c.start - c.floor) * np.exp(min(fall, 0))
            assert outcome.accuracy == pytest.approx(1 - error, rel=1e-12)
            np.testing.assert_allclose(outcome.losses, losses, rtol=1e-12)


def test_no_noise_makes_a_model_worse_than_an_untrained_one() -> None:
    assert min(path(replace(QUIET, spread_0=3.0), [1], 2.0, 30)) == pytest.approx(0.1)


def test_noise_has_the_spread_and_the_skew_that_it_is_given() -> None:
    curve = replace(QUIET, spread_0=-2.0, skew=0.2)
    quiet, noisy = [], []
    for seed in range(400):
        quiet.append(1.0 - path(QUIET, [200] * 3, 0.4, 12, seed)[-1])
        noisy.append(1.0 - path(curve, [200] * 3, 0.4, 12, seed)[-1])
    z = np.log((np.array(noisy) - curve.floor) / (np.array(quiet) - curve.floor))
    assert z.mean() == pytest.approx(0.0, abs=0.03)
    assert z.std() == pytest.approx(np.exp(-2.0), rel=0.12)
    assert ((z / z.std()) ** 3).mean() > 0.5


def test_a_curve_survives_its_parameters() -> None:
    assert Curve.of(CURVE.parameters()) == CURVE


def test_shipped_curves_load_and_learn_more_from_more_data() -> None:
    shipped = read(Path(fits.__file__).with_name("surrogate.json"))
    assert {"mnist", "fashion-mnist", "emnist-digits", "digits", "strokes", "scribbles"} <= {f.dataset for f in shipped}
    for fit in shipped:
        assert surrogate_fit(fit.dataset, fit.regime).parameters
        curve = Curve.of(fit.parameters)
        quiet = replace(curve, spread_0=-700.0, spread_progress=0.0, spread_left=0.0, luck=0.0)
        much, little = path(quiet, [400] * 2, 0.4, 60), path(quiet, [100] * 2, 0.4, 60)
        assert much[-1] > little[-1]
        assert much[-1] > 0.5


# What a round added to a run, against runs that are played again with other images in it


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


def test_what_a_round_added_is_what_the_run_would_have_lost_with_other_images_in_that_round() -> None:
    instead = images(USUAL)
    assert instead is not None
    found = added(CURVE, [images(clients) for clients in ROUNDS], instead)
    as_played = np.sum(accuracies(CURVE.noiseless(), ROUNDS))
    replayed = [np.sum(accuracies(CURVE.noiseless(), [*ROUNDS[:n], USUAL, *ROUNDS[n + 1 :]])) for n in range(5)]
    np.testing.assert_allclose(found, as_played - np.array(replayed), atol=1e-12)
    assert found[2] < 0 < found[3], "a round without clients loses, one with much good data gains"


def made_of(ages: list[int], stale: Stale, curve: Curve = QUIET, models: int = 12, **options: float) -> float:
    """Return the accuracy after models that are each made of two updates of these ages."""
    federation = SurrogateFederation({"s": curve}, 3, {"s": stale})
    for model in range(1, models + 1):
        federation.begin(model, jobs_of("s", [200, 300], 0.5))
        deliveries = [Delivery(model, client, age) for client, age in enumerate(ages)]
        federation.aggregate("s", model, deliveries, TRIGGERS.create("fedbuff", **options))
    return federation.accuracy("s")


def test_models_of_fresh_updates_are_those_of_rounds_to_the_bit() -> None:
    found = made_of([0, 0], Stale(0.3, 0.7, 0.1), CURVE)
    assert found == path(CURVE, [200, 300], 0.5, 12, seed=3)[-1]


def test_what_is_learned_of_stale_updates_follows_the_formulas() -> None:
    """With an age of 1, updates of staleness 1 make half the progress: two such models are worth a fresh one."""
    assert made_of([1, 1], Stale(0.0, 1.0, 0.0), replace(QUIET, first_size=0, first_clients=0, first_emd=0)) == (
        pytest.approx(path(replace(QUIET, first_size=0, first_clients=0, first_emd=0), [200, 300], 0.5, 6)[-1])
    )
    # with a share of 1/2, fedbuff's (1 + 3)^-1/2 counts as much less as an age of 1/4
    assert made_of([3, 3], Stale(0.5, 0.0, 0.0)) == pytest.approx(made_of([3, 3], Stale(0.0, 0.25, 0.0)))
    # x is 3 where updates count whole, 3/2 where they count half, and the logarithm of the error rises by x^2 drift
    whole, half = (made_of([3, 3], Stale(0.0, 0.0, 0.02), exponent=it, models=90) for it in (0.0, 0.5))
    plain = made_of([3, 3], Stale(0.0, 0.0, 0.0), models=90)
    errors = np.log([1 - it - QUIET.floor for it in (plain, half, whole)])
    assert errors - errors[0] == pytest.approx([0.0, 0.02 * 2.25, 0.02 * 9], rel=0.02)


def test_staleness_was_measured_wherever_a_curve_comes_with_the_package() -> None:
    curves, stale = (read(Path(fits.__file__).with_name(f"{kind}.json")) for kind in ("surrogate", "staleness"))
    assert [(it.dataset, it.regime) for it in stale] == [(it.dataset, it.regime) for it in curves]
    # an update whose client began with a model of before the last one is worth less, by much, but not nothing
    assert all(0.5 < Stale(**it.parameters).age < 1.5 for it in stale)


def test_the_usual_images_add_nothing() -> None:
    instead = images(USUAL)
    assert instead is not None
    np.testing.assert_array_equal(added(CURVE, [instead] * 4, instead), np.zeros(4))


@pytest.mark.parametrize("rounds", [0, 1])
def test_rounds_of_short_runs_have_a_worth(rounds: int) -> None:
    assert added(CURVE, [None] * rounds, Trained(10, 10, 8.0, 100)).shape == (rounds,)
