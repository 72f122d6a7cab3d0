"""The calibration of eq. (6): known parameters are found again, and experiments depend on nothing but themselves."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.calibration.dqi_fit import Experiment, Point, fit, grid, measure, quality, rounded
from fl.data.dqi import DQIParameters, alpha, dqi
from fl.data.emd import realised_emd
from fl.data.registry import load
from fl.surrogate import fits
from fl.surrogate.fitted import dqi_fit, read
from fl.training.regime import Regime
from support.tiers import examples

SIZES, EMDS = [50, 100, 200, 400, 800], [0.0, 0.4, 0.8, 1.2]


def points(parameters: DQIParameters, noise: float = 0.0, repetitions: int = 1) -> list[Point]:
    rng = np.random.default_rng(0)
    return [
        Point(size, emd, float(dqi(size, emd, parameters)) + noise * float(rng.standard_normal()))
        for size in SIZES
        for emd in EMDS
        for _ in range(repetitions)
    ]


@examples(8)
@given(
    top=st.floats(0.6, 0.98),
    eta1=st.floats(0.2, 0.8),
    eta2=st.floats(0.5, 4.0),
    eta3=st.floats(0.001, 0.01),
    eta5=st.floats(0.0, 0.5),
    eta6=st.floats(1.0, 2.5),
)
def test_a_surface_of_known_parameters_is_found_again(
    top: float, eta1: float, eta2: float, eta3: float, eta5: float, eta6: float
) -> None:
    true = DQIParameters(eta1, eta2, eta3, top * np.exp((eta5 / eta6) ** 2), eta5, eta6)
    found = fit(points(true))
    # eta2 and eta3 can stand in for each other: the surface is what must agree.
    sizes, emds = np.meshgrid([60, 150, 300, 700], [0.1, 0.5, 0.9, 1.1])
    assert np.abs(dqi(sizes, emds, found) - dqi(sizes, emds, true)).max() < 0.01


def test_a_negative_eta1_would_be_found() -> None:
    true = DQIParameters(-0.1922, 0.2613, 0.00063, 0.7084, 0.3189, 1.233)
    assert fit(points(true)).eta1 < 0


@given(st.lists(st.tuples(st.sampled_from(SIZES), st.sampled_from(EMDS), st.floats(0, 1)), min_size=8, max_size=40))
@examples(6)
def test_alpha_stays_below_one_and_falls_whatever_is_measured(rows: list[tuple[int, float, float]]) -> None:
    found = rounded(fit([Point(*row) for row in rows]))
    curve = alpha(np.linspace(0.0, 2.0, 50), found)
    assert (curve < 1.0).all()
    assert (np.diff(curve) <= 1e-12).all()


def test_quality_tells_the_scatter_of_repetitions_from_the_error_of_the_curve() -> None:
    true = DQIParameters(0.5, 1.0, 0.005, 0.95, 0.1, 1.5)
    found = quality(points(true, noise=0.05, repetitions=40), true)
    assert found["points"] == len(SIZES) * len(EMDS) * 40
    assert found["scatter"] == pytest.approx(0.05, rel=0.1)
    assert found["rmse"] == pytest.approx(0.05, rel=0.1)
    assert found["r2"] < found["r2_means"]
    assert found["r2_means"] > 0.99
    exact = quality(points(true), true)
    assert exact["r2"] == pytest.approx(1.0)
    assert exact["worst"] == pytest.approx(0.0)


def test_the_grid_is_wider_than_the_market_and_within_the_images() -> None:
    dataset = load("digits")
    experiments = grid([40, 160], [0.2, 1.1], dataset, 3)
    assert {it.repetition for it in experiments} == {0, 1, 2}
    assert min(it.size for it in experiments) < 40
    assert max(it.size for it in experiments) > 160
    assert min(it.emd for it in experiments) == 0.0
    assert max(it.emd for it in experiments) > 1.1
    # One label of the small data set could not fill the largest, most lopsided set.
    assert Experiment(320, 1.5, 0) not in experiments


def test_an_experiment_depends_on_itself_alone() -> None:
    dataset, how = load("digits"), Regime("mlp", 2, 10, 0.1, 0.0)
    first = measure(dataset, Experiment(40, 0.5, 0), how, 0, "auto")
    measure(dataset, Experiment(80, 0.2, 0), how, 0, "auto")
    assert measure(dataset, Experiment(40, 0.5, 0), how, 0, "auto") == first
    assert first.emd == realised_emd(40, 0.5, 10)
    assert measure(dataset, Experiment(40, 0.5, 1), how, 0, "auto").accuracy != first.accuracy
    assert measure(dataset, Experiment(40, 0.5, 0), how, 1, "auto").accuracy != first.accuracy


def test_more_epochs_on_more_images_are_more_accurate() -> None:
    dataset = load("digits")
    little = measure(dataset, Experiment(20, 0.2, 0), Regime("mlp", 1, 10, 0.1, 0.0), 0, "auto")
    much = measure(dataset, Experiment(160, 0.2, 0), Regime("mlp", 20, 10, 0.1, 0.0), 0, "auto")
    assert much.accuracy > little.accuracy + 0.2


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "emnist-digits", "digits", "strokes", "scribbles"])
def test_shipped_parameters_rise_with_data_and_fall_with_emd(name: str) -> None:
    parameters = DQIParameters(**dqi_fit(name).parameters)
    assert parameters.eta1 > 0
    surface = dqi(np.array([[50], [100], [200], [400]]), np.array([0.2, 0.5, 0.8, 1.1]), parameters)
    assert (np.diff(surface, axis=0) > 0).all()
    assert (np.diff(surface, axis=1) < 0).all()
    assert ((surface > 0) & (surface < 1)).all()


def test_shipped_parameters_say_how_well_they_fit() -> None:
    for found in read(Path(fits.__file__).with_name("dqi.json")):
        assert found.quality["r2_means"] > 0.9, found.dataset
        assert found.quality["points"] >= 5 * 25
