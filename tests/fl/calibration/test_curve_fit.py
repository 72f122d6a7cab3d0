"""The fit of learning curves: what a known curve made is followed again."""

from dataclasses import replace

import numpy as np
import pytest

from fl.calibration.curve_fit import RecordedRun, Recorder, fit, follow
from fl.surrogate.learning_curves import Curve, SurrogateFederation
from fl.training.jobs import TrainingJob
from support.curves import CURVE

TRUE = replace(
    CURVE,
    step_0=0.5,
    step_clients=-0.4,
    step_emd=-0.4,
    first_size=0.6,
    first_clients=-0.5,
    drift_emd=0.1,
    spread_0=-2.2,
    spread_progress=0.0,
    spread_left=0.5,
    luck=0.2,
    loss_0=0.8,
)


def record(curve: Curve, seed: int, rounds: int = 40) -> RecordedRun:
    """Play varied selections on a surrogate."""
    rng = np.random.default_rng(seed)
    federation = SurrogateFederation({"s": curve}, seed)
    trace = RecordedRun("data", "varied", seed, federation.accuracy("s"))
    recorder = Recorder(federation, {"s": trace})
    most, best = int(rng.integers(1, 9)), rng.uniform(0.4, 1.0)
    for n in range(1, rounds + 1):
        clients = int(rng.integers(0, most + 1))
        recorder.train_round(
            n,
            [
                TrainingJob("s", i, int(rng.integers(1, 5)) * 100, float(rng.choice([0.4, 0.6, 0.8, 1.0])) * best)
                for i in range(clients)
            ],
        )
    return trace


@pytest.fixture(scope="module")
def found() -> Curve:
    return fit([record(TRUE, seed) for seed in range(16)])


@pytest.mark.slow
def test_a_known_curve_is_followed_again_on_other_selections(found: Curve) -> None:
    for seed in range(100, 106):
        trace = record(TRUE, seed)
        assert np.abs(follow(found, trace) - follow(TRUE, trace))[10:].mean() < 0.015


def test_noise_and_losses_are_found_again(found: Curve) -> None:
    assert np.exp(found.spread_0 + 0.2 * found.spread_left) == pytest.approx(np.exp(-2.2 + 0.2 * 0.5), rel=0.25)
    assert 0.0 < found.skew < 0.35
    assert found.loss_0 == pytest.approx(TRUE.loss_0, abs=1e-6)
    assert found.loss_error == pytest.approx(TRUE.loss_error, abs=1e-6)
    assert found.loss_emd == pytest.approx(TRUE.loss_emd, abs=1e-6)
    assert found.start == pytest.approx(0.9)


@pytest.mark.slow
def test_fitting_is_deterministic() -> None:
    several = [record(TRUE, seed, rounds=5) for seed in range(2)]
    assert fit(several) == fit(several)


def test_following_with_a_seed_is_noisy_and_without_it_is_not() -> None:
    trace = record(TRUE, 5)
    assert (follow(TRUE, trace) == follow(TRUE, trace)).all()
    assert (follow(TRUE, trace, 1) == follow(TRUE, trace, 1)).all()
    assert (follow(TRUE, trace, 1) != follow(TRUE, trace, 2)).any()
    # Luck and noise apart, it is what was recorded.
    assert follow(replace(TRUE), trace, trace.seed) == pytest.approx(np.array(trace.accuracies))


def test_a_recorder_changes_nothing_and_keeps_rounds_without_a_job() -> None:
    plain = SurrogateFederation({"s": TRUE}, 0)
    trace = RecordedRun("data", "p", 0, 0.1)
    recorder = Recorder(SurrogateFederation({"s": TRUE}, 0), {"s": trace})
    jobs = [TrainingJob("s", 0, 100, 0.4)]
    assert recorder.train_round(1, jobs)["s"].accuracy == plain.train_round(1, jobs)["s"].accuracy
    recorder.train_round(2, [])
    assert trace.sizes == [[100], []]
    assert trace.accuracies == [plain.accuracy("s")] * 2
    assert len(trace.losses[0]) == 1
    assert recorder.kernels == plain.kernels
    recorder.restore({name: array * 0.5 for name, array in plain.state().items()})
    assert recorder.accuracy("s") == recorder.state()["s"][0] == 0.5 * plain.accuracy("s")


@pytest.mark.slow
def test_models_without_an_error_leave_a_curve_that_can_be_followed() -> None:
    """Small and easy data sets are learned to the last test image, and errors have a logarithm in the curve."""
    perfect = [record(TRUE, seed) for seed in range(4)]
    for trace in perfect:
        trace.accuracies[10:] = [1.0] * len(trace.accuracies[10:])
    curve = fit(perfect)
    assert 0 < curve.floor < 0.001
    for seed in range(5):
        assert np.isfinite(follow(curve, perfect[0], seed)).all()
    assert follow(curve, perfect[0])[-1] > 0.97
