"""The surrogate backend: accuracy follows a fitted learning curve instead of a trained model. Light: no torch.

It is there to train policies and to explore in seconds; its outcomes are never results of real training. The formulas
stand at ``follow``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple, Self

import numpy as np

from fl.arithmetic.draws import draw_key, normals
from fl.arithmetic.elementary import exp, log, power
from fl.arrays import AnyArray, FloatArray, IntArray, UInt32Array
from fl.training.jobs import Asynchronous, Delivery, TrainingJob, TrainingOutcome
from fl.training.trigger import Trigger, share_of

REFERENCE = 400.0  # images; sizes count in multiples of it, so that a parameter for sizes does not shift the others

_NO_NOISE = -60.0  # logarithm of a spread that no float near 1 has digits for


@dataclass(frozen=True, slots=True)
class Curve:
    """The learning curve of one data set in one training regime. Names are those of the formulas at ``follow``."""

    start: float  # error of the initial model
    floor: float  # error that no training gets below
    step_0: float  # step_*: what moves the progress
    step_size: float
    step_clients: float
    step_emd: float
    first_size: float  # first_*: what else moves it before the plateau is left
    first_clients: float
    first_emd: float
    decay: float  # decay, shape: how the error falls
    shape: float
    drift_emd: float  # drift_*: what lopsided data adds to the round's error
    drift_left: float
    spread_0: float  # spread_*: how wide the noise is
    spread_progress: float
    spread_left: float
    skew: float  # the noise's skewness
    luck: float  # spread of the runs' luck
    loss_0: float  # a client's log mean local loss is loss . [1, log(error before the round), EMD]
    loss_error: float
    loss_emd: float

    @classmethod
    def of(cls, parameters: Mapping[str, float]) -> Self:
        """Return the curve with the parameters of a fit (``fl.surrogate.fitted``)."""
        return cls(**{field.name: float(parameters[field.name]) for field in fields(cls)})

    def parameters(self) -> dict[str, float]:
        return asdict(self)

    def noiseless(self) -> "Curve":
        """Return the same curve without luck and noise: what is learned of a round follows from its data alone."""
        return replace(self, luck=0.0, skew=0.0, spread_0=_NO_NOISE, spread_progress=0.0, spread_left=0.0)


class Stale(NamedTuple):
    """What is learned of updates that are stale; names are those of the formulas at ``follow``."""

    share: float = 1.0
    age: float = 0.0
    drift: float = 0.0


@dataclass(slots=True)
class _Progress:
    """One service's progress. ``luck`` is the run's, standard normal."""

    curve: Curve
    luck: float
    accuracy: float
    stale: Stale
    u: float = 0.0

    def advance(self, jobs: Sequence[TrainingJob], z: float) -> TrainingOutcome:
        """Play one round with standard normal noise ``z``."""
        # Plain floats: NumPy's overhead on a handful of numbers would be most of a round's time.
        c, before = self.curve, 1.0 - self.accuracy
        round_ = Trained.on([(job.size, job.weight, job.emd) for job in jobs])
        self.u, self.accuracy = follow(c, self.u, self.luck, z, round_, sqrt)
        return TrainingOutcome(self.accuracy, self._losses(before, jobs))

    def take(self, images: Sequence[tuple[int, int, float]], worths: Iterable[tuple[float, float]], z: float) -> None:
        """Make a model of updates, given size, weight and EMD of the images of each, and its ``_worth``."""
        trained, counted, overlap = Trained.on(images), 0.0, 0.0
        for (_, weight, _), (progress, unaware) in zip(images, worths, strict=True):
            counted += weight * progress
            overlap += weight * unaware
        overlap /= trained.weights
        worth = counted / trained.weights, self.stale.drift * overlap * overlap
        self.u, self.accuracy = follow(self.curve, self.u, self.luck, z, trained, sqrt, *worth)

    def losses(self, jobs: Sequence[TrainingJob]) -> FloatArray:
        """Return the mean local loss of each job that begins with the model of now."""
        return self._losses(1.0 - self.accuracy, jobs)

    def _losses(self, error: float, jobs: Sequence[TrainingJob]) -> FloatArray:
        c = self.curve
        base = c.loss_0 + c.loss_error * log(error)
        loss = {emd: exp(base + c.loss_emd * emd) for emd in {job.emd for job in jobs}}  # few EMDs, many jobs
        return np.array([loss[job.emd] for job in jobs])


def _worth(stale: Stale, trigger: Trigger, age: int) -> tuple[float, float]:
    """Return what an update of some staleness adds to the means of ``follow``: that of the progress, and x."""
    part = share_of(trigger, age)
    return power(part, stale.share) * power(1.0 + age, -stale.age), part * age


class Trained(NamedTuple):
    """The data that a service's round trained on: numbers of one service, or arrays over many."""

    samples: Any  # D, the images of all clients that served; above 0
    weights: Any  # the sum of their weights in FedAvg: D, unless clients misreport it
    weighted: Any  # the sum of weight times EMD, added in the order of the jobs
    squares: Any  # the sum of the squared weights

    @classmethod
    def on(cls, images: Iterable[tuple[int, int, float]]) -> Self:
        """Return what a round trained on, given size, weight in FedAvg and EMD of each client's images."""
        samples, weights, weighted, squares = 0, 0, 0.0, 0
        for size, weight, emd in images:
            samples += size
            weights += weight
            weighted += weight * emd
            squares += weight * weight
        return cls(samples, weights, weighted, squares)


# Each service has a latent progress u, which grows with what its round trained on: D images in all, of k clients, with
# mean EMD v (weighted by size), of which s = v * |w| is left after averaging, w being the clients' weights in FedAvg;
# k = 1 / |w|^2 is their number if all are equally large, and less if a few large ones dominate.
#
#     a = log(D / 400), b = log k, early = 1 / (1 + u)
#     u += exp(step . [1, a, b, v] + early * (first . [a, b, v] + luck))
#     log((error - floor) / (start - floor)) = -decay/shape * log(1 + u^shape) + (1 - early) * drift . [v, s] + noise
#     noise = exp(spread . [1, log(1 + u), s]) * (z + skew * (z^2 - 1)) / sqrt(1 + 2 * skew^2)
#
# The error leaves a plateau at ``start`` (``first`` says what helps to leave it), then falls like a power of u towards
# ``floor``. z is standard normal in each round; luck is normal with deviation ``luck``, once for each run: some initial
# models leave the plateau sooner. Real errors have more high outliers than low ones, hence the skew.
#
# Where a part p counts of an update of staleness n (``fl.training.trigger``), what is added to u is multiplied by the
# mean of p^share (1 + n)^-age over the updates, weighted as in FedAvg, and (1 - early) * drift * x^2 is added to the
# error's logarithm, where x is the mean of p n: updates that count much and know little of each other are too much.
def follow(
    c: Any,
    u: Any,
    luck: Any,
    z: Any,
    round_: Trained,
    root: Callable[[Any], Any],
    counted: float = 1.0,  # what the progress is multiplied by, and ...
    stale: float = 0.0,  # ... what is added to the drift, where updates are stale
) -> tuple[Any, Any]:
    """Return the progress and the accuracy after a round; for one service, or for many at once, to the same bit."""
    a, b = log(round_.samples / REFERENCE), log(round_.weights * round_.weights / round_.squares)
    v = round_.weighted / round_.weights
    s = v * root(round_.squares) / round_.weights
    first = c.first_size * a + c.first_clients * b + c.first_emd * v + c.luck * luck
    step = c.step_0 + c.step_size * a + c.step_clients * b + c.step_emd * v
    u = u + counted * exp(step + first / (1.0 + u))
    spread = exp(c.spread_0 + c.spread_progress * log(1.0 + u) + c.spread_left * s)
    noise = spread * (z + c.skew * (z * z - 1.0)) / root(1.0 + 2.0 * c.skew * c.skew)
    drift = (c.drift_emd * v + c.drift_left * s + stale) * u / (1.0 + u)
    change = drift + noise - c.decay / c.shape * log(1.0 + power(u, c.shape))
    falling = 0.5 * (change - abs(change))  # the lower one of the change and 0, exactly, for numbers and arrays
    error = c.floor + (c.start - c.floor) * exp(falling)
    return u, 1.0 - error


def added(
    curve: Curve,  # the service's
    # [n] what it trained on in each; None where no client served it, so that its model stayed as it was
    rounds: Sequence[Trained | None],
    instead: Trained,  # what it is compared with: images that it might have trained on in that round
) -> FloatArray:
    """Return what each round added to the accuracies of a service, summed over that round and all later ones, [n].

    A run can be followed again with other images in one of its rounds, all others as they were, without luck and noise.
    What that changes is what the round was worth: known only where a curve stands for a model, and afterwards.
    """
    c, n = curve.noiseless(), len(rounds)
    # Runs followed side by side: in run j, round j is played with the other images; the last run is as it was.
    u, accuracy, worth = np.zeros(n + 1), np.full(n + 1, 1.0 - c.start), np.zeros(n)
    for j, images in enumerate(rounds):
        other = follow(c, u[j], 0.0, 0.0, instead, np.sqrt)
        if images is not None:
            u, accuracy = follow(c, u, 0.0, 0.0, images, np.sqrt)
        u[j], accuracy[j] = other
        worth += accuracy[-1] - accuracy[:-1]
    return worth


def noise_keys(seed: int | Sequence[int], services: Sequence[str]) -> UInt32Array:
    """Return the stream of each service's noise, by its name, [..., M, 1, 2]; [...] is the shape of the seeds."""
    return np.stack([draw_key(seed, "surrogate", name) for name in services], axis=-2)[..., None, :]


def noise(keys: UInt32Array, rounds: IntArray) -> FloatArray:
    """Return standard normal numbers [..., rounds] for each service and round; that of round 0 is the run's luck."""
    return normals(keys, rounds)


AHEAD = 64  # rounds whose noise is drawn at once: a call costs more than its numbers


class SurrogateFederation(Asynchronous):
    """Follows learning curves. See ``fl.training.jobs.Asynchronous``."""

    def __init__(
        self,
        curves: Mapping[str, Curve],  # by service
        seed: int,
        stale: Mapping[str, Stale] | None = None,  # of services for whose data set that was measured
    ) -> None:
        self._keys = noise_keys(seed, list(curves))
        # a block for each service, as they may have made different numbers of models, and the first one
        self._noise = lru_cache(maxsize=len(curves) + 1)(self._draw_noise)
        self._worth = lru_cache(maxsize=4096)(_worth)  # a trigger answers alike when asked again
        luck = self._noise(0)[:, 0].tolist()  # rounds count from 1
        self._services = {
            name: _Progress(curve, own, 1.0 - curve.start, (stale or {}).get(name, Stale()))
            for (name, curve), own in zip(curves.items(), luck, strict=True)
        }
        # by service, round and client: size, weight and EMD of what work that goes on is done on
        self._under_way: dict[str, dict[tuple[int, int], tuple[int, int, float]]] = {name: {} for name in curves}

    @property
    def curves(self) -> Mapping[str, Curve]:
        return {name: service.curve for name, service in self._services.items()}

    @property
    def kernels(self) -> Mapping[str, str]:
        return dict.fromkeys(self._services, "surrogate")

    def accuracy(self, service: str) -> float:
        return self._services[service].accuracy

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        drawn = self._drawn(round_)
        return {name: self._services[name].advance(own, drawn[name]) for name, own in _by_service(jobs).items()}

    def begin(self, round_: int, jobs: Sequence[TrainingJob], slot: int | None = None) -> Mapping[str, FloatArray]:
        for job in jobs:
            self._under_way[job.service][round_, job.client] = job.size, job.weight, job.emd
        return {name: self._services[name].losses(own) for name, own in _by_service(jobs).items()}

    def aggregate(self, service: str, model: int, deliveries: Sequence[Delivery], trigger: Trigger) -> None:
        """See ``Asynchronous``; the noise is that of the service's ``model``-th model, not of a round."""
        kept, z = self._under_way[service], self._drawn(model)[service]
        images = [kept.pop((it.round, it.client)) for it in deliveries]
        progress = self._services[service]
        progress.take(images, (self._worth(progress.stale, trigger, it.staleness) for it in deliveries), z)

    def evaluate(self, services: Sequence[str]) -> None:
        """See ``Asynchronous``. The accuracies are known already."""

    def forget(self, service: str, updates: Sequence[Delivery] | None = None) -> None:
        going_on = self._under_way[service]
        for key in list(going_on) if updates is None else [(it.round, it.client) for it in updates]:
            going_on.pop(key, None)

    def _drawn(self, place: int) -> dict[str, float]:
        """Return the noise of each service at a place of its stream, from 1."""
        block, position = divmod(place, AHEAD)
        return dict(zip(self._services, self._noise(block)[:, position].tolist(), strict=True))

    def _draw_noise(self, block: int) -> FloatArray:
        """Return [M, rounds of the block] standard normal numbers; that of round 0 is the run's luck."""
        return noise(self._keys, np.arange(block * AHEAD, (block + 1) * AHEAD))

    def state(self) -> dict[str, AnyArray]:
        kept = {name: np.array([service.accuracy, service.u]) for name, service in self._services.items()}
        going_on = {name: [(*key, *of) for key, of in own.items()] for name, own in self._under_way.items()}
        return kept | {f"{name}/under_way": np.array(rows) for name, rows in going_on.items() if rows}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        for name, service in self._services.items():
            service.accuracy, service.u = state[name].tolist()
            rows = state.get(f"{name}/under_way", np.empty((0, 5))).tolist()
            self._under_way[name] = {
                (int(round_), int(client)): (int(size), int(weight), emd) for round_, client, size, weight, emd in rows
            }

    def close(self) -> None:
        """See ``Federation.close``. There is nothing to release."""


def _by_service(jobs: Iterable[TrainingJob]) -> dict[str, list[TrainingJob]]:
    """Return the jobs of each service, in their order: a curve adds them as they come."""
    jobs_of: dict[str, list[TrainingJob]] = {}
    for job in jobs:
        jobs_of.setdefault(job.service, []).append(job)
    return jobs_of
