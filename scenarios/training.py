"""A training: what is trained on what, and the tables of its episodes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from numpy.random import Generator

from fl.streams import stream
from learning.mahdrl.plan import Plan
from learning.mahdrl.selves import ITSELF
from learning.mahdrl.training import Table
from learning.policy import Policy, PolicyContext, agent_digest
from scenarios.build import (
    Shelf,
    agents_of,
    build_federation,
    build_market,
    build_policy,
    known_curve,
    policy_context,
)
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario, Service

PolicyName = Literal["mahdrl", "mahdrl-paper"]

Earlier = Callable[[PolicyContext, int], Policy | None]
"""Returns an earlier self to play a service in an episode; None before there are any."""


@dataclass(frozen=True, slots=True)
class Training:
    """What to train on what."""

    # the markets, without a sweep, with the backend that is to be trained on; at least one
    scenarios: tuple[Scenario, ...]
    policy: PolicyName  # what is trained
    # hyper-parameters that differ from the defaults (``mahdrl.settings``, ``paper.settings``)
    options: Mapping[str, Any]
    plan: Plan  # how long to train; ``run`` sets its ``seats`` and ``seed``
    rotate: bool = False  # whether services take turns to learn, against the scenario's own policies or ``rivals``
    # policies, ``NAME``, ``NAME:CHECKPOINT`` or ``itself``, that the other services draw from in every episode; if
    # empty, they play the scenario's
    rivals: tuple[str, ...] = ()
    command: str = ""  # what the user typed, for the agent's description

    @property
    def learners(self) -> tuple[tuple[str, ...], ...]:
        """Of each market, the services that it gives the trained policy, or all if it gives it to none."""
        found = []
        for scenario in self.scenarios:
            named = tuple(service.name for service in scenario.services if service.policy == self.policy)
            found.append(named or tuple(service.name for service in scenario.services))
        return tuple(found)

    @property
    def choices(self) -> dict[str, PolicyChoice]:
        return {rival: PolicyChoice.parse(rival) for rival in self.rivals if rival != ITSELF}


def learned_rivals(training: Training) -> dict[str, str]:
    """Return the digests of the learned agents that a learner may meet: they are part of what it is trained on."""
    if training.rivals:
        digests = {rival: agent_digest(it.name, it.checkpoint) for rival, it in training.choices.items()}
        return {rival: digest for rival, digest in digests.items() if digest is not None}
    found: dict[str, str] = {}
    for scenario, learners in zip(training.scenarios, training.learners, strict=True):
        met = scenario.services
        if not training.rotate:  # who learns in every episode never plays an agent of the scenario
            met = tuple(service for service in met if service.name not in learners)
        found |= agents_of(scenario.model_copy(update={"services": met}))
    return found


@contextmanager
def open_table(
    training: Training,  # what is trained on what
    market: int,  # its place among the scenarios
    seats: Sequence[str],  # who learns; if empty, all that may
    episode: int,  # decides which rivals are drawn; 0 in evaluations, in which no earlier self plays
    seed: int,  # the market's
    shelf: Shelf,  # gives the data sets
    workers: int,  # threads that train clients
    earlier: Earlier | None = None,  # returns earlier selves, if any are to be met
) -> Iterator[Table]:
    """Open one of the markets: the services in the seats learn, the others play as the training prescribes."""
    scenario, services, learners = training.scenarios[market], [], tuple(seats) or training.learners[market]
    selves: dict[str, Policy | None] = {}
    for service in scenario.services:
        if service.name in learners:
            service = PolicyChoice(training.policy).seat(service)
        elif training.rivals:
            rng = stream(seed, "rival", episode, service.name)
            service, selves[service.name] = _with_rival(training, scenario, service, rng, episode, earlier)
        services.append(service)
    scenario = scenario.model_copy(update={"services": tuple(services)})
    rivals = {
        service.name: selves.get(service.name) or build_policy(scenario, service)
        for service in scenario.services
        if service.name not in learners
    }
    federation = build_federation(scenario, seed, shelf, workers=workers)
    try:
        yield Table(build_market(scenario, seed, federation), learners, rivals, market)
    finally:
        federation.close()


def _with_rival(
    training: Training, scenario: Scenario, service: Service, rng: Generator, episode: int, earlier: Earlier | None
) -> tuple[Service, Policy | None]:
    """Draw who plays a service; return it with its policy, and that policy itself where it is an earlier self."""
    rival = training.rivals[int(rng.integers(len(training.rivals)))]
    if rival == ITSELF:
        context = policy_context(scenario, service, known_curve(scenario, service))
        if episode and earlier is not None and (itself := earlier(context, episode)) is not None:
            return PolicyChoice(training.policy).seat(service), itself
        named = list(training.choices)
        rival = named[int(rng.integers(len(named)))]
    return training.choices[rival].seat(service), None
