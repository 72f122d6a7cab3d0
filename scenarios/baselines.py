"""What the paper's heuristics reach in the markets of a training's evaluations: levels beside a learning curve.

They play in place of what learns, against the same rivals. No draw of theirs touches those of the training: all are
keyed by the market's seed.
"""

from collections.abc import Mapping, Sequence

from des.records import Feedback, Observation, Offer
from fl.tracking import tracked
from learning.mahdrl.hindsight import Lived
from learning.mahdrl.networks import Tensors
from learning.mahdrl.plan import Plan
from learning.mahdrl.training import OpenTable, mean_row, play_episode
from learning.mahdrl.training_log import Row
from learning.play import decide
from learning.policy import Policy
from scenarios.build import build_policy
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario

HEURISTICS = ("hqfa", "random", "lcfa")
"""The best first: where services take turns, and every seat is a market of its own, only that one plays."""


class _Heuristic:
    """One policy in the seats of the learners. It learns nothing."""

    def __init__(self, name: str, players: Mapping[str, Policy]) -> None:
        self._players, self._labels = players, dict.fromkeys(players, name)

    def begin(self, episode: int, market: int = 0) -> None:
        """Start an episode."""

    def act(self, observations: Mapping[str, Observation], epsilon: float) -> dict[str, Offer]:
        """Return the policy's offers."""
        decisions = decide(self._players, self._labels, observations)
        return {name: decision.offer for name, decision in decisions.items()}

    def observe(
        self, observations: Mapping[str, Observation], offers: Mapping[str, Offer], feedback: Mapping[str, Feedback]
    ) -> dict[str, float]:
        """Return no losses."""
        return {}

    def remember(
        self, observations: Mapping[str, Observation], offers: Mapping[str, Offer], feedback: Mapping[str, Feedback]
    ) -> None:
        """Remember nothing."""

    def end(self, lived: Lived | None = None) -> dict[str, float]:
        """Return no losses."""
        return {}

    def state(self) -> Tensors:
        """Return nothing."""
        return {}

    def restore(self, state: Tensors) -> None:
        """Restore nothing."""

    def agent(self) -> Tensors:
        """Return nothing."""
        return {}


def baselines(
    scenarios: Sequence[Scenario], learners: Sequence[Sequence[str]], opened: OpenTable, plan: Plan
) -> dict[str, Row]:
    """Return the row that an evaluation has with each heuristic in place of the learners, by its name."""
    names = HEURISTICS[:1] if plan.seats[0] else HEURISTICS
    return {name: _evaluated(name, scenarios, learners, opened, plan) for name in names}


def _evaluated(
    name: str, scenarios: Sequence[Scenario], learners: Sequence[Sequence[str]], opened: OpenTable, plan: Plan
) -> Row:
    rows = []
    for market, seed, seats in tracked(list(plan.evaluations()), f"markets played by {name}"):
        scenario, mine = scenarios[market], seats or learners[market]
        services = [PolicyChoice(name).seat(service) for service in scenario.services]
        players = {s.name: build_policy(scenario, s) for s in services if s.name in mine}
        with opened(market, 0, seed, seats) as table:
            rows.append(play_episode(_Heuristic(name, players), table, 0, 0.0, learn=False))
    return mean_row(rows, 0)
