"""Posted prices: the platform names a price per sample, services choose, then clients where too many want them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from des.allocation import NO_CORE, allocate
from des.mechanism import Asks, Book, Clearing, Mechanism
from des.money import MICRO, MicroArray, text, to_micro
from fl.arrays import BoolArray, IntArray
from flmarket.core.plugin_options import in_range

__all__ = ["PostedPrice"]


class PostedPrice(Mechanism):
    """Every service pays the posted price per sample, whatever it offers; clients that ask for more do not serve it.

    Where more services want a client than it has cores, it serves those that leave it the most above its bid; a keyed
    draw breaks ties. With ``step`` the price follows demand, in the manner of Walras's auctioneer: after each round it
    rises by up to that share if offers were refused, and falls if cores were left idle.

    As neither side's word moves the price of the round, no client gains by a bid other than its cost, and no service
    whose budget does not bind by an offer other than what it wants, as long as ``step`` is 0 (see
    docs/mechanisms/posted-price.md). If a draw alone decided, a client would gain by asking too much of those services
    that cost it the most.
    """

    summary = "the platform posts a price per sample; services choose, then clients, and a draw breaks ties"

    def __init__(
        self,
        *,
        price_per_sample: float,  # of the first round, money per image
        step: float = 0.0,  # by which share of it the price moves at most from one round to the next, in [0, 1)
        least: float = 0.0,  # it stays at or above this, money per image
        most: float = 1000.0,  # and at or below this
    ) -> None:
        amounts = {"price_per_sample": price_per_sample, "least": least, "most": most}
        for name, value in amounts.items():
            if round(in_range(name, value, 0, MICRO), 6) != value:
                raise ValueError(f"{name} has more than six decimals: {value!r}")
        if not least <= price_per_sample <= most:
            raise ValueError(f"price_per_sample must be between least and most, not {price_per_sample}")
        self._step = in_range("step", step, 0, 1, below=True)
        self._least, self._most = to_micro(least), to_micro(most)
        self.price = to_micro(price_per_sample)
        self._willing: BoolArray = np.zeros(1, dtype=np.bool_)  # [C] whether a client serves anyone

    def ask(self, bids: MicroArray, data_size: IntArray) -> Asks:
        """Return the posted price of every client's data; who asks for more is not willing."""
        posted = self.price * data_size
        willing = posted >= bids
        self._willing = np.asarray(willing.any(axis=0))
        return Asks(posted, willing)

    def clear(self, book: Book) -> Clearing:
        # A higher offer brings no better chance.
        gain = book.asks - book.bids
        return Clearing(allocate(book.services, book.clients, gain, book.capacity, book.tie_order), book.asks)

    def close(self, book: Book, clearing: Clearing) -> None:
        """Let the price follow demand: by the share of offers refused, less that of willing clients' idle cores."""
        offers, served = len(book.clients), int((clearing.core != NO_CORE).sum())
        supply = int((self._willing * book.capacity).sum())
        refused = (
            (offers - served) / offers if offers else float(not supply)
        )  # a price at which no client serves is too low
        idle = (supply - served) / supply if supply else 0.0
        moved = round(self.price * (1 + self._step * (refused - idle)))
        self.price = min(max(moved, self._least), self._most)

    def state(self) -> Mapping[str, Any]:
        return {"price": text(self.price)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.price = to_micro(float(state["price"]))
