"""The market as a Gymnasium environment: one service learns, scripted policies decide for its rivals.

With flat spaces, the default, it suits libraries such as stable-baselines3; see ``examples/train_sb3.py``. Needs the
extra ``rl``.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium

from des.log_records import RoundReport
from des.market import Market
from des.observation import Offer
from learning.environments.parallel_env import MarketEnv, Step
from learning.environments.projection import ActionError
from learning.episode import decide, learn
from learning.policy import Policy
from learning.seats import MarketFactory, seat


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
        self._rivals = dict(rivals)
        self._policies: dict[str, Policy] = {}

        def seated(seed: int) -> Market:
            market = factory(seed)
            names = {spec.name for spec in market.services}
            if service in rivals or names != {service, *rivals}:
                market.close()
                raise ValueError(
                    f"the market's services are {sorted(names)}, not {service!r} and the rivals {sorted(rivals)}"
                )
            self._policies = seat(market, rivals, rival_options)
            return market

        self._env = MarketEnv(seated, seed=seed, gamma=gamma, payment_limit=payment_limit, flat=flat)
        self.observation_space = self._env.observation_space(service)
        self.action_space = self._env.action_space(service)

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
        own, dropped = self._env.offer(name, action)
        (observations, rewards, terminated, truncated, infos), _ = self._play({name: own})
        info = infos[name] | {"dropped": dropped}
        return observations[name], rewards[name], terminated[name], truncated[name], info

    def _play(self, own: Mapping[str, Offer]) -> tuple[Step, RoundReport]:
        """Play a round with the service's offer, if it takes part, and its rivals'."""
        decisions = decide(self._policies, self._rivals, self._env.observed, own)
        offers = {rival: decision.offer for rival, decision in decisions.items()}
        step, report = self._env.step_offers({**offers, **own})
        learn(self._policies, self._rivals, decisions, report)
        return step, report

    def close(self) -> None:
        """Release the market's training workers."""
        self._env.close()
