"""How long jobs take, worked out again from the scenario's durations and the seed. It shares no code with ``des``."""

from fractions import Fraction
from typing import Protocol

import numpy as np

from des.clients.population import Population
from des.money import MICRO
from fl.arithmetic.draws import draw_key, normals
from fl.arithmetic.elementary import exp
from fl.arrays import FloatArray, IntArray
from flmarket.analysis.verification.findings import Rows
from scenarios.file.schema import Scenario

_ENDLESS = 2**62  # microseconds


class Timed(Protocol):
    """What the durations of a run follow from: a part of ``Logs``."""

    @property
    def scenario(self) -> Scenario: ...

    @property
    def population(self) -> Population: ...

    @property
    def seed(self) -> int: ...

    def slots_of(self, numbers: IntArray) -> IntArray: ...


def durations(logs: Timed, jobs: Rows) -> tuple[IntArray, IntArray, IntArray]:
    """Return how long jobs train, how long their updates travel, and when each job is cut off; in microseconds.

    ``jobs`` are lines of offers.csv with the data size that the client holds, and the part of the work that is done.
    """
    clock, response = logs.scenario.timeline, logs.scenario.clients.response
    epochs = np.array([logs.scenario.training_for(it.dataset).local_epochs for it in logs.scenario.services])
    images, turns = (
        -(-whole * jobs["done"] // MICRO) if response.of == kind else whole
        for kind, whole in (("data", jobs["data_size"]), ("epochs", epochs[jobs["m"]]))
    )
    compute = _training(clock.seconds_per_sample, images * turns, logs, jobs["client"])
    if clock.jitter:
        z = normals(draw_key(logs.seed, "jitter"), jobs["round"], jobs["m"], jobs["client"])
        compute = np.rint(np.minimum(compute.astype(np.float64) * exp(clock.jitter * z), 2.0**60)).astype(np.int64)
    if response.of == "speed":
        compute = -(-compute * MICRO // np.maximum(jobs["done"], 1))
    people = logs.population
    compute = compute + _travel(clock.download_seconds, people.download, logs, jobs)
    upload = _travel(clock.upload_seconds, people.upload, logs, jobs)
    ends = [round(it * MICRO) for it in (clock.end, clock.deadline) if it is not None]
    limit = np.full(len(jobs), min([_ENDLESS, *ends]))
    if logs.population.departure_rate.any():
        pairs = zip(logs.slots_of(jobs["round"]).tolist(), jobs["client"].tolist(), strict=True)
        part = np.array([logs.population.departs(*pair) for pair in pairs], dtype=np.float64)  # NaN for one that stays
        leaves = ~np.isnan(part)
        limit[leaves] = np.minimum(limit, np.floor(part * (compute + upload)))[leaves]
    return compute, upload, limit


def _travel(seconds: float, mbps: FloatArray | None, logs: Timed, jobs: Rows) -> IntArray:
    """Return how long models travel one way, in microseconds: a byte takes eight at 1 Mbps."""
    if mbps is None:
        return np.full(len(jobs), round(seconds * MICRO))
    size = np.array([logs.scenario.model_bytes(it) for it in logs.scenario.services])
    pairs, place = np.unique([size[jobs["m"]], mbps[jobs["client"]]], axis=1, return_inverse=True)
    times = [round(8 * int(of) / Fraction(str(each))) for of, each in pairs.T.tolist()]
    return np.array(times, dtype=np.int64)[place.ravel()]


def _training(seconds_per_sample: float, work: IntArray, logs: Timed, clients: IntArray) -> IntArray:
    """Return how long jobs train, in microseconds: fractions of the decimals in the scenario, each rounded once."""
    pairs, place = np.unique([work, logs.population.speed[clients]], axis=1, return_inverse=True)
    image = Fraction(str(seconds_per_sample)) * MICRO
    times = [round(image * int(images) / Fraction(str(speed))) for images, speed in pairs.T.tolist()]
    return np.array(times, dtype=np.int64)[place.ravel()]
