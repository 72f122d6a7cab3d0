"""The market as a Gymnasium environment: one service learns, scripted policies decide for its rivals.

With flat spaces, the default, it suits libraries such as stable-baselines3; see ``examples/train_sb3.py``. Needs the
extra ``rl``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from des.log_records import RoundReport
from des.market import Market
from des.observation import Offer
from learning.environments.actions import ActionError
from learning.environments.parallel_env import MarketEnv, Step
from learning.play_round import decide, learn
from learning.policy import Policy
from learning.seats import MarketFactory, memory, seat


@dataclass
class Rivals:
    """Makes markets in which a service's rivals are seated, the policies of each anew."""

    factory: MarketFactory
    service: str
    names: Mapping[str, str]  # the policies' names, by service
    options: Mapping[str, Mapping[str, Any]] | None
    policies: dict[str, Policy] = field(default_factory=dict)  # of the last market, by service

    def __call__(self, seed: int) -> Market:
        """Return the market of a seed."""
        market = self.factory(seed)
        present = {spec.name for spec in market.services}
        if self.service in self.names or present != {self.service, *self.names}:
            market.close()
            raise ValueError(
                f"the market's services are {sorted(present)}, not {self.service!r} and the rivals {sorted(self.names)}"
            )
        self.policies = seat(market, self.names, self.options)
        return market

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the policies: a copied environment makes its market again, which creates them."""
        return vars(self) | {"policies": {}}


class ServiceEnv(gymnasium.Env[Any, Any]):
    """One service against scripted rivals. Rewards, ends and spaces are those of ``MarketEnv``.

        env = ServiceEnv(factory, "mnist", {"emnist": "lcfa", "fashion": "random"})

    The rivals' policies are created again in each episode. The episode ends when the service leaves, even if its rivals
    stay.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - gymnasium declares it so

    def __init__(
        self,
        factory: MarketFactory,
        service: str,
        rivals: Mapping[str, str],
        *,
        rival_options: Mapping[str, Mapping[str, Any]] | None = None,
        seed: int = 0,
        gamma: float = 0.95,
        payment_limit: float = 2.0,
        flat: bool = True,
    ) -> None:
        """Create the environment; ``reset`` starts an episode.

        Args:
            factory: makes each episode's market.
            service: name of the service that learns.
            rivals: the policy of each other service, by name.
            rival_options: the policies' options, by service.
            seed, gamma, payment_limit, flat: see ``MarketEnv``.

        Raises:
            ValueError: ``service`` and ``rivals`` are not exactly the market's services.
            UnknownPluginError, PluginError: a policy is unknown, or cannot be used.
            OptionsError: a policy does not take its options.
        """
        self._service = service
        self._rivals = Rivals(factory, service, dict(rivals), rival_options)
        self._env = MarketEnv(self._rivals, seed=seed, gamma=gamma, payment_limit=payment_limit, flat=flat)
        self.observation_space = self._env.observation_space(service)
        self.action_space = self._env.action_space(service)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy continues from; see ``MarketEnv``."""
        return vars(self) | {"_memories": [memory(policy) for policy in self._rivals.policies.values()]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        memories = state.pop("_memories")
        vars(self).update(state)
        for policy, values in zip(self._rivals.policies.values(), memories, strict=True):
            vars(policy).update(values)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see ``MarketEnv.reset``."""
        super().reset(seed=seed)
        observations, infos = self._env.reset(seed, options)
        while self._service not in observations:  # its rivals play until it arrives
            (observations, *_, infos), _ = self._play({})
        return observations[self._service], infos[self._service]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play a round with the service's action and its rivals' offers.

        Raises:
            ActionError: the action is not in its space, or the episode is over.
            PluginFailed: a rival's policy raised an exception.
            OfferError: a rival's offer breaks a constraint.
            Diverged: a model's training diverged.
        """
        name = self._service
        if name not in self._env.agents:
            raise ActionError("the episode is over or has not begun; call reset()")
        offer, dropped = self._env.offer(name, action)
        (observations, rewards, terminated, truncated, infos), _ = self._play({name: offer})
        info = infos[name] | {"dropped": dropped}
        return observations[name], rewards[name], terminated[name], truncated[name], info

    def _play(self, offered: Mapping[str, Offer]) -> tuple[Step, RoundReport]:
        """Play a round with the service's offer, if it takes part, and its rivals'."""
        policies, labels = self._rivals.policies, self._rivals.names
        decisions = decide(policies, labels, self._env.observed, offered)
        offers = {rival: decision.offer for rival, decision in decisions.items()}
        step, report = self._env.step_offers({**offers, **offered})
        learn(policies, labels, decisions, report)
        return step, report

    def close(self) -> None:
        """Release the market's training workers."""
        self._env.close()
