"""The markets of everywhere.py, and who plays in them."""

import itertools
from collections.abc import Callable, Sequence
from functools import cache

from fl.arithmetic.streams import stream
from scenarios.file.schema import Scenario
from scenarios.loader import with_values
from scenarios.random_markets import SMALL, draw
from scenarios.suite.frozen import RESIDENT, Suite, read

DRAWN = {"fresh": 58, "choice": 582, "blind": 59, "tight": 59, "trained": 59}
"""The kinds of drawn markets with the seeds that they are drawn with; the others are of the suite. No training used
these seeds. ``far`` was chosen with 582, and seed 59 was drawn once it was frozen."""

FEW = 5
"""Cores of clients for each service, up to which a market is called tight."""

LATER, MOST_IMAGES = 100, 120
"""The index from which on blind markets of a kind are looked for, and the most images of a client in the latter, of
which the embedded data sets have few."""

AMONG = ("hqfa", "dearest", "outbid", "pacing", "resolving", "mirror", "bwk")
"""What the services beside a visitor are drawn from in drawn markets."""


@cache
def suite() -> Suite:
    """Return the suite, read once."""
    return read()


@cache
def scenario_of(market: str) -> Scenario:
    """Return a market: ``KIND-INDEX`` is a drawn one, the others are of the suite."""
    kind, _, index = market.partition("-")
    if kind not in DRAWN:
        return suite().market(market).scenario
    scenario = draw(DRAWN[kind], int(index))
    return with_values(scenario, {"training.backend": "real", "rounds": 20}) if kind == "trained" else scenario


def seeds_of(market: str) -> Sequence[int]:
    """Return the market seeds: two, and one where models are trained; of the suite the first two of its own."""
    kind = market.partition("-")[0]
    return range(1 if kind == "trained" else 2) if kind in DRAWN else suite().seeds[:2]


def found(kind: str, count: int, fits: Callable[[Scenario], bool], first: int = LATER) -> list[str]:
    """Return the names of the first drawn markets from an index on that fit."""
    indices = (index for index in itertools.count(first) if fits(draw(DRAWN[kind], index)))
    return [f"{kind}-{index}" for index in itertools.islice(indices, count)]


def trains_fast(scenario: Scenario) -> bool:
    """Return whether a market can train on the embedded data sets, in seconds."""
    small = scenario.services[0].dataset in SMALL.targets and max(scenario.clients.data_size) <= MOST_IMAGES
    return small and 2 <= len(scenario.services) <= 4 and scenario.clients.count <= 20


def tight(scenario: Scenario) -> bool:
    """Return whether a market has rivals, and few cores for each service."""
    return len(scenario.services) > 1 and crowding(scenario) <= FEW


def crowding(scenario: Scenario) -> float:
    """Return how many cores of clients there are for each service."""
    return scenario.clients.count * scenario.clients.cores / len(scenario.services)


def lineups(market: str, mode: str, policy: str) -> list[tuple[dict[str, str], list[str]]]:
    """Return who plays, and in which seats the policy does: one line-up, or one for each seat that is visited."""
    services = scenario_of(market).services
    names = [service.name for service in services]
    if mode == RESIDENT:
        return [(dict.fromkeys(names, policy), names)]
    kind, _, index = market.partition("-")
    if kind not in DRAWN:
        others, seats = {it.name: it.policy for it in services}, suite().market(market).visited
    else:
        rng = stream(DRAWN[kind], "rivals", int(index))
        others, seats = {name: AMONG[int(rng.integers(len(AMONG)))] for name in names}, tuple(names[: len(names) > 1])
    return [({**others, one: policy}, [one]) for one in seats]


def described(market: str) -> str:
    """Return how large a market is."""
    it = scenario_of(market)
    return f"{len(it.services)} x {it.clients.count} x {it.clients.cores}"
