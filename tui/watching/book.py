"""The order book of a round: every client's bid to every service, what was offered, who won, and the reason."""

from dataclasses import dataclass
from enum import Enum

from des.mechanisms import DEFAULT
from des.money import MICRO, Micro
from des.records import OfferReport, Outcome, Status
from scenarios.logs.reading import LoggedRound
from scenarios.world import World


class Verdict(Enum):
    """The outcome for a client and a service in a round. Its value is the sign on the screen, which needs no colour."""

    SERVED = "●"
    OUTBID = "×"
    DROPPED = "!"
    UNWANTED = "·"
    MISFIT = "∘"
    OFFLINE = "z"
    LEFT = " "


WORDS = {
    Verdict.SERVED: "served",
    Verdict.OUTBID: "outbid",
    Verdict.DROPPED: "dropped",
    Verdict.UNWANTED: "not chosen",
    Verdict.MISFIT: "does not fit",
    Verdict.OFFLINE: "offline",
    Verdict.LEFT: "service left",
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
    verdict: Verdict
    reason: str


class Book:
    """The order book of one round."""

    def __init__(self, logged: LoggedRound, world: World) -> None:
        self._logged = logged
        self.qualities = world.qualities(logged.number)
        self.conditions = world.conditions(logged.number)
        self._mechanism = world.mechanism
        self._names = [row.service for row in logged.services]
        places = {name: m for m, name in enumerate(self._names)}
        self._offers = {(places[offer.service], offer.client): offer for offer in logged.offers}
        # The offers that hold each client's cores, the lowest payment last.
        self.holders: dict[int, list[OfferReport]] = {}
        for offer in logged.offers:
            if offer.core is not None:
                self.holders.setdefault(offer.client, []).append(offer)
        for holders in self.holders.values():
            holders.sort(key=lambda offer: offer.core or 0)
        self._takes_part = [row.status is not Status.LEFT for row in logged.services]
        self._remaining = [row.budget - row.offered for row in logged.services]

    @property
    def clients(self) -> int:
        """The number of clients, C."""
        return int(self.qualities.bid.shape[1])

    def offer(self, service: int, client: int) -> OfferReport | None:
        """Return a service's offer to a client, if it made one."""
        return self._offers.get((service, client))

    def verdict(self, service: int, client: int) -> Verdict:
        """Return the outcome for a client and a service."""
        offer = self._offers.get((service, client))
        if offer is not None:
            return {
                Outcome.SERVED: Verdict.SERVED,
                Outcome.OUTBID: Verdict.OUTBID,
                Outcome.DROPPED: Verdict.DROPPED,
            }[offer.outcome]
        if not self._takes_part[service]:
            return Verdict.LEFT
        if client in self.conditions.offline:
            return Verdict.OFFLINE
        if self.qualities.bid[service, client] > self._remaining[service]:
            return Verdict.MISFIT
        return Verdict.UNWANTED

    def line(self, service: int, client: int) -> Line:
        """Return one line of the book."""
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

    def of_service(self, service: int) -> list[Line]:
        """Return a service's book: one line for each client."""
        return [self.line(service, client) for client in range(self.clients)]

    def of_client(self, client: int) -> list[Line]:
        """Return a client's book: one line for each service."""
        return [self.line(service, client) for service in range(len(self._names))]

    def _reason(self, verdict: Verdict, service: int, client: int, offer: OfferReport | None) -> str:
        bid = int(self.qualities.bid[service, client])
        match verdict:
            case Verdict.LEFT:
                return "the service reached its target and left"
            case Verdict.OFFLINE:
                return "the client is offline in this round"
            case Verdict.UNWANTED:
                return (
                    f"the policy chose others; {cash(bid)} fits the remaining budget {cash(self._remaining[service])}"
                )
            case Verdict.MISFIT if bid > self._logged.services[service].budget:
                return f"asks more than the whole budget: {cash(bid)} > {cash(self._logged.services[service].budget)}"
            case Verdict.MISFIT:
                return f"does not fit the remaining budget {cash(self._remaining[service])}"
        assert offer is not None  # noqa: S101 - the other verdicts follow from an offer
        if verdict is Verdict.SERVED:
            return self._won(offer)
        if verdict is Verdict.DROPPED:
            return "awarded a core, but its update did not arrive in time; not paid"
        if self._mechanism != DEFAULT:  # only the paper's is known to go by the payments
            return f"refused by the mechanism {self._mechanism}"
        if client not in self.holders:  # in a log that was changed
            return "outbid, but the log names no service that has a core of the client"
        lowest = self.holders[client][-1]
        if offer.payment < lowest.payment:
            paid, more = cash(offer.payment, lowest.payment), cash(lowest.payment, offer.payment)
            return f"outbid by {lowest.service}: {paid} < {more}"
        return f"lost the draw against {lowest.service}, which pays {cash(offer.payment)} too"

    def _won(self, offer: OfferReport) -> str:
        price = offer.payment if offer.paid is None else offer.paid
        over = price - offer.bid
        won = f"core {offer.core}, " + ("paid its bid" if not over else f"paid {cash(over, price)} over its bid")
        if self._mechanism != DEFAULT:
            return won
        beaten = [
            other
            for m in range(len(self._names))
            if (other := self._offers.get((m, offer.client))) is not None and other.outcome is Outcome.OUTBID
        ]
        if not beaten:
            return f"{won}; nobody was outbid"
        best = max(beaten, key=lambda other: other.payment)
        if best.payment < offer.payment:
            compared = f"{cash(offer.payment, best.payment)} > {cash(best.payment, offer.payment)}"
            return f"{won}; outbid {best.service}: {compared}"
        return f"{won}; won the draw against {best.service}"


def cash(amount: Micro, beside: Micro | None = None) -> str:
    """Write money with two decimals, or with as many as distinguish it from another amount."""
    for decimals in range(2, 6):
        text = f"{amount / MICRO:.{decimals}f}"
        distinct = beside is None or amount == beside or text != f"{beside / MICRO:.{decimals}f}"
        if distinct and (amount == 0 or float(text)):
            return text
    return f"{amount / MICRO:.6f}"
