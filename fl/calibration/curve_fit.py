"""Fits the surrogate's learning curve to traces of real training, and measures how well it follows them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fl.arrays import AnyArray, BoolArray, FloatArray
from fl.surrogate.learning_curves import REFERENCE, Curve, SurrogateFederation
from fl.training.jobs import Federation, TrainingJob, TrainingOutcome

EARLY_ROUNDS = 10
"""Rounds in which models leave the plateau, and accuracy is mostly luck; errors are reported without them."""

_SEARCHED = {  # name: (where the search starts, lowest, highest)
    "floor": (0.01, 1e-4, 0.25),
    "step_0": (-1.0, -6.0, 4.0),
    "step_size": (0.8, -1.0, 2.5),
    "step_clients": (0.0, -2.0, 2.0),
    "step_emd": (-0.3, -3.0, 2.0),
    "first_size": (0.0, -2.0, 2.0),
    "first_clients": (0.0, -2.0, 2.0),
    "first_emd": (0.0, -3.0, 3.0),
    "decay": (1.0, 0.2, 4.0),
    "shape": (2.0, 0.5, 8.0),
    "drift_emd": (0.1, -1.0, 3.0),
    "drift_left": (0.5, -2.0, 4.0),
    "spread_0": (-1.5, -6.0, 1.0),
    "spread_progress": (0.0, -1.0, 1.0),
    "spread_left": (0.5, -3.0, 5.0),
}
_START, _LOWEST, _HIGHEST = (np.array(column) for column in zip(*_SEARCHED.values(), strict=True))
_DIFFERENCE = 1e-7
_ACCURACY_SCALE = 0.05
"""A miss of this much accuracy costs like one deviation of the noise. The likelihood alone, on a scale of logarithms,
cares little about the first rounds, where accuracy moves most; cross-validated, this term halves the bias of AUCs."""
_DECAYS_AND_SHAPES = ((0.8, 1.2), (0.8, 2.0), (1.5, 1.5))
_HUBER = 2.0
"""Deviations beyond which a residual counts linearly: a slow starter's plateau must not bend the whole curve."""


@dataclass(slots=True)
class RecordedRun:
    """One service's run."""

    dataset: str  # name of its data set
    policy: str  # the policy that chose the clients
    seed: int  # the run's seed
    start: float  # test accuracy of the initial model
    # [rounds][jobs] of the clients that trained; a round may have none
    sizes: list[list[int]] = field(default_factory=list)
    emds: list[list[float]] = field(default_factory=list)
    losses: list[list[float]] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)  # [rounds] after each round


class Recorder(Federation):
    """A federation that forwards everything to another one and records a trace of each service."""

    def __init__(self, federation: Federation, traces: Mapping[str, RecordedRun]) -> None:
        self._federation = federation
        self.traces = traces

    @property
    def kernels(self) -> Mapping[str, str]:
        return self._federation.kernels

    def accuracy(self, service: str) -> float:
        return self._federation.accuracy(service)

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        outcomes = self._federation.train_round(round_, jobs)
        for service, trace in self.traces.items():
            service_jobs = [job for job in jobs if job.service == service]
            trace.sizes.append([job.size for job in service_jobs])
            trace.emds.append([job.emd for job in service_jobs])
            trace.losses.append(outcomes[service].losses.tolist() if service_jobs else [])
            trace.accuracies.append(self._federation.accuracy(service))
        return outcomes

    def state(self) -> dict[str, AnyArray]:
        return self._federation.state()

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._federation.restore(state)

    def close(self) -> None:
        self._federation.close()


@dataclass(frozen=True)
class Features:
    """The inputs of a curve, from the traces: arrays [traces, rounds]; symbols of ``fl.surrogate.learning_curves``."""

    size: FloatArray  # a
    clients: FloatArray  # b
    emd: FloatArray  # v
    left: FloatArray  # s
    trained: BoolArray  # whether anything was trained
    error: FloatArray  # test error after the round

    @classmethod
    def of(cls, traces: Sequence[RecordedRun]) -> "Features":
        """Return the features of traces; those that end early are padded with rounds in which nothing is trained."""
        shape = len(traces), max(len(trace.accuracies) for trace in traces)
        size, clients, emd, left, error = (np.zeros(shape) for _ in range(5))
        trained = np.zeros(shape, dtype=np.bool_)
        for i, trace in enumerate(traces):
            for n, (sizes, emds, accuracy) in enumerate(zip(trace.sizes, trace.emds, trace.accuracies, strict=True)):
                error[i, n] = 1.0 - accuracy
                if sizes:
                    d = np.array(sizes, dtype=np.float64)
                    trained[i, n] = True
                    size[i, n], clients[i, n] = np.log(d.sum() / REFERENCE), np.log(d.sum() ** 2 / (d @ d))
                    emd[i, n] = d @ np.array(emds) / d.sum()
                    left[i, n] = emd[i, n] * np.sqrt(d @ d) / d.sum()
        return cls(size, clients, emd, left, trained, error)


def fit(
    traces: Sequence[RecordedRun],  # traces of one data set in one regime, with varied selections
) -> Curve:
    """Return the curve under which the traces are most likely."""
    from scipy.optimize import minimize  # only calibration needs SciPy

    seen = Features.of(traces)
    start = float(np.mean([1.0 - trace.start for trace in traces]))
    highest = _HIGHEST.copy()
    # Below all errors that were seen; where a model made none, the floor still is one.
    highest[0] = max(2 * _LOWEST[0], min(highest[0], 0.98 * float(seen.error[seen.trained].min())))
    width = highest - _LOWEST

    def curve(scaled: FloatArray) -> Curve:
        return _curve((_LOWEST + width * scaled).T, start)

    def cost_and_gradient(scaled: FloatArray) -> tuple[float, FloatArray]:
        # All finite differences in one pass over the rounds: [1 + parameters, traces, rounds].
        step = np.where(scaled > 0.5, -_DIFFERENCE, _DIFFERENCE)
        around = np.vstack([scaled, scaled + np.diag(step)])[:, None, None, :]
        costs = _cost(_curve(np.moveaxis(_LOWEST + width * around, -1, 0), start), seen)
        return float(costs[0]), (costs[1:] - costs[0]) / step

    best: tuple[float, FloatArray] | None = None
    for decay, shape in _DECAYS_AND_SHAPES:
        first = _START.copy()
        names = list(_SEARCHED)
        first[names.index("floor")] = highest[0] / 2
        first[names.index("decay")], first[names.index("shape")] = decay, shape
        scaled = (first - _LOWEST) / width
        for _ in range(2):  # with numeric gradients L-BFGS stops early; a second search continues from there
            found = minimize(cost_and_gradient, scaled, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(scaled))
            scaled = found.x
        if best is None or found.fun < best[0]:
            best = (float(found.fun), scaled)
    assert best is not None  # noqa: S101 - the loop ran
    result = replace(curve(best[1]), **_fit_losses(traces))
    return replace(result, skew=_skew(result, seen), luck=_luck(result, seen))


def follow(curve: Curve, trace: RecordedRun, seed: int | None = None) -> FloatArray:
    """Return the accuracy [rounds] that the surrogate gives for what a trace trained on; ``seed`` None: no noise."""
    federation = SurrogateFederation({"s": curve.noiseless() if seed is None else curve}, seed or 0)
    path = []
    for round_, (sizes, emds) in enumerate(zip(trace.sizes, trace.emds, strict=True), start=1):
        jobs = [TrainingJob("s", i, d, v) for i, (d, v) in enumerate(zip(sizes, emds, strict=True))]
        federation.train_round(round_, jobs)
        path.append(federation.accuracy("s"))
    return np.array(path)


def _curve(values: FloatArray, start: float) -> Curve:
    """Return the curve of the searched parameters; or, of arrays of each, curves whose fields are arrays."""
    named = dict(zip(_SEARCHED, values.tolist() if values.ndim == 1 else values, strict=True))
    return Curve(start=start, skew=0.0, luck=0.0, loss_0=0.0, loss_error=0.0, loss_emd=0.0, **named)


def _cost(c: Curve, seen: Features) -> FloatArray:
    """Return what the fit minimises, for one curve or for many: how unlikely the traces are, and accuracy missed."""
    mean, spread = _mean_and_spread(c, seen)
    z = np.abs(_target(c, seen) - mean) / spread
    unlikely = np.where(z < _HUBER, 0.5 * z**2, _HUBER * (z - 0.5 * _HUBER)) + np.log(spread)
    error = c.floor + (c.start - c.floor) * np.exp(np.minimum(mean, 0.0))
    missed = 0.5 * ((error - seen.error) / _ACCURACY_SCALE) ** 2
    return np.asarray((unlikely + missed)[..., seen.trained].mean(axis=-1))


def _mean_and_spread(c: Curve, seen: Features, luck: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation of what ``_target`` measures: the learning curves as arrays [..., traces, rounds]."""
    a, b, v = seen.size, seen.clients, seen.emd
    step = c.step_0 + c.step_size * a + c.step_clients * b + c.step_emd * v
    first = c.first_size * a + c.first_clients * b + c.first_emd * v + luck
    u = np.zeros_like(step)
    now = np.zeros(step.shape[:-1])
    for n in range(step.shape[-1]):
        now = now + np.where(seen.trained[:, n], np.exp(step[..., n] + first[..., n] / (1.0 + now)), 0.0)
        u[..., n] = now
    spread = np.exp(c.spread_0 + c.spread_progress * np.log1p(u) + c.spread_left * seen.left)
    drift = (c.drift_emd * v + c.drift_left * seen.left) * u / (1.0 + u)
    return drift - c.decay / c.shape * np.log1p(u**c.shape), np.maximum(spread, 1e-3)


def _target(c: Curve, seen: Features) -> FloatArray:
    return np.asarray(np.log(np.maximum(seen.error - c.floor, 1e-9) / (c.start - c.floor)))


def _skew(c: Curve, seen: Features) -> float:
    """Return the ``skew`` that gives the noise the skewness of the residuals once the plateau is left."""
    mean, spread = _mean_and_spread(c, seen)
    late = seen.trained & (np.arange(seen.trained.shape[1]) >= EARLY_ROUNDS)
    z = ((_target(c, seen) - mean) / spread)[late]
    if len(z) < 3 or z.std() <= 1e-12 * np.abs(z).max():  # equal but for their rounding
        return 0.0
    wanted = float((((z - z.mean()) / z.std()) ** 3).mean())
    # Skewness of (x + k (x^2 - 1)) / sqrt(1 + 2 k^2), x normal. Beyond 0.5 low outliers would be cut off.
    k = np.linspace(-0.5, 0.5, 1001)
    return float(k[np.abs((6 * k + 8 * k**3) / (1 + 2 * k**2) ** 1.5 - wanted).argmin()])


def _luck(c: Curve, seen: Features) -> float:
    """Return the deviation of the ``luck`` that explains each trace's early rounds best."""
    early = seen.trained & (np.arange(seen.trained.shape[1]) < EARLY_ROUNDS)
    candidates = np.linspace(-1.5, 1.5, 61)
    costs = []
    for luck in candidates:
        mean, spread = _mean_and_spread(c, seen, float(luck))
        gap = (np.minimum(mean, 0.0) - _target(c, seen)) / spread
        costs.append(np.where(early, np.minimum(gap**2, _HUBER**2 * 4), 0.0).sum(axis=1))
    best = candidates[np.argmin(costs, axis=0)]
    return float(np.sqrt((best**2).mean())) if len(best) > 1 else 0.0


def _fit_losses(traces: Iterable[RecordedRun]) -> dict[str, float]:
    """Return the least-squares coefficients of clients' log mean local losses."""
    rows, targets = [], []
    for trace in traces:
        before = [trace.start, *trace.accuracies[:-1]]
        for accuracy, emds, losses in zip(before, trace.emds, trace.losses, strict=True):
            for emd, loss in zip(emds, losses, strict=True):
                rows.append((1.0, np.log(max(1.0 - accuracy, 1e-6)), emd))
                targets.append(np.log(max(loss, 1e-9)))
    found, *_ = np.linalg.lstsq(np.array(rows), np.array(targets), rcond=None)
    return {"loss_0": float(found[0]), "loss_error": float(found[1]), "loss_emd": float(found[2])}
