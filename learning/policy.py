"""Policies: the base class, and the registry of all of them.

A policy decides for one service: from what the service observes (``Observation``) to whom it offers how much
(``Offer``). A user's own is a subclass of ``Policy``, registered by the decorator ``policy`` in a plug-in file, or by
an entry point of an installed package in the group ``flmarket.policies``; its name then works wherever ``hqfa`` does.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

from des.observation import Feedback, Observation, Offer
from fl.arrays import AnyArray, FloatArray
from fl.data.dqi import DQIParameters
from fl.surrogate.learning_curves import Curve
from flmarket.core.errors import InputError
from flmarket.core.files import read_regular
from flmarket.core.plugin_errors import plugin_code
from flmarket.core.plugins import PluginError, Registry, built_in, subclass_problem

AS_CONFIGURED = "as-configured"
"""The label of a run whose services play the policies that the scenario gives them; no policy can have this name."""

ALL = "all"
"""Stands for every policy that can play; no policy can have this name either."""

Bounds = Mapping[str, tuple[FloatArray, FloatArray]]
"""The lowest and the highest value of each part of what a service observes; see ``learning.seats.bounds``."""


NEXT_TO_NONE = 1e-9
"""A DQI this low counts as none: a price for a unit of it would be beyond all budgets, or beyond all numbers."""


@dataclass(frozen=True, slots=True)
class DataRanges:
    """The public ranges of clients' data, each the lowest and the highest; no report and no bid moves them."""

    cost: tuple[float, float]  # what training on a data set costs a client, money
    dqi: tuple[float, float]  # the DQI of a data set, as the service sees it

    @property
    def middle_cost(self) -> float:
        """The cost half-way in its range, money."""
        return (self.cost[0] + self.cost[1]) / 2

    @property
    def middle_quality(self) -> float:
        """The DQI half-way in its range, both ends cut at 0."""
        return (max(self.dqi[0], 0.0) + max(self.dqi[1], 0.0)) / 2


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """A market as its policies know it before the first round.

    Attributes:
        service: name of the service it decides for.
        services: M, services in the market.
        clients: C.
        cores: K.
        rounds: N.
        budget: B_m per round, money.
        target_accuracy: the accuracy at which the service leaves.
        reward_base: Omega_m.
        curve: the learning curve that was fitted to the service's data set before; where nothing is trained, its
            accuracy follows this curve. None if there is none.
        bounds: returns the lowest and the highest value of each part of what the service can observe in this market,
            by which the environments scale it; None in a context that was made by hand.
        ranges: returns the ranges of what data can cost and be worth, by which a service can say what a client is worth
            to it before anybody bids; None likewise.
        dqi: the parameters of eq. (6) for the service's data set, by which the DQI of any data follows; None where the
            market hides data sizes and EMDs.
    """

    service: str
    services: int
    clients: int
    cores: int
    rounds: int
    budget: float
    target_accuracy: float
    reward_base: float
    curve: Curve | None = None
    bounds: Callable[[], Bounds] | None = field(default=None, compare=False, repr=False)
    ranges: Callable[[], DataRanges] | None = field(default=None, compare=False, repr=False)
    dqi: DQIParameters | None = None

    @property
    def data(self) -> DataRanges:
        """What ``ranges`` returns; a ValueError where there is none."""
        if self.ranges is None:
            raise ValueError("the context does not say what clients' data can cost and be worth; give it ranges")
        return self.ranges()


LARGEST_AGENT = 1_000_000_000  # bytes


class Policy(ABC):
    """Decides for one service. Create one for each service and run."""

    summary: ClassVar[str] = ""
    """One line for ``flmarket policies`` and ``flmarket plugins``; by default the first line of the docstring."""

    privileged: ClassVar[bool] = False
    """Sees what the paper hides from services (``Observation.privileged``); every table marks such a policy."""

    sees_offers: ClassVar[bool] = False
    """Acts after the others, and sees their offers (``Observation.privileged.rival_offers``). Needs ``privileged``."""

    def __init__(self, context: PolicyContext) -> None:
        """Keep what is known of the market. Subclasses may add keyword arguments: the scenario's ``policy_options``."""
        self.context = context

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str | None:
        """Return the SHA-256 of what a new policy would load, which results depend on; None if it loads nothing.

        By default a checkpoint is one file. A policy that loads something else, or reads only part of it, overrides
        this.

        Args:
            checkpoint: the service's checkpoint, if the scenario names one.

        Raises:
            InputError: it cannot be read.
        """
        if checkpoint is None:
            return None
        try:
            return hashlib.sha256(read_regular(Path(checkpoint), LARGEST_AGENT)).hexdigest()
        except OSError as error:
            raise InputError(f"{checkpoint}: cannot be read: {error.strerror}") from error

    @abstractmethod
    def act(self, observation: Observation) -> Offer:
        """Return the service's offers for this round, within constraints (4) and (5)."""

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:  # noqa: B027 - optional
        """Learn from the round's outcome. Policies that do not learn leave this as it is."""

    def state(self) -> dict[str, AnyArray]:
        """Return what the policy remembers between rounds, as arrays by name, so that an interrupted run can continue.

        A policy that remembers anything overrides this and ``restore``.
        """
        return {}

    def restore(self, state: Mapping[str, AnyArray]) -> None:  # noqa: B027 - optional, as ``state``
        """Remember what ``state`` returned, in a new policy with the same context and options."""

    @property
    def resumable(self) -> bool:
        """Whether a run can continue from a checkpoint: a policy that learns must define what it remembers.

        An interrupted run with a policy that cannot be resumed starts over; its results are the same either way.
        """
        return not learns(self) or type(self).state is not Policy.state


def learns(policy: Policy) -> bool:
    """Return whether a policy does anything when it learns; most do not. It may be a policy that defines it alone."""
    return type(policy).learn is not Policy.learn or "learn" in getattr(policy, "__dict__", ())


POLICIES: Registry[type[Policy]] = Registry(
    "policy",
    "flmarket.policies",
    built_in(
        "learning.policies",
        mahdrl="learning.mahdrl.agent:Mahdrl",
        mahdrl_paper="learning.mahdrl.paper:MahdrlPaper",
        mahdrl_single="learning.mahdrl.agent:MahdrlSingle",
        rtb_const="learning.bidders.display:Const",
        rtb_rand="learning.bidders.display:Rand",
        rtb_mcpc="learning.bidders.display:Mcpc",
        rtb_lin="learning.bidders.display:Lin",
        rtb_ortb="learning.bidders.display:Ortb",
        rtb_rlb="learning.bidders.rlb:Rlb",
    ),
    partial(subclass_problem, base=Policy),
    reserved=[AS_CONFIGURED, ALL],
    whose=lambda context: f" of service {context.service!r}",
)
"""All policies, by name."""

policy = POLICIES.decorator
"""Return a class decorator that registers a subclass of ``Policy``: ``@policy("big-spender")``."""


def agent_digest(name: str, checkpoint: str | None) -> str | None:
    """Return what a policy's ``Policy.agent_digest`` returns.

    Raises:
        UnknownPluginError, PluginError: see ``Registry.load``; or it raises an exception, or returns no text.
        InputError: the checkpoint cannot be read.
    """
    kind = POLICIES.load(name)
    with plugin_code(f"policy {name!r}: agent_digest()", PluginError):
        digest = kind.agent_digest(checkpoint)
    if not isinstance(digest, str | None):
        raise PluginError(f"policy {name!r}: agent_digest() returned {digest!r}, which is neither a text nor None")
    return digest
