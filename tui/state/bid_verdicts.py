"""The order book of a round: every client's bid to every service, what was offered, who won, and the reason."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from des.log_records import OfferReport, Outcome
from des.mechanism import DEFAULT
from des.money import Micro
from des.observation import Status
from flmarket.analysis.what_if.possible import MOST_CLIENTS, Possible, possible, prices_of, under_changes, worth
from flmarket.analysis.what_if.reasons import at_work, cash, holders, not_served, span
from scenarios.logs.reading import LoggedRound
from scenarios.world import World


class BidVerdict(Enum):
    """The outcome for a client and a service in a round. Its value is the sign on the screen, which needs no colour."""

    SERVED = "●"
    OUTBID = "×"
    AT_WORK = "▶"
    DROPPED = "!"
    DECLINED = "-"
    UNWANTED = "·"
    MISFIT = "∘"
    OFFLINE = "z"
    LEFT = " "


ORDER = (
    BidVerdict.SERVED,
    BidVerdict.DROPPED,
    BidVerdict.DECLINED,
    BidVerdict.OUTBID,
    BidVerdict.AT_WORK,
    BidVerdict.UNWANTED,
    BidVerdict.MISFIT,
    BidVerdict.OFFLINE,
    BidVerdict.LEFT,
)
"""Verdicts, the most telling first: the order of the lines."""

MOST_UNASKED = 200
"""Clients times services of a market for which best sets are worked out unasked: those of `paper` take 1 ms a round."""

OUTCOMES = {outcome: BidVerdict[outcome.name] for outcome in Outcome}

WORDS = {
    BidVerdict.SERVED: "served",
    BidVerdict.OUTBID: "outbid",
    BidVerdict.AT_WORK: "at work",
    BidVerdict.DROPPED: "dropped",
    BidVerdict.DECLINED: "declined",
    BidVerdict.UNWANTED: "not chosen",
    BidVerdict.MISFIT: "does not fit",
    BidVerdict.OFFLINE: "offline",
    BidVerdict.LEFT: "service absent",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One client's bid to one service, and its outcome. Money in micro-units."""

    service: int
    client: int
    data_size: int
    emd: float
    dqi: float
    bid: Micro
    payment: Micro | None
    core: int | None
    verdict: BidVerdict
    reason: str


class RoundBook:
    """The order book of one round."""

    def __init__(
        self,
        logged: LoggedRound,
        world: World,
        earlier: Callable[[int], LoggedRound] | None = None,  # returns an earlier round; needed where clients learn
        carried: Sequence[OfferReport] = (),  # the offers whose clients are still at work as the round begins
    ) -> None:
        self.logged = logged  # the round's records
        # the data, DQI and bids, [M, C], as services see them
        slot = world.slot_of(logged.number, lambda: logged.events[0].sim_time)
        self.qualities = world.qualities(slot, earlier and (lambda number: earlier(number).offers))
        self.conditions = world.conditions(logged.number, slot)  # the budgets, K and who is offline
        self.mechanism, self._once = world.mechanism(logged.number), world.once
        self._respond = world.respond
        self.value_sets = world.value_sets(logged.number)  # whether each service values clients as a set
        places = {row.service: m for m, row in enumerate(logged.services)}
        self._offers = {(places[offer.service], offer.client): offer for offer in logged.offers}
        self._of_service: dict[int, list[OfferReport]] = {}
        for offer in logged.offers:
            self._of_service.setdefault(places[offer.service], []).append(offer)
        self._of_client: dict[int, list[tuple[int, OfferReport]]] = {}
        for (place, client), offer in self._offers.items():
            self._of_client.setdefault(client, []).append((place, offer))
        self.holders = holders((*carried, *logged.offers))
        self._carried = {(places[job.service], job.client): job for job in carried}
        self._expired = logged.end
        self._takes_part = [row.status.takes_part for row in logged.services]
        self._remaining = [row.budget - row.offered for row in logged.services]

    def remaining(self, service: int) -> Micro:
        """Return what is left of a service's budget after its offers."""
        return self._remaining[service]

    @property
    def paper(self) -> bool:
        """Whether the paper's mechanism clears the round, by the payments."""
        return self.mechanism == DEFAULT

    @property
    def clients(self) -> int:
        return int(self.qualities.bid.shape[1])

    def cores(self, client: int) -> int:
        own = self.conditions.cores_of
        return self.conditions.cores if own is None else int(own[client])

    def offer(self, service: int, client: int) -> OfferReport | None:
        """Return a service's offer to a client, if it made one."""
        return self._offers.get((service, client))

    def verdict(self, service: int, client: int) -> BidVerdict:
        return ORDER[self.verdicts[service, client]]

    @cached_property
    def verdicts(self) -> NDArray[np.int8]:
        """[M, C] the outcome for each service and client, as its place in ``ORDER``."""
        busy, unwanted, misfit, offline, left = (np.int8(place) for place in range(4, len(ORDER)))
        verdicts = np.where(self.qualities.bid <= np.array(self._remaining)[:, None], unwanted, misfit)
        if self.qualities.serves is not None:
            verdicts[~self.qualities.serves] = unwanted
        verdicts[:, list(self.conditions.offline)] = offline
        for place in self._carried:
            verdicts[place] = busy
        verdicts[~np.array(self._takes_part)] = left
        for (service, client), offer in self._offers.items():
            verdicts[service, client] = ORDER.index(OUTCOMES[offer.outcome])
        return verdicts

    @cached_property
    def _payments(self) -> NDArray[np.int64]:
        """[M, C] what is offered; -1 where there is no offer."""
        payments = np.full(self.qualities.bid.shape, -1, np.int64)
        for place, offer in self._offers.items():
            payments[place] = offer.payment
        return payments

    def line(self, service: int, client: int) -> Line:
        offer, world = self.offer(service, client), self.qualities
        verdict = self.verdict(service, client)
        return Line(
            service=service,
            client=client,
            data_size=int(world.data_size[service, client]),
            emd=float(world.emd[service, client]),
            dqi=float(world.dqi[service, client]),
            bid=int(world.bid[service, client]),
            payment=None if offer is None else offer.payment,
            core=None if offer is None else offer.core,
            verdict=verdict,
            reason=self._reason(verdict, service, client, offer),
        )

    def offers(self, client: int) -> Sequence[tuple[int, OfferReport]]:
        """Return the services that made a client an offer, by their places, each with it."""
        return self._of_client.get(client, ())

    def rivals(self, service: int, client: int) -> Iterator[tuple[int, OfferReport]]:
        """Yield the other services that made a client an offer, by their places, each with it."""
        return ((m, offer) for m, offer in self.offers(client) if m != service)

    def dearest(self, *, service: int | None = None, client: int | None = None) -> Micro:
        """Return the highest bid or offer in a service's book, or in a client's."""
        where = np.s_[service, :] if service is not None else np.s_[:, client]
        offers = self._payments if service is not None else self._payments[where]  # rivals' offers, too
        return int(max(self.qualities.bid[where].max(), offers.max()))

    def has_best(self, service: int) -> bool:
        """Whether ``best``, a sum of DQI, is worked out: for pay-as-offered, all of the work, not too many clients."""
        known = self.paper and not self._respond and self.clients <= MOST_CLIENTS
        return known and self._takes_part[service] and not self.value_sets[service]

    def best(self, service: int, *, budget: Micro = 0, cores: int = 0, without: str | None = None) -> Possible:
        """Return the best set within a service's budget, the rivals' offers being what they were.

        It takes a while with many clients. What is changed is as in ``explain.best_set``.
        """
        return possible(
            self.qualities.bid[service],
            self.qualities.dqi[service],
            [
                [(offer.client, offer.payment) for offer in offers]
                for name, offers in self._rivals(service)
                if name != without
            ],
            cores=self.conditions.capacity + cores,
            budget=self.logged.services[service].budget + budget,
            offline=self.conditions.offline,
            serves=None if self.qualities.serves is None else self.qualities.serves[service],
        )

    def under_changes(self, service: int) -> dict[str, Possible]:
        """Return the best sets with one thing changed each."""
        rivals = [name for name, _ in self._rivals(service)]
        return under_changes(partial(self.best, service), rivals, self.logged.services[service].budget)

    @cached_property
    def left(self) -> list[float | None]:
        """What each service left on the table: the DQI of its best set less that of what it got.

        None where that is not worked out, which it is unasked in small markets alone.
        """
        small = self.qualities.bid.size <= MOST_UNASKED
        return [
            self.best(m).quality - self.quality(m) if small and self.has_best(m) else None
            for m in range(len(self.logged.services))
        ]

    def _rivals(self, service: int) -> list[tuple[str, list[OfferReport]]]:
        names = [row.service for row in self.logged.services]
        return [(names[place], offers) for place, offers in self._of_service.items() if place != service]

    def price(self, service: int, client: int) -> Micro | None:
        """Return what wins a client for a service for sure; None where the mechanism is another than the paper's."""
        if not self.paper:
            return None
        bid = self.qualities.bid[service, client : client + 1]
        rivals = [[(0, offer.payment)] for _, offer in self.rivals(service, client)]
        return int(prices_of(bid, rivals, self.cores(client))[0])

    def served(self, service: int) -> dict[int, OfferReport]:
        """Return the offers of a service that were served, by their clients."""
        return {offer.client: offer for offer in self._of_service.get(service, ()) if offer.outcome is Outcome.SERVED}

    def quality(self, service: int) -> float:
        """Return what the clients that served a service are worth; what ``best`` is compared with."""
        return worth(offer.dqi for offer in self.served(service).values())

    def clients_of(
        self,
        service: int,  # its place
        # ``result`` (what happened, then the highest offer, then the lowest bid), or what comes before that: ``who``
        # (the place), ``bid``, ``offer`` (the highest first), ``dqi`` (the highest first), ``size`` (the largest first)
        # or ``emd``
        by: str = "result",
        *,
        offered: bool = False,  # whether to leave out those without an offer
    ) -> list[int]:
        """Return all clients in the order in which a service's book lists them."""
        return self._order(np.s_[service, :], by, offered=offered)

    def services_of(self, client: int, by: str = "result", *, offered: bool = False) -> list[int]:
        """Return all services in the order in which a client's book lists them; arguments as for ``clients_of``."""
        return self._order(np.s_[:, client], by, offered=offered)

    def _order(self, where: Any, by: str, *, offered: bool) -> list[int]:
        """Return places in order: of clients or services, ``where`` they are in [M, C]."""
        verdict, payment = self.verdicts[where], self._payments[where]
        world, places = self.qualities, np.arange(len(verdict))
        keys: list[NDArray[Any]] = [places, world.bid[where], -payment, verdict]  # the last decides
        first = {
            "who": places,
            "bid": world.bid[where],
            "offer": -payment,
            "dqi": -world.dqi[where],
            "size": -world.data_size[where],
            "emd": world.emd[where],
        }
        if by in first:
            keys.append(first[by])
        order = np.lexsort(keys)
        return [int(place) for place in (order[payment[order] >= 0] if offered else order)]

    def _reason(self, verdict: BidVerdict, service: int, client: int, offer: OfferReport | None) -> str:
        bid = int(self.qualities.bid[service, client])
        match verdict:
            case BidVerdict.LEFT if self.logged.services[service].status is Status.WAITING:
                return "the service has not arrived"
            case BidVerdict.LEFT:
                return "the service has left"
            case BidVerdict.OFFLINE:
                return "the client is offline in this round"
            case BidVerdict.AT_WORK:
                return at_work(self._carried[service, client])
            case BidVerdict.UNWANTED if (
                self.qualities.serves is not None and not self.qualities.serves[service, client]
            ):
                return "it does not serve this service"
            case BidVerdict.UNWANTED | BidVerdict.MISFIT if not self._once:
                return "not chosen, or not available when the service decided"
            case BidVerdict.UNWANTED:
                return "not chosen, though it fits the remaining budget"
            case BidVerdict.MISFIT if bid > self.logged.services[service].budget:
                return f"it asks more than the whole budget: {cash(bid)} > {cash(self.logged.services[service].budget)}"
            case BidVerdict.MISFIT:
                return "it does not fit the remaining budget"
        assert offer is not None  # noqa: S101 - the other verdicts follow from an offer
        if verdict is BidVerdict.SERVED:
            return self._won(offer)
        holding, cores, there = self.holders.get(client, []), self.cores(client), self.conditions.availability
        worked = None if offer.start is None or offer.end is None else offer.end - offer.start
        gone = there is not None and offer.start is not None and worked == there.cut(client, offer.start)
        return not_served(offer, holding, self.mechanism, cores, self._expired, gone=gone)

    def _won(self, offer: OfferReport) -> str:
        price = offer.payment if offer.paid is None else offer.paid
        over = price - offer.bid
        amount = f"{cash(abs(over), price)} {'over' if over > 0 else 'below'}"
        when = f" {span(offer)}" if self.logged.goes_on else ""
        won = f"core {offer.core}{when}, " + ("paid its bid" if not over else f"paid {amount} its bid")
        if not self.paper:
            return won
        beaten = [other for _, other in self._of_client[offer.client] if other.outcome is Outcome.OUTBID]
        if not beaten:
            return f"{won}; no one was outbid"
        best = max(beaten, key=lambda other: other.payment)
        if best.payment < offer.payment:
            compared = f"{cash(offer.payment, best.payment)} > {cash(best.payment, offer.payment)}"
            return f"{won}; outbid {best.service}: {compared}"
        return f"{won}; won the draw against {best.service}"
