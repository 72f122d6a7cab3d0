"""Agents that were trained in the environments, as policies: they see there what an environment would show them."""

import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar
from uuid import uuid4

from des.observation import Observation, Offer
from flmarket.core.code_digests import recorded
from flmarket.core.errors import InputError
from flmarket.core.plugin_errors import PluginFailed, describe, place
from learning.environments.actions import ActionError
from learning.environments.spaces import Codec
from learning.policy import POLICIES, Policy, PolicyContext


class AgentPolicy(Policy):
    """Decides as an agent does that was trained in an environment. ``policy_from`` makes a subclass for each agent."""

    decides: ClassVar[Callable[[Any], Any]]
    """From what the agent sees to its action, as ``codec`` has them."""

    codec: ClassVar[Codec]
    """Encodes for the agent; scaled for the market that it was trained in."""

    digest: ClassVar[str]
    """SHA-256 of what decides."""

    made_in: ClassVar[str]
    """File and line where the policy was made."""

    def __init__(self, context: PolicyContext) -> None:
        """Scale as an environment of this market does."""
        super().__init__(context)
        self._codec = self.codec if context.bounds is None else self.codec.of_market(context.bounds())

    @classmethod
    def agent_digest(cls, checkpoint: str | None) -> str:  # noqa: ARG003 - it takes none
        """Return the SHA-256 of the callable or the network."""
        return cls.digest

    def act(self, observation: Observation) -> Offer:
        """Return the offer that the agent's action makes, cut to the budget."""
        try:
            return self._codec.decode(type(self).decides(self._codec.encode(observation)), observation)
        except Exception as error:
            if place(error):  # in the agent's own code, which whoever plays the round will name
                raise
            what = str(error) if isinstance(error, ActionError) else describe(error)
            raise PluginFailed(
                f"policy {type(self).__name__!r} of service {observation.service!r} failed to act in round "
                f"{observation.round}, in a market of {len(observation.services)} services and {observation.clients} "
                f"clients: {what} ({self.made_in})"
            ) from error


def policy_from(act: Callable[[Any], Any], *, spaces: Codec, name: str) -> type[Policy]:
    """Return the policy of an agent that was trained in an environment, registered by its name.

    ``run``, the suite, the league and all else play it like any other. In each market it sees what an environment of
    that market shows: the format and the payment limit are those of ``spaces``, and the scale is the market's own.

    Args:
        act: from what the agent sees, ``spaces.encode(observation)``, to its action, which ``spaces.decode`` takes. A
            ``torch.nn.Module`` is copied, and gets and returns tensors of flat spaces, without gradients, in evaluation
            mode. For the same bytes in each run, act must draw nothing and remember nothing.
        spaces: as the agent was trained; see ``flmarket.spaces``.
        name: what it is called in logs and tables, and on the command line. A later agent of the same
            module, or notebook, may take it again.

    Raises:
        InputError: act or spaces cannot be used.
        PluginError: the name is taken or invalid.
    """
    if not isinstance(spaces, Codec):
        raise InputError(f"spaces = {str(spaces)[:80]!r}: must be what flmarket.spaces returns")
    if not callable(act):
        raise InputError(f"act = {str(act)[:80]!r}: must be a callable or a torch.nn.Module")
    caller = sys._getframe(1)
    module, made_in = caller.f_globals["__name__"], f"{caller.f_code.co_filename}:{caller.f_lineno}"
    record = recorded(act, type(spaces).__name__, spaces.payment_limit, otherwise=uuid4().hex)
    members = {
        "__module__": module,
        "__doc__": f"The agent of {made_in}.",
        "decides": staticmethod(_callable(act)),
        "codec": spaces,
        "digest": record["sha256"],
        "made_in": made_in,
    }
    policy: type[Policy] = type(name, (AgentPolicy,), members)
    POLICIES.register(name, policy, {"file": module, **record})
    return policy


def _callable(act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what decides on arrays: a copy of a network, which may learn on, or the callable itself."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(act, torch.nn.Module):
        return act
    network = deepcopy(act).cpu().eval()

    def decide(seen: Any) -> Any:
        with torch.no_grad():
            return network(torch.as_tensor(seen)).numpy()

    return decide
