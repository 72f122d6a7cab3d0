"""Observations and actions of all services of all markets as flat buffers, one row for each, as learners take them.

A row is what ``learning.spaces.FlatCodec`` makes for one service of one market, to the last bit. Markets that are
smaller than the largest one fill its places and leave the others 0.
"""

from typing import Any

import numpy as np

from des.money import MICRO
from fl.arrays import AnyArray, BoolArray, Float32Array, FloatArray, IntArray
from fl.native import extension
from learning.lockstep.markets import Lockstep
from learning.lockstep.rounds import TRAINING, WAITING, View
from learning.lockstep.templates import ENDLESS
from learning.projection import ActionError
from learning.spaces import bounds

_native = extension("observe", "decode")

OUT_OF_RANGE = "an action's values must lie between -1 and 1"


class Scale:
    """Scales values [B, M, C] from the bounds of each market's services to [0, 1], in single precision."""

    def __init__(self, low: FloatArray, width: FloatArray, of: IntArray) -> None:
        """Keep the bounds [T, M] of all kinds of markets, and the kind [B] of each market."""
        self._low, self._width, self._of = low[:, :, None], width[:, :, None], of

    def of_all(self, values: FloatArray) -> Float32Array:
        """Return values [B, M, C] of all markets."""
        scaled: Float32Array = ((values - self._low[self._of]) / self._width[self._of]).astype(np.float32)
        return scaled

    def of_kind(self, kind: int, values: FloatArray) -> Float32Array:
        """Return values [services, any] of one kind."""
        count = len(values)
        scaled: Float32Array = ((values - self._low[kind, :count]) / self._width[kind, :count]).astype(np.float32)
        return scaled


class Rows:
    """Encodes and decodes the rows [B, M] of all services."""

    def __init__(
        self,
        markets: Lockstep,  # whose services observe and act
        payment_limit: float,  # the highest payment, in units of the bid
    ) -> None:
        self._markets, self._limit = markets, payment_limit
        kinds = markets.kinds
        c, m = kinds.clients, kinds.services
        self._totals = bool((kinds.total != ENDLESS).any())
        shapes: dict[str, tuple[int, ...]] = {
            "dqi": (c,),
            "bids": (m, c),
            "available": (c,),
            "budget": (1,),
            "cores": (1,),
            "accuracy": (1,),
            "progress": (1,),
        }
        if self._totals:
            shapes["total_left"] = (1,)
        self.width = sum(int(np.prod(shape)) for shape in shapes.values())  # F, how many numbers an observation has
        low, width = ({name: np.zeros((len(kinds.markets), m, *shape)) for name, shape in shapes.items()} for _ in "lw")
        for kind, market in enumerate(kinds.markets):
            for service in range(len(market.services)):
                for name, (least, most) in bounds(market, service).items():
                    place: Any = (kind, service, *(slice(0, size) for size in least.shape))
                    low[name][place], width[name][place] = least, most - least
        width = {name: np.where(part > 0, part, 1.0) for name, part in width.items()}
        # A service's own row of bids comes first, and none is scaled by who observes it.
        self._dqi = Scale(low["dqi"][:, :, 0], width["dqi"][:, :, 0], kinds.of)
        self._bid = Scale(low["bids"][:, :, 0, 0], width["bids"][:, :, 0, 0], kinds.of)
        self._rest = {
            name: (low[name][kinds.of, :, 0], width[name][kinds.of, :, 0])
            for name in shapes
            if name not in {"dqi", "bids", "available"}
        }
        public = [market.population.spec.disclosure.public_bids for market in kinds.markets]
        self._hidden = ~np.array(public)[kinds.of]
        self._tables: tuple[Float32Array, Float32Array] | None = None
        if markets.drawn_together:
            pairs = [market.population.pairs for market in kinds.markets]
            self._tables = (
                np.concatenate([self._dqi.of_kind(kind, it.dqi).ravel() for kind, it in enumerate(pairs)]),
                np.concatenate([self._bid.of_kind(kind, it.bid / MICRO).ravel() for kind, it in enumerate(pairs)]),
            )

    def observe(
        self,
        view: View,  # the round
        budget: FloatArray,  # [B, M] what each may offer, money
    ) -> Float32Array:
        """Return what all services observe in an open round, [B, M, F] in [0, 1]."""
        markets, kinds = self._markets, self._markets.kinds
        (b, m), c = budget.shape, kinds.clients
        rows, present = np.empty((b, m, self.width), dtype=np.float32), self._present(view.round)
        if self._tables is not None and _native is not None:
            _native.observe(b, m, view.world.at, *self._tables, present, rows)
        else:
            self._copy(rows, view, present)
        if self._hidden.any():
            rows[self._hidden, :, 2 * c : (1 + m) * c] = 0.0
        start = (1 + m) * c
        rows[..., start : start + c] = kinds.online(view.round)[:, None]  # from 0 to 1 by themselves
        rest: dict[str, FloatArray] = {
            "budget": budget,
            "cores": view.cores[:, None].astype(np.float64),
            "accuracy": markets.curves.accuracy,
            "progress": (markets.round / kinds.rounds)[:, None],
        }
        if self._totals:
            rest["total_left"] = np.where(kinds.total == ENDLESS, 0.0, markets.total_left / MICRO)
        for place, (name, part) in enumerate(rest.items(), start + c):
            low, width = self._rest[name]
            rows[..., place] = (part - low) / width
        if not kinds.exists.all():
            rows[~kinds.exists] = 0.0
        if not kinds.there.all():
            self._clear_absent(rows)
        return rows

    def _copy(self, rows: Float32Array, view: View, present: BoolArray) -> None:
        if self._tables is not None:
            dqi, bids = (table.take(view.world.at) for table in self._tables)
        else:
            dqi, bids = self._dqi.of_all(view.dqi), self._bid.of_all(view.asks / MICRO)
        if not present.all():
            bids[~present] = 0.0
        b, m, c = bids.shape
        rows[..., :c] = dqi
        for own in range(m):
            rows[:, own, c : 2 * c] = bids[:, own]
            rows[:, own, 2 * c : (1 + m) * c] = np.delete(bids, own, axis=1).reshape(b, -1)

    def act(
        self,
        actions: AnyArray,  # [B * M, 2 C] in [-1, 1]; rows of services that do not take part are not looked at
        view: View,  # the open round
    ) -> tuple[BoolArray, FloatArray]:
        """Return the clients wanted [B, M, C] and their payments [B, M, C], in units of their bids."""
        c = view.asks.shape[2]
        wanted = view.asked.size, 2 * c
        if actions.shape != wanted:
            raise ActionError(f"actions must have the shape {wanted}, not {actions.shape}")
        if actions.dtype.kind not in "biuf":  # NumPy would read text, dates and the real parts of complex numbers
            raise ActionError(f"actions must be real numbers, not {actions.dtype}")
        values = np.ascontiguousarray(actions, dtype=np.float64).reshape(*view.asked.shape, 2 * c)
        there = self._markets.kinds.there
        if _native is not None:
            select, payment = np.empty(view.asks.shape, dtype=np.bool_), np.empty(view.asks.shape)
            if not _native.decode(values, view.asked, there, self._limit, select, payment):
                raise ActionError(OUT_OF_RANGE)
            return select, payment
        # The usual case first: a mask takes longer than the comparison.
        if not (values.min() >= -1 and values.max() <= 1) and not (np.abs(values) <= 1)[view.asked].all():
            raise ActionError(OUT_OF_RANGE)
        select, payment = values[..., :c] > 0, 1 + (values[..., c:] + 1) / 2 * (self._limit - 1)
        return select & view.asked[..., None] & there[:, None], np.minimum(payment, self._limit)

    def _present(self, number: IntArray) -> BoolArray:
        """Return whether each service would be there in round ``number[b]``, [B, M], though its market may be over."""
        status = self._markets.status
        there: BoolArray = status == TRAINING
        there |= (status == WAITING) & (self._markets.kinds.arrival <= number[:, None])
        return there

    def _clear_absent(self, rows: Float32Array) -> None:
        """Put 0 in the places of clients that smaller markets do not have."""
        kinds = self._markets.kinds
        m, absent = kinds.services, ~kinds.there
        for part in range(m + 2):  # DQI, m rows of bids, who is available
            start = part * kinds.clients
            rows[..., start : start + kinds.clients][
                np.broadcast_to(absent[:, None], (len(absent), m, kinds.clients))
            ] = 0.0
