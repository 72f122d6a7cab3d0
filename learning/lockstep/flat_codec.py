"""Observations and actions of all services of all markets as flat buffers, one row for each, as learners take them.

A row is what ``learning.environments.spaces.FlatCodec`` makes for one service of one market, to the last bit. Markets
that are smaller than the largest one fill its places and leave the others 0.
"""

from typing import Any

import numpy as np

from des.money import MICRO
from fl.arithmetic.native import extension
from fl.arrays import AnyArray, BoolArray, Float32Array, FloatArray, IntArray
from learning.environments.projection import ActionError
from learning.environments.spaces import Scale, unit_payments
from learning.lockstep.lockstep import TRAINING, WAITING, Lockstep, View
from learning.lockstep.market_kinds import ENDLESS
from learning.seats import bounds_of

_native = extension("observe", "decode")


class FlatRows:
    """Encodes and decodes the rows [B, M] of all services."""

    def __init__(
        self,
        markets: Lockstep,  # whose services observe and act
        payment_limit: float,  # the highest payment, in units of the bid
    ) -> None:
        self._markets, self._limit = markets, payment_limit
        kinds = markets.kinds
        self._last = ["budget", "cores", "accuracy", "progress"]
        if (kinds.total != ENDLESS).any():
            self._last.append("total_left")
        self._grid = (kinds.services + 2) * kinds.clients  # DQI, each service's bids, who is available
        self.width = self._grid + len(self._last)  # F, how many numbers an observation has
        limits = [[bounds_of(market, m) for m in range(len(market.services))] for market in kinds.markets]
        dqi, bids = [], []
        for market, own in zip(kinds.markets, limits, strict=True):
            pairs = market.population.pairs
            for m, parts in enumerate(own):
                dqi.append(Scale.between(*(part[0] for part in parts["dqi"]))(pairs.dqi[0, m]))
                # A service's own row of bids comes first, and is scaled alike in every row.
                bids.append(Scale.between(*(part[0, 0] for part in parts["bids"]))(pairs.cost[0, m] / MICRO))
        self._dqi, self._bids = np.concatenate(dqi), np.concatenate(bids)  # of each pair that clients can hold
        self._scales: dict[str, Scale] = {}
        for name in self._last:
            found = [[parts.get(name, (np.zeros(1), np.ones(1))) for parts in own] for own in limits]
            low, high = (
                kinds.per_service([[float(part[bound][0]) for part in own] for own in found], absent=0.0)
                for bound in (0, 1)
            )
            self._scales[name] = Scale.between(low, high)

    def observe(
        self,
        view: View,  # the round
        budget: FloatArray,  # [B, M] what each may offer, money
    ) -> Float32Array:
        """Return what all services observe in an open round, [B, M, F] in [0, 1]."""
        markets, kinds = self._markets, self._markets.kinds
        (b, m), c = budget.shape, kinds.clients
        rows, present = np.empty((b, m, self.width), dtype=np.float32), self._present(view.round)
        if _native is not None:
            _native.observe(b, m, view.world.at, self._dqi, self._bids, present, rows)
        else:
            self._copy(rows, view.world.at, present)
        rows[..., self._grid - c : self._grid] = kinds.online(view.round)[:, None]  # from 0 to 1 by themselves
        last: dict[str, Any] = {
            "budget": budget,
            "cores": view.cores[:, None],
            "accuracy": markets.curves.accuracy,
            "progress": (markets.round / kinds.rounds)[:, None],
        }
        if "total_left" in self._last:
            last["total_left"] = np.where(kinds.total == ENDLESS, 0.0, markets.total_left / MICRO)
        for place, name in enumerate(self._last, self._grid):
            rows[..., place] = self._scales[name](last[name])
        if not kinds.there.all():
            rows[..., : self._grid].reshape(b, m, m + 2, c)[...] *= kinds.there[:, None, None]
        if not kinds.exists.all():
            rows[~kinds.exists] = 0.0
        return rows

    def _copy(self, rows: Float32Array, at: IntArray, present: BoolArray) -> None:
        """Put in DQI, own bids and those of the others."""
        b, m, c = at.shape
        bids = self._bids.take(at) * present[..., None]
        rows[..., :c] = self._dqi.take(at)
        for own in range(m):
            rows[:, own, c : 2 * c] = bids[:, own]
            rows[:, own, 2 * c : (1 + m) * c] = np.delete(bids, own, axis=1).reshape(b, -1)

    def act(
        self,
        actions: AnyArray,  # [B * M, 2 C] in [-1, 1]; rows of services that do not take part are not looked at
        view: View,  # the open round
    ) -> tuple[BoolArray, FloatArray]:
        """Return the clients wanted [B, M, C] and their payments [B, M, C], in units of their bids."""
        c = view.bids.shape[2]
        wanted = view.asked.size, 2 * c
        if actions.shape != wanted:
            raise ActionError(f"actions must have the shape {wanted}, not {actions.shape}")
        if actions.dtype.kind not in "biuf":  # NumPy would read text, dates and the real parts of complex numbers
            raise ActionError(f"actions must be real numbers, not {actions.dtype}")
        values = np.ascontiguousarray(actions, dtype=np.float64).reshape(*view.asked.shape, 2 * c)
        there = self._markets.kinds.there
        if _native is not None:
            select, payment = np.empty(view.bids.shape, dtype=np.bool_), np.empty(view.bids.shape)
            proper = _native.decode(values, view.asked, there, self._limit, select, payment)
        else:
            proper = (np.abs(values) <= 1)[view.asked].all()
            select = (values[..., :c] > 0) & view.asked[..., None] & there[:, None]
            payment = unit_payments(values[..., c:], self._limit)
        if not proper:
            wrong = (~(np.abs(values) <= 1) & view.asked[..., None]).reshape(-1, 2 * c)
            row, place = np.argwhere(wrong)[0].tolist()
            raise ActionError(
                f"an action's values must lie between -1 and 1; value {place} of row {row} is "
                f"{values.reshape(wrong.shape)[row, place]:g}"
            )
        return select, payment

    def _present(self, number: IntArray) -> BoolArray:
        """Return whether each service would be there in round ``number[b]``, [B, M], though its market may be over."""
        status = self._markets.status
        there: BoolArray = status == TRAINING
        there |= (status == WAITING) & (self._markets.kinds.arrival <= number[:, None])
        return there
