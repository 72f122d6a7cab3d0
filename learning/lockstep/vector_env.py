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
from fl.arithmetic.streams import stream
from fl.arrays import AnyArray, BoolArray, Float32Array, IntArray
from learning.environments.limits import require_in_range
from learning.environments.projection import ActionError
from learning.lockstep.flat_codec import FlatRows
from learning.lockstep.lockstep import REACHED, Lockstep, View
from learning.lockstep.offers import by_payment
from learning.seats import MarketFactory

Infos = dict[str, Any]


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
            given = [own if own is None else int(own) for own in seed]
        else:
            given = [seed if seed is None else seed + b for b in range(count)]
        if len(given) != count:
            raise ValueError(f"seed must be a number, or one for each of the {count} markets, not {len(given)} numbers")
        for b, own in enumerate(given):
            if own is not None:
                self._base[b], self._episodes[b] = own, 0
        seeds = [self._next_seed(b) if own is None else own for b, own in enumerate(given)]
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
        offers = by_payment(select & view.available, payment, view.bids, view.budget)
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
