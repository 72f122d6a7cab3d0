"""Bidding: how offers come in, step by step, and whose money they hold."""

from collections.abc import Mapping

from des.clearing import Platform
from des.ledger import Ledger
from des.log_records import Kind
from des.money import Micro
from des.observation import Offer
from des.offer_checks import check_offer
from des.round import Round


class Bidding:
    """Takes the offers of a round, and finds out who may offer again."""

    def __init__(self, platform: Platform, ledger: Ledger) -> None:
        self._platform, self._ledger = platform, ledger

    def take(
        self,
        current: Round,  # the round; nothing in it has changed if an offer is refused
        offers: Mapping[str, Offer],  # one from each service that was asked, by name
    ) -> None:
        """Check the offers of one step, hold their money, and set who may offer next."""
        over_budget = self._platform.mechanism.keeps_budgets
        left = self.left(current)
        checked = {
            m: check_offer(
                offers[current.services[m].name],
                policy=current.services[m].policy,
                service=current.services[m].name,
                round_=current.number,
                bids=current.asks.least[m],
                budget=left[m],
                offline=current.conditions.offline,
                unwilling=current.unwilling(m),
                over_budget=over_budget,
            )
            for m in current.asked
        }
        for m, offer in checked.items():
            name = current.services[m].name
            self._ledger.hold(name, left[m] if over_budget else offer.total)
            current.journal.record(Kind.DECISION, name, amount=offer.total)
            current.offers[m] = current.offers[m].and_then(offer) if m in current.offers else offer
        current.step += 1
        current.asked = ()
        if current.step < self._platform.mechanism.steps:
            current.asked = self._again(current)

    def left(self, current: Round) -> dict[int, Micro]:
        """Return what each service that may offer can still spend in the round, micro-units."""
        return {m: self._ledger.accounts[current.services[m].name].free for m in current.asked}

    def _again(self, current: Round) -> tuple[int, ...]:
        """Release the money of offers that have been refused in the last step; return whose."""
        again, over_budget = [], self._platform.mechanism.keeps_budgets
        for m, places in self._platform.refused(current).items():
            offer = current.offers[m]
            lost = frozenset(offer.clients[places].tolist())
            if new := lost - current.lost.get(m, frozenset()):
                name = current.services[m].name
                payments = dict(zip(offer.clients.tolist(), offer.payments.tolist(), strict=True))
                # Where the mechanism keeps budgets, what is held is the budget, not the sum of the offers.
                freed = self._ledger.accounts[name].held if over_budget else sum(payments[client] for client in new)
                self._ledger.release(name, freed)
                again.append(m)
            current.lost[m] = lost
        return tuple(again)
