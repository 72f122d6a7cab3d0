"""When the services of a scenario come and go under a seed: those of streams arrive in the middle of rounds."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from des.clock import Microseconds
from des.money import MICRO, to_micro
from fl.arithmetic.draws import draw_key, uniforms
from fl.arithmetic.elementary import log
from scenarios.file.schema import Scenario, Service, Stream


class Stay(NamedTuple):
    """The time of a service in the market."""

    came: Microseconds  # the instant of its arrival; meaningless where rounds are of any length
    first: int  # the first round in which it takes part; it may lie behind the run
    last: int | None = None  # the round with which its patience is over; None: it has no end


def stays(scenario: Scenario, seed: int) -> list[Stay]:
    """Return when each service comes and goes, in their order."""
    if scenario.timeline.slot is None:  # then there is neither a stream nor patience
        return [Stay(0, service.arrival) for service in scenario.services]
    slot = to_micro(scenario.timeline.slot)
    came = [slot * (service.arrival - 1) for service in scenario.services[: scenario.listed]]
    for stream in scenario.streams:
        came += [slot * (stream.arrival - 1) + after for after in instants(stream, seed)]
    return [_stay(service, instant, slot) for service, instant in zip(scenario.services, came, strict=True)]


def instants(stream: Stream, seed: int) -> Sequence[Microseconds]:
    """Return when the services of a stream arrive, counted from its beginning."""
    if stream.rate is None:
        return [to_micro(time) for time in stream.times]
    uniform = uniforms(draw_key(seed, "arrivals", stream.name), 0, 0, 0, np.arange(stream.count))[0]
    between = np.rint(-log(1.0 - uniform) / stream.rate * MICRO).astype(np.int64)
    return list(accumulate(between.tolist()))


def _stay(service: Service, came: Microseconds, slot: Microseconds) -> Stay:
    first = 1 + -(-came // slot)
    if service.patience is None:
        return Stay(came, first)
    return Stay(came, first, -(-(came + to_micro(service.patience)) // slot))
