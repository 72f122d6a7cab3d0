"""What plug-ins are given cannot be written to, and what was checked is what is paid."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from des.allocation import allocate
from des.behaviour import BEHAVIOURS, Behaviour
from des.mechanism import MECHANISMS, Clearing, Mechanism
from des.observation import Offer
from learning.play_round import play_round
from learning.policy import POLICIES, Policy
from scenarios.build import Shelf, build_federation, build_market, build_policy
from scenarios.loader import load

WRITEABLE: set[str] = set()


def note(name: str, given: Any) -> None:
    """Look for arrays that can be written to, at any depth."""
    if isinstance(given, np.ndarray) and given.flags.writeable:
        WRITEABLE.add(name)
    if is_dataclass(given):
        for field in fields(given):
            note(f"{name}.{field.name}", getattr(given, field.name))
    if isinstance(given, dict):
        for value in given.values():
            note(name, value)


class LookingMechanism(Mechanism):
    def ask(self, bids, data_size):
        note("ask: bids", bids)
        note("ask: data_size", data_size)
        return super().ask(bids, data_size)

    def clear(self, book):
        note("clear: book", book)
        core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
        return Clearing(core, book.payments.copy())

    def close(self, book, clearing):
        note("close: book", book)
        note("close: clearing", clearing)


class LookingBehaviour(Behaviour):
    misreports = True

    def begin(self, setting):
        note("begin: setting", setting)
        self.clients = setting.clients

    def bids(self, round_, costs):
        note("bids: costs", costs)
        return costs + 1

    def bid_range(self, lowest, highest):
        note("bid_range: lowest", lowest)
        note("bid_range: highest", highest)
        return lowest, highest + 1

    def report(self, data_size, emd, largest_emd):
        for name, given in {"data_size": data_size, "emd": emd, "largest_emd": largest_emd}.items():
            note(f"report: {name}", given)
        return data_size, emd

    def misreporting(self, round_):
        return np.zeros(self.clients, dtype=np.bool_)

    def close(self, round_, outcomes):
        note("close: outcomes", outcomes)


class LookingPolicy(Policy):
    privileged = sees_offers = True

    def act(self, observation):
        note("act: observation", observation)
        order = observation.own_bids.argsort()[:2]
        return Offer(order, observation.own_bids[order])

    def learn(self, observation, offer, feedback):
        note("learn: feedback", feedback)


@pytest.mark.parametrize(
    "more", [{}, {"market.dqi": "rank", "market.bids": "own"}, {"clients.lasting.persistence": 0.5}]
)
def test_no_array_that_a_plug_in_is_given_can_be_written_to(more: dict[str, Any]) -> None:
    WRITEABLE.clear()
    MECHANISMS.register("looking", LookingMechanism)
    BEHAVIOURS.register("looking", LookingBehaviour)
    POLICIES.register("looking", LookingPolicy)
    looking = {
        "market.mechanism": "looking",
        "clients.behaviour.kind": "looking",
        "services.mnist-poor.policy": "looking",
    }
    scenario = load("scarce", {"training.backend": "surrogate", "rounds": 2, **looking, **more})
    market = build_market(scenario, 0, build_federation(scenario, 0, Shelf()))
    policies = {service.name: build_policy(scenario, service) for service in scenario.services}
    while not market.finished:
        report = play_round(market, policies)
    assert report.offers
    assert not WRITEABLE
