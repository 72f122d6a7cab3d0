"""Markets in lockstep as a Gymnasium ``VectorEnv``: every service of every market is one of its environments.

Each market is what ``learning.environments.parallel_env.MarketEnv(factory, seed=seed + b, flat=True, padded=True)`` is,
to the last bit. Needs the extra ``rl``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from des.money import MICRO
from fl.arithmetic.native import extension
from fl.arithmetic.streams import stream
from fl.arrays import AnyArray, BoolArray, Float32Array, FloatArray, IntArray
from learning.environments.actions import ActionError, require_in_range
from learning.environments.spaces import Scale, unit_payments
from learning.lockstep.lockstep import REACHED, TRAINING, WAITING, Lockstep, View
from learning.lockstep.market_kinds import ENDLESS
from learning.lockstep.offers import Offers
from learning.seats import MarketFactory, bounds_of

Infos = dict[str, Any]

_native = extension("observe", "decode")


class VectorMarketEnv(VectorEnv[Float32Array, AnyArray, AnyArray]):
    """B markets of M services: row ``b * M + m`` is service ``m`` of market ``b``.

        env = VectorMarketEnv([factory] * 256)         # factory: seed -> des.Market, on the surrogate
        observations, infos = env.reset(seed=0)        # [256 * M, F]
        observations, rewards, terminations, truncations, infos = env.step(actions)    # [256 * M, 2 C]

    Rewards and ends are those of ``MarketEnv``, padded. A service that has left, or has not arrived, does not act: its
    action is not looked at, its reward is 0, and ``infos["acting"]`` is False. All rows of a market end with it, and
    begin again in the next step, whatever the actions (``AutoresetMode.NEXT_STEP``).

    Attributes:
        markets: the markets in lockstep, for scripts that read them.
        acting: [B * M] which rows act in the next step.
    """

    def __init__(
        self,
        factories: Sequence[MarketFactory],
        *,
        seed: int = 0,
        gamma: float = 0.95,
        payment_limit: float = 2.0,
    ) -> None:
        """Create the environment; ``reset`` starts the episodes.

        Args:
            factories: [B] makes each market from its seed.
            seed: market ``b`` draws the seeds of its episodes from ``seed + b``.
            gamma: discount factor of the absorbing reward, in (0, 1].
            payment_limit: highest payment that a service can offer, in units of the bid; above 1.

        Raises:
            ValueError: gamma or payment_limit is out of range.
            LockstepError: a market cannot be played in lockstep.
        """
        require_in_range(gamma, payment_limit)
        self._gamma = gamma
        self._base = [seed + b for b in range(len(factories))]
        self._episodes = [0] * len(factories)
        self.markets = Lockstep(factories, self._base)
        self._rows = FlatRows(self.markets, payment_limit)
        kinds = self.markets.kinds
        self._shape = len(factories), kinds.services
        self.num_envs = len(factories) * kinds.services
        self.single_observation_space = spaces.Box(0.0, 1.0, (self._rows.width,), np.float32)
        self.single_action_space = spaces.Box(-1.0, 1.0, (2 * kinds.clients,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}
        self.acting: BoolArray = np.zeros(self.num_envs, dtype=np.bool_)
        self._view: View | None = None
        self._budget = np.zeros(self._shape)
        most = int(kinds.rounds.max())
        self._absorbing = np.array([float((gamma ** np.arange(left + 1)).sum()) for left in range(most + 1)])

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, Infos]:
        """Start an episode in every market.

        Args:
            seed: market ``b`` plays the seed ``seed + b``, or ``seed[b]`` of a list. Without one, a market draws
                another one.
            options: ignored.

        Returns:
            [B * M, F] what each service observes; and which rows act.

        Raises:
            ValueError: there is not one seed for each market.
        """
        count = self._shape[0]
        if isinstance(seed, Sequence | np.ndarray):
            named = [one if one is None else int(one) for one in seed]
        else:
            named = [seed if seed is None else seed + b for b in range(count)]
        if len(named) != count:
            raise ValueError(f"seed must be a number, or one for each of the {count} markets, not {len(named)} numbers")
        for b, one in enumerate(named):
            if one is not None:
                self._base[b], self._episodes[b] = one, 0
        seeds = [self._next_seed(b) if one is None else one for b, one in enumerate(named)]
        self.markets.reset(range(count), seeds)
        return self._open(), {"acting": self.acting.copy()}

    def step(self, actions: AnyArray) -> tuple[Float32Array, AnyArray, AnyArray, AnyArray, Infos]:
        """Play a round of every market.

        Args:
            actions: [B * M, 2 C] in [-1, 1]: the first C values select the clients for whom they are positive, the last
                C are payments, -1 for the bid and 1 for ``payment_limit`` bids.

        Returns:
            Observations [B * M, F], rewards, terminations, truncations and infos [B * M]: ``acting``, and of the round
            that was played ``round`` (0 if none was), ``accuracy``, ``wanted``, ``served``, ``spent`` (money) and
            ``dropped`` (clients left out).

        Raises:
            ActionError: an action is out of its space, or ``reset`` was not called.
        """
        view = self._view
        if view is None:
            raise ActionError("the episodes have not begun; call reset()")
        select, payment = self._rows.act(np.asarray(actions), view)
        offers = Offers.by_payment(select & view.available, payment, view.bids, view.budget)
        wanted = np.bincount(offers.market * self._shape[1] + offers.service, minlength=self.num_envs)
        over = ~view.playing
        closed = self.markets.play(offers)
        rewards = np.where(view.asked, closed.reward, 0.0)
        reached = view.asked & (closed.status == REACHED)
        if reached.any():
            left = np.maximum(self.markets.kinds.rounds - closed.round, 0)
            rewards[reached] *= np.broadcast_to(self._absorbing[left, None], self._shape)[reached]
        ends = (view.playing & self.markets.finished)[:, None]
        truncated = ends & view.asked & ~reached
        terminated = ends & ~truncated
        infos: Infos = {
            "round": np.repeat(np.where(over, 0, closed.round), self._shape[1]),
            "accuracy": self.markets.curves.accuracy.ravel().copy(),
            "wanted": wanted,
            "served": closed.served.ravel(),
            "spent": closed.spent.ravel() / MICRO,
            "dropped": _counts(select).ravel() - wanted,
            "discount": np.full(self.num_envs, self._gamma),
        }
        new = over.nonzero()[0].tolist()
        self.markets.reset(new, [self._next_seed(b) for b in new])
        observations = self._open()
        infos["acting"] = self.acting.copy()
        return observations, rewards.ravel(), terminated.ravel(), truncated.ravel(), infos

    def _open(self) -> Float32Array:
        """Open the next round of every market."""
        view = self._view = self.markets.open()
        self.acting = view.asked.ravel()
        # Of a market that is over, what its last round allowed.
        self._budget = np.where(view.playing[:, None], view.budget / MICRO, self._budget)
        return self._rows.observe(view, self._budget).reshape(self.num_envs, -1)

    def _next_seed(self, b: int) -> int:
        self._episodes[b] += 1
        return int(stream(self._base[b], "episode", self._episodes[b]).integers(2**31))


def _counts(select: BoolArray) -> IntArray:
    """Count what is true in each last row, by a product: NumPy's sum of many short rows takes four times as long."""
    return (select.astype(np.float32) @ np.ones(select.shape[-1], np.float32)).astype(np.int64)


class FlatRows:
    """Encodes and decodes observations and actions of all services of all markets as flat buffers, a row for each.

    A row is what ``learning.environments.spaces.FlatCodec`` makes for one service of one market, to the last bit.
    Markets that are smaller than the largest one fill its places and leave the others 0.
    """

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
        for market, of_services in zip(kinds.markets, limits, strict=True):
            pairs = market.population.pairs
            for m, parts in enumerate(of_services):
                dqi.append(Scale.between(*(part[0] for part in parts["dqi"]))(pairs.dqi[0, m]))
                # A service's own row of bids comes first, and is scaled alike in every row.
                bids.append(Scale.between(*(part[0, 0] for part in parts["bids"]))(pairs.cost[0, m] / MICRO))
        self._dqi, self._bids = np.concatenate(dqi), np.concatenate(bids)  # of each pair that clients can hold
        self._scales: dict[str, Scale] = {}
        for name in self._last:
            ends = [[parts.get(name, (np.zeros(1), np.ones(1))) for parts in of_services] for of_services in limits]
            low, high = (
                kinds.per_service([[float(part[bound][0]) for part in of_services] for of_services in ends], absent=0.0)
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
