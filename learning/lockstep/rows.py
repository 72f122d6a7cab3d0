"""Observations and actions of all services of all markets as flat buffers, one row for each, as learners take them.

A row is what ``learning.spaces.FlatCodec`` makes for one service of one market, to the last bit. Markets that are smaller
than the largest one fill its places and leave the others 0.
"""

import numpy as np

from des.money import MICRO
from fl.arrays import BoolArray, Float32Array, FloatArray, IntArray
from learning.lockstep.markets import TRAINING, WAITING, Lockstep, View
from learning.lockstep.templates import ENDLESS
from learning.projection import ActionError
from learning.spaces import bounds


class Rows:
    """Encodes and decodes the rows [B, M] of all services.

    Attributes:
        width: F, how many numbers an observation has.
    """

    def __init__(self, markets: Lockstep, payment_limit: float) -> None:
        """Take the bounds of all parts from the markets.

        Args:
            markets: whose services observe and act.
            payment_limit: the highest payment, in units of the bid.
        """
        self._markets, self._limit = markets, payment_limit
        kinds = markets.kinds
        c, m = kinds.clients, kinds.services
        self._totals = bool((kinds.total != ENDLESS).any())
        shapes = {"dqi": (c,), "bids": (m, c), "available": (c,), "budget": (1,), "cores": (1,), "accuracy": (1,), "progress": (1,)}
        if self._totals:
            shapes["total_left"] = (1,)
        self.width = sum(int(np.prod(shape)) for shape in shapes.values())
        low = {name: np.zeros((len(kinds.markets), m, *shape)) for name, shape in shapes.items()}
        high = {name: np.zeros((len(kinds.markets), m, *shape)) for name, shape in shapes.items()}
        for kind, market in enumerate(kinds.markets):
            for service in range(len(market.services)):
                for name, (least, most) in bounds(market, service).items():
                    place = (kind, service, *(slice(0, size) for size in least.shape))
                    low[name][place], high[name][place] = least, most
        width = {name: high[name] - low[name] for name in shapes}
        self._low = {name: part[kinds.of] for name, part in low.items() if part.any()}
        self._width = {name: np.where(part > 0, part, 1.0)[kinds.of] for name, part in width.items()}
        # Each service's own row of bids comes first, then its rivals' in their order.
        self._own_first = np.array([[own, *(rival for rival in range(m) if rival != own)] for own in range(m)])

    def observe(self, view: View, budget: FloatArray) -> Float32Array:
        """Return what all services observe in an open round, [B, M, F] in [0, 1].

        Args:
            view: the round.
            budget: [B, M] what each may offer, money.
        """
        markets, kinds = self._markets, self._markets.kinds
        present = view.asked if view.asked.all() else self._present(view)
        bids = np.where(present[:, :, None], view.asks / MICRO, 0.0)
        online = kinds.online(view.round)
        shape = budget.shape
        parts: dict[str, FloatArray | BoolArray] = {
            "dqi": view.dqi,
            "bids": bids[:, self._own_first],
            "available": np.broadcast_to(online[:, None], (*shape, online.shape[1])),
            "budget": budget[..., None],
            "cores": np.broadcast_to(view.cores[:, None, None].astype(np.float64), (*shape, 1)),
            "accuracy": markets.curves.accuracy[..., None],
            "progress": np.broadcast_to((markets.round / kinds.rounds)[:, None, None], (*shape, 1)),
        }
        if self._totals:
            left = markets.total_left
            parts["total_left"] = np.where(kinds.total == ENDLESS, 0.0, left / MICRO)[..., None]
        rows = np.empty((*shape, self.width), dtype=np.float32)
        at = 0
        for name, part in parts.items():
            width = int(np.prod(part.shape[2:]))
            values = part - self._low[name] if name in self._low else part
            rows[..., at : at + width] = (values / self._width[name]).reshape(*shape, width)
            at += width
        rows[~kinds.exists] = 0.0
        if not kinds.there.all():
            self._clear_absent(rows)
        return rows

    def act(self, actions: FloatArray, view: View) -> tuple[BoolArray, FloatArray]:
        """Return the clients wanted [B, M, C] and their payments [B, M, C], in units of their bids.

        Args:
            actions: [B, M, 2 C] in [-1, 1]; rows of services that do not take part are not looked at.
            view: the open round.

        Raises:
            ActionError: an action has another shape, or values out of range.
        """
        shape = view.asks.shape
        wanted = (*shape[:2], 2 * shape[2])
        if actions.shape != wanted:
            raise ActionError(f"actions must have the shape {wanted}, not {actions.shape}")
        values = np.asarray(actions, dtype=np.float64)
        if not (np.abs(values) <= 1)[view.asked].all():
            raise ActionError("an action's values must lie between -1 and 1")
        c = shape[2]
        select, payment = values[..., :c] > 0, 1 + (values[..., c:] + 1) / 2 * (self._limit - 1)
        return select & view.asked[..., None], np.minimum(payment, self._limit)

    def _present(self, view: View) -> BoolArray:
        """Return whether each service is there in the round, [B, M], though its market may be over."""
        markets = self._markets
        arrives: BoolArray = (markets.status == WAITING) & (markets.kinds.arrival <= view.round[:, None])
        return (markets.status == TRAINING) | arrives

    def _clear_absent(self, rows: Float32Array) -> None:
        """Put 0 in the places of clients that smaller markets do not have."""
        kinds = self._markets.kinds
        m, absent = kinds.services, ~kinds.there
        for part in range(m + 2):  # DQI, m rows of bids, who is available
            start = part * kinds.clients
            rows[..., start : start + kinds.clients][np.broadcast_to(absent[:, None], (len(absent), m, kinds.clients))] = 0.0


def money(amount: IntArray) -> FloatArray:
    """Return amounts in micro-units as money."""
    found: FloatArray = amount / MICRO
    return found
