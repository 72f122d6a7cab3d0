"""Plug-ins that break a contract each, and what the functions for authors say of them."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from des.costs.energy import Energy
from des.mechanisms.pay_as_offered import PayAsOffered
from des.responses.moral_hazard import MoralHazard
from des.responses.quadratic import Quadratic
from fl.training.aggregators.krum import Krum
from fl.training.triggers.fedasync import FedAsync
from fl.training.triggers.wait_for_all import WaitForAll
from flmarket import (
    Aggregator,
    Behaviour,
    BestResponse,
    Clearing,
    Cost,
    Mechanism,
    Offer,
    Policy,
    RunTables,
    Trigger,
    allocate,
    fill_budget,
    measure,
)  # fmt: skip
from flmarket.testing import (
    check_aggregator,
    check_behaviour,
    check_cost,
    check_measure,
    check_mechanism,
    check_policy,
    check_response,
    check_trigger,
)
from learning.statistics.measure import ALL_MEASURES, MARKET, Measure


class Cheapest(Policy):
    def act(self, seen):
        return fill_budget(seen.own_bids.argsort(), seen.own_bids, seen.budget, available=seen.available)


class NobodyIsOffline(Policy):
    def act(self, seen):
        return fill_budget(seen.own_bids.argsort(), seen.own_bids, seen.budget, available=seen.own_bids >= 0)


class ThinksOfTwoClients(Cheapest):
    def act(self, seen):
        return Offer(np.array([1]), seen.own_bids[[1]]) if seen.budget > 0 and seen.available[1] else Offer.none()


class Counts(Cheapest):
    asked = 0

    def act(self, seen):
        self.asked += 1
        return super().act(seen) if self.asked % 2 else Offer.none()


class SharesItsMemory(Cheapest):
    rounds: list[int] = []  # noqa: RUF012 - the mistake

    def act(self, seen):
        return super().act(seen) if len(self.rounds) < 5 else Offer.none()

    def learn(self, seen, offer, feedback):
        self.rounds.append(seen.round)


class Forgets(Cheapest):
    rounds = 0

    def act(self, seen):
        return super().act(seen) if self.rounds < 4 else Offer.none()

    def learn(self, seen, offer, feedback):
        self.rounds += 1

    def state(self):
        return {"something": np.zeros(1)}


class LowNumbersFirst(Mechanism):
    def clear(self, book):
        core, price = np.full(len(book.clients), -1), book.payments.copy()
        _, first = np.unique(book.services, return_index=True)
        for m in first:
            own = np.flatnonzero(book.services == book.services[m])
            at = own[book.clients[own].argmin()]
            core[at] = (core[book.clients == book.clients[at]] >= 0).sum()
        core[core >= book.cores] = -1
        return Clearing(core, price)


class Overcharges(Mechanism):
    def clear(self, book):
        core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
        return Clearing(core, book.payments + 1)


class Tires(PayAsOffered):
    rounds = 0

    def close(self, book, clearing):
        self.rounds += 1

    def clear(self, book):
        clearing = super().clear(book)
        return Clearing(clearing.core if self.rounds < 4 else np.full(len(book.clients), -1), clearing.price)


class Doubles(Behaviour):
    def bids(self, round_, costs):
        return 2 * costs

    def bid_range(self, lowest, highest):
        return lowest, 2 * highest


class TooNarrow(Doubles):
    def bid_range(self, lowest, highest):
        return lowest, highest


class Restless(Doubles):
    asked = 0

    def bids(self, round_, costs):
        self.asked += 1
        return costs + self.asked % 2


class LearnsInVain(Doubles):
    rounds = 0

    def bids(self, round_, costs):
        return costs * (1 + self.rounds % 2)

    def close(self, round_, outcomes):
        self.rounds += 1


class UpAndDown(Cost):
    def amounts(self, work):
        return work.unit * np.abs(work.emd - 1) * work.data_size


class HidesItsSpeed(Cost):
    uses_speed = False

    def amounts(self, work):
        return work.data_size / work.speed


class Cubic(BestResponse):
    def cost(self, awards, quantity):
        return awards.cost * quantity**3

    def marginal(self, awards, quantity):
        return 3 * awards.cost * quantity**2


class WrongSlope(Cubic):
    def marginal(self, awards, quantity):
        return 2 * awards.cost * quantity**2


class RisesEverLess(BestResponse):
    """Its cost is concave: where the slope is the price, the client keeps the least, not the most."""

    def cost(self, awards, quantity):
        return awards.cost * quantity * (2 - quantity)

    def marginal(self, awards, quantity):
        return awards.cost * 2 * (1 - quantity)


class TakesTheFirst(Quadratic):
    def respond(self, awards):
        if awards.menu is None:
            return super().respond(awards)
        return np.full(len(awards.price), awards.menu.quantity[0])


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        (check_policy, Cheapest),
        (check_mechanism, PayAsOffered),
        (check_behaviour, Doubles),
        (check_cost, Energy),
        (check_aggregator, Krum),
        (check_trigger, FedAsync),
        (check_trigger, WaitForAll),
        (check_response, Quadratic),
        (check_response, MoralHazard),
        (check_response, Cubic),
    ],
)
def test_nothing_is_said_of_what_keeps_its_contracts(check: Callable[[type], None], kind: type) -> None:
    check(kind)


class LastWins(Aggregator):
    def aggregate(self, updates):
        return updates.models[-1]


class ForgetsItsVelocity(Aggregator):
    velocity = np.zeros(1)

    def aggregate(self, updates):
        self.velocity = 0.5 * self.velocity + updates.models.mean(0) - updates.old
        return updates.old + self.velocity


class NeverDue(Trigger):
    def due(self, gathered):
        return False


class CountsTwice(NeverDue):
    def due(self, gathered):
        return True

    def share(self, staleness):
        return 2.0


AGAIN = "asked the same again, returns something else"
RESTORED = "a new object that has restored what state() returned does not play on as the old one would have"
BROKEN: list[tuple[Callable[[Any], None], type, str]] = [
    (
        check_policy,
        NobodyIsOffline,
        "policy NobodyIsOffline, a market whose clients go offline: policy 'NobodyIsOffline'",
    ),
    (
        check_policy,
        ThinksOfTwoClients,
        "policy ThinksOfTwoClients, a market of one client: policy 'ThinksOfTwoClients'",
    ),
    (check_policy, Counts, f"policy Counts, the paper's market: act(), {AGAIN}"),
    (check_policy, SharesItsMemory, "policy SharesItsMemory, the paper's market: the same market, played again, goes "),
    (check_policy, Forgets, f"policy Forgets, the paper's market: {RESTORED}"),
    (check_policy, Policy, "Policy does not define act"),
    (check_mechanism, LowNumbersFirst, " offers: numbering clients otherwise changes who is served, or at what price"),
    (check_mechanism, Overcharges, " offers: mechanism Overcharges.clear() ("),
    (check_mechanism, Tires, f"mechanism Tires, the paper's market: {RESTORED}"),
    (check_behaviour, TooNarrow, "behaviour TooNarrow, the paper's market: round 1: bids of "),
    (check_behaviour, Restless, f"behaviour Restless, the paper's market: bids(), {AGAIN}"),
    (check_cost, UpAndDown, "cost UpAndDown: a cost rises and falls as the EMD rises; it must go one way"),
    (check_cost, HidesItsSpeed, "cost HidesItsSpeed: uses_speed is False, but speed plays a part"),
    (check_response, WrongSlope, "response WrongSlope: respond() is not the best response: at a price of "),
    (check_response, RisesEverLess, "response RisesEverLess: respond() is not the best response: at a price of "),
    (check_response, TakesTheFirst, ", 0 leaves the client 0."),
    (check_aggregator, LastWins, "aggregator LastWins: numbering clients otherwise changes the model"),
    (
        check_aggregator,
        ForgetsItsVelocity,
        "aggregator ForgetsItsVelocity: a new object that has restored what state() returned does not go on as",
    ),
    (check_trigger, NeverDue, "trigger NeverDue: no model is ever due"),
    (check_trigger, CountsTwice, "trigger CountsTwice: 2.0 of an update of staleness 0 is not from 0 to 1"),
    (check_behaviour, LearnsInVain, f"behaviour LearnsInVain, the paper's market: {RESTORED}"),
]


@pytest.mark.parametrize(("check", "kind", "message"), BROKEN)
def test_the_message_says_which_contract_is_broken_and_where(
    check: Callable[[type], None], kind: type, message: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        check(kind)
    assert message in str(caught.value)


@pytest.mark.slow
def test_measures_of_the_product_and_one_of_ones_own_keep_their_contracts() -> None:
    @measure("paid-a-client", per_service="mean")
    def paid_a_client(run: RunTables) -> Any:
        """Money paid to each client that served; 0 where none did."""
        return run.offers.groupby("service")["paid"].mean().reindex(run.services).fillna(0.0)

    check_measure(paid_a_client)
    check_measure(ALL_MEASURES.load("envy"))


@pytest.mark.slow
def test_a_measure_that_breaks_its_contracts_is_named_with_the_market() -> None:
    @measure("price")
    def price(run: RunTables) -> float:
        """Mean price of what served; there is none where nothing did, which it does not say."""
        return float(run.offers["paid"].mean())

    @measure("counts", better="more")
    def counts(run: RunTables, asked: list[None] = []) -> float:  # noqa: B006 - a memory that it should not have
        """How often it was asked."""
        asked.append(None)
        return float(len(asked))

    beyond = Measure("beyond", "A share", 1, lambda run: {MARKET: 1.5}, limits=(0.0, 1.0))
    for broken, message in (
        (
            price,
            r"measure 'price', a market without money: measure 'price' of .*: must return a number or None, finite",
        ),
        (counts, r"measure 'counts', .*: asked the same again, it returns something else"),
        (beyond, r"measure 'beyond', the paper's market: 1\.5 is not within 0\.0 to 1\.0"),
        (len, r"<built-in function len> is no measure; put @flmarket\.measure\(NAME\) on a function"),
    ):
        with pytest.raises(AssertionError, match=message):
            check_measure(cast(Any, broken))
