"""Fits the data quality indicator (eq. 6) to experiments: the paper's Fig. 1.

Each experiment trains a new network on one data set of D images with EMD v, as one client holds it, and tests it on
the whole test split. Psi(D, v) of eq. (6) is then fitted to the accuracies, under the paper's alpha(v) < 1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from fl.arithmetic.draws import draw_key
from fl.arithmetic.streams import stream
from fl.arrays import FloatArray
from fl.data.dqi import DQIParameters, alpha, dqi
from fl.data.emd import draw_images, label_counts, largest_count, largest_emd, realised_emd
from fl.data.registry import Dataset
from fl.training.regime import Kernel, Regime
from fl.training.tasks import visiting_order
from fl.training.trainers import Engine


class Experiment(NamedTuple):
    """One data set to train on: D images, the wanted EMD, and which repetition it is."""

    size: int
    emd: float
    repetition: int


class Point(NamedTuple):
    size: int  # D
    emd: float  # realised
    accuracy: float  # on the whole test split


def grid(sizes: Sequence[int], emds: Sequence[float], dataset: Dataset, repetitions: int) -> list[Experiment]:
    """Return experiments on a grid wider than a market's.

    Sizes go from half the smallest to twice the largest, EMDs from 0 to 0.4 above the largest, as far as the data set
    has the images.
    """
    rarest = min(map(len, dataset.by_label))
    labels = dataset.info.labels
    top = max(emds)
    wider = {max(1, min(sizes) // 2), *sizes, max(sizes) * 3 // 2, max(sizes) * 2}
    lopsided = {0.0, min(emds) / 2, *emds, min(top + 0.2, largest_emd(labels)), min(top + 0.4, largest_emd(labels))}
    return [
        Experiment(size, round(emd, 6), repetition)
        for size, emd, repetition in product(sorted(wider), sorted(lopsided), range(repetitions))
        if largest_count(size, emd, labels) <= rarest
    ]


def measure(dataset: Dataset, experiment: Experiment, regime: Regime, seed: int, kernel: Kernel) -> Point:
    """Train one new network for ``regime.local_epochs`` epochs and test it.

    The outcome depends on the arguments alone, whatever else was measured before.
    """
    engine = Engine(dataset, regime, kernel)
    purpose = ("dqi", dataset.info.name, experiment.size, f"{experiment.emd:.6f}", experiment.repetition)
    images = draw_key(seed, *purpose, "images")
    counts = label_counts(experiment.size, experiment.emd, dataset.info.labels, images)
    chosen = draw_images(counts, dataset.by_label, images)
    order = visiting_order(experiment.size, regime.local_epochs, stream(seed, *purpose, "local"))
    trainer = engine.trainer(seed, *purpose, "model")
    initial = engine.initial_parameters(seed, *purpose, "model")
    with engine.drawing("training", seed, *purpose):
        trained, _ = trainer.train(initial, dataset.train_images[chosen], dataset.train_labels[chosen], order, regime)
    with engine.drawing("evaluation", seed, *purpose):
        correct = trainer.correct(trained, dataset.test_images, dataset.test_labels)
    real = realised_emd(experiment.size, experiment.emd, dataset.info.labels)
    return Point(experiment.size, real, correct / len(dataset.test_labels))


def fit(points: Iterable[Point]) -> DQIParameters:
    """Return the parameters of eq. (6) with the least squares, under alpha(v) < 1 for all v >= 0.

    The search is over alpha(0) < 1 and eta5 >= 0, from which eta4 follows: alpha then falls with v from a value below
    1. The sign of eta1 is free. eta3 is at most 1 per image: eta2 and eta3 can nearly stand in for each other, and
    beyond that a better fit by less than 0.01 of R^2 would cost parameters of 1e-6 and 1e4.
    """
    from scipy.optimize import least_squares  # only calibration needs SciPy

    size, emd, accuracy = _columns(points)

    def residuals(x: FloatArray) -> FloatArray:
        return dqi(size, emd, _parameters(x)) - accuracy

    #         alpha(0) eta1 log eta2 log eta3 eta5/eta6 eta6
    lowest = [0.01, -3.0, -6.0, -12.0, 0.0, 0.3]
    highest = [1.0 - 1e-6, 3.0, 5.0, 0.0, 2.5, 20.0]
    best = min(
        (
            least_squares(residuals, [0.9, *start, 0.2, width], bounds=(lowest, highest), x_scale="jac", max_nfev=150)
            for start, width in product(((0.6, 0.0, -5.0), (0.6, 1.5, -3.0), (-0.2, -1.3, -7.4)), (1.5, 4.0))
        ),
        key=lambda found: float(found.cost),
    )
    return _parameters(best.x)


def quality(points: Iterable[Point], parameters: DQIParameters) -> dict[str, float]:
    """Return how well the parameters fit the points."""
    size, emd, accuracy = _columns(points)
    residual = accuracy - dqi(size, emd, parameters)
    cells = np.unique(np.stack([size, emd]), axis=1, return_inverse=True)[1].ravel()
    count = np.bincount(cells)
    mean = np.bincount(cells, accuracy) / count
    off = np.bincount(cells, residual) / count
    within = accuracy - mean[cells]
    return {
        "points": len(size),
        # The explained share of the variance: of single accuracies, and of the means over repetitions, whose scatter no
        # curve can explain.
        "r2": 1.0 - float((residual**2).sum() / ((accuracy - accuracy.mean()) ** 2).sum()),
        "r2_means": 1.0 - float((off**2).sum() / ((mean - mean.mean()) ** 2).sum()),
        "rmse": float(np.sqrt((residual**2).mean())),
        "worst": float(np.abs(off).max()),  # the largest distance of a mean from the curve
        # The standard deviation of repetitions around their mean.
        "scatter": float(np.sqrt((within**2).sum() / max(1, len(size) - len(count)))),
    }


def rounded(parameters: DQIParameters) -> DQIParameters:
    """Return the parameters with the six digits that are written down; alpha stays below 1."""
    # The bound eta5 >= 0 is met only up to a rounding error: what is left of it is no information.
    short = DQIParameters(
        **{name: float(f"{value:.6g}") if abs(value) > 1e-9 else 0.0 for name, value in asdict(parameters).items()}
    )
    while float(alpha(0.0, short)) >= 1.0:
        short = replace(short, eta4=float(f"{short.eta4 * (1 - 1e-5):.6g}"))
    return short


def _columns(points: Iterable[Point]) -> tuple[FloatArray, FloatArray, FloatArray]:
    size, emd, accuracy = np.array(list(points), dtype=np.float64).T
    return size, emd, accuracy


def _parameters(x: FloatArray) -> DQIParameters:
    top, eta1, log2, log3, ratio, eta6 = map(float, x)
    return DQIParameters(
        eta1=eta1,
        eta2=float(np.exp(log2)),
        eta3=float(np.exp(log3)),
        eta4=top * float(np.exp(ratio**2)),
        eta5=ratio * eta6,
        eta6=eta6,
    )
