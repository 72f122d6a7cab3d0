"""What a policy is, and which there are.

A policy decides for one service: from what the service observes (``des.Observation``) to whom it offers how much
(``des.Offer``). Policies of your own are found by entry point:

    [project.entry-points."flmarket.policies"]
    my-policy = "my_package.my_module:MyPolicy"

The entry names a subclass of ``Policy``; its name then works wherever ``hqfa`` does.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar

import numpy.typing as npt

from des.records import Feedback, Observation, Offer
from fl.errors import InputError

GROUP = "flmarket.policies"


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What a policy knows of its market before the first round.

    Attributes:
        service: name of the service it decides for.
        services: M, services in the market.
        clients: C.
        cores: K.
        rounds: N.
        budget: B_m per round, money.
        target_accuracy: at which the service leaves.
        reward_base: Omega_m.
    """

    service: str
    services: int
    clients: int
    cores: int
    rounds: int
    budget: float
    target_accuracy: float
    reward_base: float


class Policy(ABC):
    """Decides for one service. Create one for each service and run."""

    summary: ClassVar[str] = ""
    """One line for ``flmarket policies``."""

    privileged: ClassVar[bool] = False
    """Sees what the paper hides from services (``Observation.privileged``); every table marks such a policy."""

    sees_offers: ClassVar[bool] = False
    """Acts after the others, and sees their offers (``Observation.privileged.rival_offers``). Needs ``privileged``."""

    def __init__(self, context: PolicyContext) -> None:
        """Keep what is known of the market. Subclasses may add keyword arguments: the scenario's ``policy_options``."""
        self.context = context

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str | None:  # noqa: ARG003 - for those that load something
        """Return the SHA-256 of what a new policy would load, which decides what a run gives; None if it loads nothing.

        Args:
            checkpoint: of the service, if the scenario names one.
        """
        return None

    @abstractmethod
    def act(self, observation: Observation) -> Offer:
        """Return the service's offers for this round, within constraints (4) and (5)."""

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:  # noqa: B027 - optional
        """Learn from the round's outcome. Policies that don't learn leave this as it is."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the policy remembers between rounds, as arrays by name, so that an interrupted run can go on.

        A policy that remembers anything overrides this and ``restore``.
        """
        return {}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:  # noqa: B027 - optional, as ``state``
        """Remember what ``state`` returned, in a policy that was made anew with the same context and options."""

    @property
    def resumable(self) -> bool:
        """Whether a run can go on from a checkpoint: a policy that learns must be able to say what it remembers.

        An interrupted run with a policy that can't starts over; its results are the same either way.
        """
        return type(self).learn is Policy.learn or type(self).state is not Policy.state


BUILTIN: Mapping[str, str] = {
    "random": "learning.heuristics:RandomPolicy",
    "lcfa": "learning.heuristics:LowCostFirst",
    "hqfa": "learning.heuristics:HighQualityFirst",
    "greedy": "learning.heuristics:QualityPerCost",
    "d-first": "learning.heuristics:DataFirst",
    "mahdrl": "learning.mahdrl.policy:Mahdrl",
    "mahdrl-paper": "learning.mahdrl.paper.policy:MahdrlPaper",
    "ucb": "learning.bandit:BudgetedUCB",
    "oort": "learning.oort:OortLike",
    "pacing": "learning.pacing:RefusalPacing",
    "oracle": "learning.oracle:BestResponse",
}
"""The policies that come with flmarket, as module:class; imported when used."""


class UnknownPolicyError(InputError):
    """No policy of that name is built in or registered."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        near = get_close_matches(self.name, names(), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        return f"there is no policy {self.name!r}{hint}; there are {', '.join(names())}"


class NotAPolicyError(InputError):
    """An installed package registers something under ``flmarket.policies`` that is not a policy."""


class PolicyOptionsError(InputError):
    """A scenario's ``policy_options`` are not what the policy takes."""


def names() -> list[str]:
    """Return the names of all policies: the built-in ones, then those that installed packages register."""
    return [*BUILTIN, *sorted({entry.name for entry in entry_points(group=GROUP)} - set(BUILTIN))]


def load(name: str) -> type[Policy]:
    """Return the class of a policy.

    Raises:
        UnknownPolicyError: there is none of that name.
        NotAPolicyError: what is registered under that name is not a subclass of ``Policy``.
    """
    found: Any
    if name in BUILTIN:
        module, _, attribute = BUILTIN[name].partition(":")
        found = getattr(import_module(module), attribute)
    else:
        entries = list(entry_points(group=GROUP, name=name))
        if not entries:
            raise UnknownPolicyError(name)
        found = entries[0].load()
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise NotAPolicyError(
            f"policy {name!r} is registered as {found!r}, which is not a subclass of learning.policy.Policy"
        )
    return found


def create(name: str, context: PolicyContext, options: Mapping[str, Any] | None = None) -> Policy:
    """Return a new policy for one service.

    Raises:
        UnknownPolicyError, NotAPolicyError: see ``load``.
        PolicyOptionsError: it does not take these options.
    """
    policy = load(name)
    try:
        return policy(context, **(options or {}))
    except (TypeError, ValueError) as error:
        raise PolicyOptionsError(f"policy {name!r} of service {context.service!r}: {error}") from error
