"""The market as a PettingZoo environment: every service an agent, all acting together in each round.

Spaces are described in ``learning.environments.spaces``, over-budget actions in ``learning.environments.actions``.
Needs the extra ``rl``.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from des.log_records import RoundReport
from des.market import Market
from des.money import MICRO
from des.observation import Observation, Offer
from des.reward import discounts
from fl.arithmetic.streams import stream
from fl.arrays import Float32Array
from learning.environments.actions import ActionError, require_in_range, require_one_offer
from learning.environments.spaces import Codec, DictCodec, FlatCodec
from learning.seats import MarketFactory, bounds_of, memory

Step = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]


class MarketEnv(ParallelEnv):  # type: ignore[misc]  # pettingzoo publishes no types
    """M services (agents, by name) compete for C clients over N rounds (steps).

        env = MarketEnv(factory)                       # factory: seed -> des.Market
        observations, infos = env.reset(seed=3)
        while env.agents:
            actions = {agent: env.action_space(agent).sample() for agent in env.agents}
            observations, rewards, terminations, truncations, infos = env.step(actions)

    The reward is the paper's, r = Omega^accuracy. A service that reaches its target in round n terminates. The paper's
    reward for it is absorbing, so its last reward is Omega^target * (1 + gamma + ... + gamma^(N - n)): what it gets in
    that round and, discounted, in each that remains. After round N, the services that are left are truncated.

    Where events end rounds (``timeline.decide``), time is discounted, not rounds: what follows a round of a part x of a
    slot counts gamma^x, the info's ``discount``, and its reward (1 - gamma^x) / (1 - gamma) of that of a whole slot.
    Rounds that remain count as slots, up to ``timeline.slots``. So the same market is worth the same however often
    services decide.

    An agent's last observation shows the data and bids that a next round would bring.

    Padded, all services are agents until the market ends, as in ``vector_env``: of one that has left, or has not
    arrived, no action is looked at, and the reward is 0. All end together, those terminated that had left before.

    Copies and pickles, of which each makes its market again by the factory and continues from where this one is, share
    nothing with it.

    Attributes:
        possible_agents: names of all services, in the scenario's order.
        agents: names of those that take part now, not of those that have left, or have not arrived; padded, of all.
        observed: what each service that takes part observes in the open round.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "flmarket_v0", "render_modes": [], "is_parallelizable": True}
    render_mode = None

    def __init__(
        self,
        factory: MarketFactory,
        *,
        seed: int = 0,
        gamma: float = 0.95,
        payment_limit: float = 2.0,
        flat: bool = False,
        padded: bool = False,
    ) -> None:
        """Create the environment; ``reset`` starts an episode.

        Args:
            factory: makes each episode's market. All its markets have the same services and clients.
            seed: the episodes' seeds are drawn from it, until ``reset`` is given another one; so are actions that the
                spaces sample, until these are seeded.
            gamma: discount factor of the absorbing reward, in (0, 1]. The paper's is 0.95.
            payment_limit: highest payment that an agent can offer, in units of the bid; above 1.
            flat: whether observations and actions are one Box each (``FlatCodec``) instead of Dicts.
            padded: whether services that have left, or have not arrived, are agents, too.

        Raises:
            ValueError: gamma or payment_limit is out of range, or the market's mechanism is not one whose rounds are
                one offer from each service, of at least the bids.
        """
        require_in_range(gamma, payment_limit)
        self._factory = factory
        self._gamma, self._padded = gamma, padded
        self._seed, self._episode = seed, 0
        self._played = seed
        self._market: Market = factory(seed)
        require_one_offer(self._market)
        self.possible_agents = [spec.name for spec in self._market.services]
        self.agents: list[str] = []
        kind = FlatCodec if flat else DictCodec
        self._codecs: dict[str, Codec] = {
            name: kind(bounds_of(self._market, m), payment_limit) for m, name in enumerate(self.possible_agents)
        }
        for name, codec in self._codecs.items():  # nobody else can seed those of services that arrive later
            codec.action_space.seed(int(stream(seed, "sampled actions", name).integers(2**31)))
        self._flat = [FlatCodec(codec.bounds, payment_limit) for codec in self._codecs.values()]
        self.observed: Mapping[str, Observation] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy continues from, as a run does from a checkpoint."""
        market = self._market
        memories = [memory(player) for player in (market.mechanism, market.population.spec.behaviour)]
        rest = {name: value for name, value in vars(self).items() if name not in ("_market", "observed")}
        return rest | {"_checkpoint": (market.state(), market.federation.state(), memories)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        of_market, of_federation, memories = state.pop("_checkpoint")
        self.__dict__.update(state)
        market = self._market = self._factory(self._played)
        market.federation.restore(of_federation)
        market.restore(of_market)
        for player, values in zip((market.mechanism, market.population.spec.behaviour), memories, strict=True):
            vars(player).update(values)
        self.observed = market.open_round() if self.agents else {}

    @property
    def market(self) -> Market:
        """The market of the current episode, for scripts that read it. Only the environment may close its rounds."""
        return self._market

    def observation_space(self, agent: str) -> Any:
        """Return the space of an agent's observations, always the same object."""
        return self._codecs[agent].observation_space

    def action_space(self, agent: str) -> Any:
        """Return the space of an agent's actions, always the same object."""
        return self._codecs[agent].action_space

    @cached_property
    def state_space(self) -> Any:
        """The space of ``state``: a Box from 0 to 1."""
        return spaces.Box(0.0, 1.0, (sum(codec.observation_space.shape[0] for codec in self._flat),), np.float32)

    def state(self) -> Float32Array:
        """Return what all services observe, one after another, each as with ``flat``: for critics that see them all."""
        return np.concatenate(
            [codec.encode(self._seen(name)) for name, codec in zip(self.possible_agents, self._flat, strict=True)]
        )

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start an episode.

        Args:
            seed: the seed of the episode's market: the same seed and actions give the same episode. Without it, each
                episode draws another one, from the last seed given to ``reset`` or else to the constructor.
            options: ignored.

        Returns:
            The agents' observations, and an empty info for each; padded, an info as that of ``step``.
        """
        if seed is not None:
            self._seed, self._episode = seed, 0
        else:
            self._episode += 1
            seed = int(stream(self._seed, "episode", self._episode).integers(2**31))
        self._market.close()
        self._played, self._market = seed, self._factory(seed)
        self._open()
        return self._observations(self.agents), self._infos(self.agents)

    def step(self, actions: Mapping[str, Any]) -> Step:
        """Play a round with every agent's action.

        Actions of services that do not take part are not looked at; after the end, all that is returned is empty.

        Returns:
            Observations, rewards, terminations, truncations and infos of all agents that acted; those that arrive with
            the next round observe it, with a reward of 0. An info of an agent that acted holds
            ``round``, ``accuracy``, ``wanted``, ``served``, ``spent`` (money) and ``dropped``, how many selected
            clients were left out: offline ones, and those that did not fit into the budget; and ``discount``, what
            comes after the round counts. Padded, all infos hold these, and ``acting``, whether the service takes part
            in the next round.

        Raises:
            ActionError: an action is not in its space, there is none from a service that takes part or one from who is
                no service, or no episode has begun.
            Diverged: a model's training diverged.
        """
        if self._market.finished:
            return {}, {}, {}, {}, {}
        self._require_agents(actions)
        offers, dropped = {}, {}
        for name in self.observed:
            offers[name], dropped[name] = self.offer(name, actions[name])
        step, _ = self.step_offers(offers)
        for name, count in dropped.items():
            step[4][name]["dropped"] = count
        return step

    def offer(self, agent: str, action: Any) -> tuple[Offer, int]:
        """Return the offer that an action makes in the open round, and how many selected clients it leaves out.

        Raises:
            ActionError: the action is not in the agent's space.
        """
        observation = self.observed[agent]
        try:
            return self._codecs[agent].decode_and_count(action, observation)
        except ActionError as error:
            raise ActionError(f"service {agent!r}, round {observation.round}: {error}") from None

    def step_offers(self, offers: Mapping[str, Offer]) -> tuple[Step, RoundReport]:
        """Play a round with offers, which are checked, not projected; return the step and the market's own report.

        Raises:
            ActionError: there is no offer from a service that takes part, or the episode is over or has not begun.
            OfferError: an offer breaks a constraint.
            Diverged: a model's training diverged.
        """
        self._require_agents(offers)
        acted = list(self.observed)
        report = self._market.close_round({name: offers[name] for name in acted})
        self._open()
        shown = self.possible_agents if self._padded else list(dict.fromkeys([*acted, *self.agents]))
        leaving = [name for name in acted if report.feedback[name].status.leaves]
        truncated = {name: name not in self.agents and name in acted and name not in leaving for name in shown}
        terminated = {name: name not in self.agents and not truncated[name] for name in shown}
        rewards = {name: report.feedback[name].reward if name in acted else 0.0 for name in shown}
        counts = discounts(self._gamma, report.length, self._market.slots_left(report))
        for name in acted:
            rewards[name] *= float(counts.sum() if name in leaving else counts[0])
        return (self._observations(shown), rewards, terminated, truncated, self._infos(shown, report)), report

    def close(self) -> None:
        """Release the market's training workers."""
        self._market.close()

    def _open(self) -> None:
        """Open the next round, if there is one. Rounds in which no service takes part pass at once, unless padded."""
        self.observed = {} if self._market.finished else self._market.open_round()
        while not (self.observed or self._market.finished or self._padded):
            self._market.close_round()
            self.observed = {} if self._market.finished else self._market.open_round()
        self.agents = [] if self._market.finished else list(self.possible_agents if self._padded else self.observed)

    def _require_agents(self, names: Iterable[str]) -> None:
        if not self.agents:
            raise ActionError("the episode is over or has not begun; call reset()")
        if not set(self.observed) <= set(names) <= set(self.possible_agents):
            raise ActionError(f"actions must come from {sorted(self.observed)}, not from {sorted(names)}")

    def _infos(self, names: Iterable[str], report: RoundReport | None = None) -> dict[str, dict[str, Any]]:
        """Return the infos of services after a round, or before the first one."""
        infos: dict[str, dict[str, Any]] = {name: {} for name in names}
        if self._padded:
            nothing = {"wanted": 0, "served": 0, "spent": 0.0, "dropped": 0, "discount": self._gamma}
            for name, state in zip(self.possible_agents, self._market.states, strict=True):
                now = {"round": self._market.round, "accuracy": state.accuracy, "acting": name in self.observed}
                infos[name] = now | nothing
        if report is None:
            return infos
        for row in report.services:
            if row.service in report.feedback:
                served, spent = report.known(row)
                infos[row.service] |= {
                    "round": report.round,
                    "accuracy": row.accuracy,
                    "wanted": row.wanted,
                    "served": served,
                    "spent": spent / MICRO,
                    "discount": self._gamma**report.length,
                }
        return infos

    def _observations(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self._codecs[name].encode(self._seen(name)) for name in names}

    def _seen(self, name: str) -> Observation:
        return self.observed.get(name) or self._market.preview(name)
