"""Contracts over rounds: who has served once is hired for the rounds that follow, at the price that it was paid then.

A client that is under a contract cannot be offered anything, by any service, until its last contract is over. Where its
contracts end early, because a service leaves, the service pays a share of what they would have brought. See
docs/contracts.md.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from des.money import MICRO, Micro, to_micro
from fl.arrays import BoolArray, IntArray, read_only


class ContractTerms(NamedTuple):
    """The terms on which all services of a market hire."""

    rounds: int = 1  # for how many rounds, the one of the offer included; 1: for that round alone, as in the paper
    cancel_fee: float = 0.0  # the share of what is outstanding that a service pays which leaves early


class Contract(NamedTuple):
    """What a service and a client are bound to. Both are indices; money is in micro-units."""

    service: int
    client: int
    core: int
    price: Micro  # of each round
    last: int  # the last round


class Contracts:
    """The contracts in force."""

    def __init__(self, terms: ContractTerms, rounds: int) -> None:
        self.terms, self._rounds = terms, rounds
        self._fee = to_micro(terms.cancel_fee)
        self._held: list[Contract] = []

    def length(self, number: int) -> int:
        """Return for how many rounds an offer of a round binds: no contract goes on after the last round."""
        return max(1, min(self.terms.rounds, self._rounds - number + 1))

    def due(self, offline: Collection[int]) -> tuple[Contract, ...]:
        """Return the contracts that are served in the next round: a client that is offline is not paid for it."""
        return tuple([it for it in self._held if it.client not in offline])

    def outstanding(self, number: int) -> dict[int, Micro]:
        """Return what services are to pay from a round on, by their index."""
        return total_of((it.service, it.price * (it.last - number + 1)) for it in self._held)

    def open_clients(self, serves: BoolArray | None, shape: tuple[int, int]) -> BoolArray | None:
        """Return who can serve whom [M, C], given who could without contracts; None if all can."""
        if not self._held:
            return serves
        mask = np.ones(shape, dtype=np.bool_) if serves is None else serves.copy()
        mask[:, [it.client for it in self._held]] = False
        return read_only(mask)

    def sign(self, number: int, service: int, served: Iterable[tuple[int, int, Micro]]) -> None:
        """Hire those who have served a service on its offers of a round: the client, its core and what it was paid."""
        if (last := number + self.length(number) - 1) > number:
            self._held += [Contract(service, *of, last) for of in served]

    def cancel(self, number: int, service: int) -> list[tuple[int, Micro]]:
        """End a service's contracts after a round; return its clients, and the fee that each has from it."""
        ended = [it for it in self._held if it.service == service and it.last > number]
        self._held = [it for it in self._held if it.service != service]
        return [(it.client, it.price * (it.last - number) * self._fee // MICRO) for it in ended]

    def end_round(self, number: int) -> None:
        """Let contracts end whose last round is over."""
        self._held = [it for it in self._held if it.last > number]

    def state(self) -> list[list[int]]:
        """Return the contracts as plain data."""
        return [list(it) for it in self._held]

    def restore(self, state: Iterable[Sequence[int]]) -> None:
        self._held = [Contract(*it) for it in state]


def with_contracts(columns: Sequence[IntArray], owed: Sequence[tuple[int, ...]]) -> list[IntArray]:
    """Return columns of offers, their services first, with rows of contracts, which come last of each service."""
    if not owed:
        return list(columns)
    both = [np.concatenate(pair) for pair in zip(columns, np.array(owed).T, strict=True)]
    order = both[0].argsort(kind="stable")
    return [column[order] for column in both]


def total_of(amounts: Iterable[tuple[Any, Micro]]) -> dict[Any, Micro]:
    """Return the sum of the amounts of each key."""
    totals: dict[Any, Micro] = {}
    for key, amount in amounts:
        totals[key] = totals.get(key, 0) + amount
    return totals
