"""Policies that write down what they are asked to do, so that another process can see which one hangs."""

from collections.abc import Mapping
from dataclasses import dataclass

from des.observation import Feedback, Observation, Offer
from fl.arrays import AnyArray
from learning.policy import Policy, learns
from scenarios.build import build_policy
from scenarios.file.schema import Scenario, Service
from scenarios.running.record import Record


class Watched(Policy):
    """A policy that writes down what it is asked to do."""

    def __init__(self, policy: Policy, name: str, service: str, record: Record) -> None:
        # Not Policy's own __init__: a policy need not have called that, and then has no context.
        self._policy, self._record = policy, record
        self._who = _who(name, service)
        self._learns = learns(policy)

    @property
    def sees_offers(self) -> bool:  # type: ignore[override]  # a class variable of other policies
        return self._policy.sees_offers

    @property
    def resumable(self) -> bool:
        return self._policy.resumable

    def act(self, observation: Observation) -> Offer:
        self._record.begin(f"{self._who}, round {observation.round}: act()")  # not doing(): this is the hot path
        try:
            return self._policy.act(observation)
        finally:
            self._record.end()

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        if not self._learns:
            return
        self._record.begin(f"{self._who}, round {observation.round}: learn()")
        try:
            self._policy.learn(observation, offer, feedback)
        finally:
            self._record.end()

    def state(self) -> dict[str, AnyArray]:
        with self._record.doing(f"{self._who}: state()"):
            return self._policy.state()

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        with self._record.doing(f"{self._who}: restore()"):
            self._policy.restore(state)


@dataclass(frozen=True, slots=True)
class CreateWatched:
    """Creates policies that write down what they are asked to do; a ``CreatePolicy``."""

    record: Record

    def __call__(self, scenario: Scenario, service: Service) -> Policy:
        with self.record.doing(f"{_who(service.policy, service.name)}: __init__()"):
            policy = build_policy(scenario, service)
        return Watched(policy, service.policy, service.name, self.record)


def _who(policy: str, service: str) -> str:
    return f"policy {policy!r} of service {service!r}"
