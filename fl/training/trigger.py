"""Triggers: the rule by which a service decides when it makes a new model of the updates that have arrived.

Where all of a round's updates are awaited, as in the paper, there is nothing to decide. Where jobs outlast the periods
of a market (``timeline.mode = "continuous"``), updates come one after another, and of different ages.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from fl.arithmetic.elementary import power
from fl.arrays import Float32Array
from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import method, plugin_code
from flmarket.core.plugins import Registry, built_in, subclass_problem


class Gathered(NamedTuple):
    """What a service has gathered since its last model, when it is asked what it does next.

    Attributes:
        arrived: how many updates have arrived that are not part of its model yet.
        at_work: how many clients are still at work for it.
        closing: whether the slot ends now; otherwise an update has just arrived, or been lost, or a period begins.
        late: how many of those at work began with an older model than its last one.
    """

    arrived: int
    at_work: int
    closing: bool
    late: int = 0


class Trigger(ABC):
    """A service's rule of when it aggregates. Subclasses may take keyword arguments: ``timeline.aggregate.options``.

    The staleness of an update is the number of models that its service has made since it handed out the one that the
    client began with.
    """

    summary: ClassVar[str] = ""
    """One line for ``flmarket plugins``; by default the first line of the docstring."""

    @abstractmethod
    def due(self, gathered: Gathered) -> bool:
        """Return whether the service makes a new model now, of all updates that it has gathered, at least one."""

    def recruits(self, gathered: Gathered) -> bool:
        """Return whether the service wants clients at the start of a period."""
        return True

    def share(self, staleness: int) -> float:
        """Return how much of an update counts, from 0 to 1, given its staleness.

        One that counts nothing as it arrives is paid, but is not gathered.
        """
        return 1.0

    def brought_up(self, model: Float32Array, begun: Float32Array, old: Float32Array, staleness: int) -> Float32Array:
        """Return a client's model [P] as the aggregator is to take it.

        By default it is the old model with the ``share`` of what the client has changed.

        Args:
            model: what the client has trained.
            begun: the global model that it began with.
            old: the global model now, which is another one if the update is stale.
            staleness: see above.
        """
        share = self.share(staleness)
        if staleness == 0 and share == 1.0:  # the old model is the one that it began with
            return model
        return (old + share * (model.astype(np.float64) - begun)).astype(np.float32)


def agrees(trigger: Trigger, question: Literal["due", "recruits"], gathered: Gathered, service: str, of: int) -> bool:
    """Return what a trigger says of a service in a round; RunError if that is neither True nor False."""
    said = _answer(trigger, question, gathered, of=(service, of))
    if said is True or said is False:
        return said
    raise RunError(f"{_asked(trigger, question, (service, of))}: must return True or False, not {said!r}")


def share_of(trigger: Trigger, staleness: int, service: str | None = None) -> float:
    """Return how much of an update counts; RunError if that is not from 0 to 1."""
    share = _answer(trigger, "share", staleness, of=(service, None))
    if not (isinstance(share, int | float) and 0 <= share <= 1):
        asked = _asked(trigger, "share", (service, None))
        raise RunError(f"{asked}: must return a number from 0 to 1, not {share!r}")
    return float(share)


_Asking = tuple[str | None, int | None]  # the service and the round, as far as they are known


def _answer(trigger: Trigger, question: str, *given: Any, of: _Asking = (None, None)) -> Any:
    """Return what a method of a trigger returns, or raise a RunError that names its file and line if it fails."""
    try:
        return getattr(trigger, question)(*given)
    except (Exception, SystemExit):
        with plugin_code(f"{_asked(trigger, question, of)} failed"):
            raise


def _asked(trigger: Trigger, question: str, of: _Asking) -> str:
    """Return what a message calls a question to a trigger."""
    service, number = of
    whose = f" of service {service!r}" if service is not None else ""
    return f"trigger {method(trigger, question)}{whose}" + (f" in round {number}" if number is not None else "")


def model_of(
    trigger: Trigger, model: Float32Array, begun: Float32Array, old: Float32Array, staleness: int
) -> Float32Array:
    """Return a client's model [P] as the aggregator is to take it; RunError if that is no such model."""
    share_of(trigger, staleness)
    brought = np.asarray(_answer(trigger, "brought_up", model, begun, old, staleness))
    fits = brought.shape == old.shape and brought.dtype.kind == "f"
    if not fits or (np.isfinite(model).all() and not np.isfinite(brought).all()):
        got = f"{brought.dtype} of shape {brought.shape}" if not fits else "others"
        what = f"must return finite floats of shape {old.shape}, not {got}"
        raise RunError(f"trigger {method(trigger, 'brought_up')}: {what}")
    return brought.astype(np.float32, copy=False)


def polynomial(staleness: int, exponent: float) -> float:
    """Return (1 + staleness)^-exponent, to the same bit on every machine (Xie, Koyejo and Gupta, 2019)."""
    return power(1.0 + staleness, -exponent) if staleness and exponent else 1.0


WAIT = "wait-for-all"
"""The paper's."""

TRIGGERS: Registry[type[Trigger]] = Registry(
    "trigger", "flmarket.triggers", built_in("fl.training.triggers"), partial(subclass_problem, base=Trigger)
)
"""All triggers, by name."""

trigger = TRIGGERS.decorator
"""Return a class decorator that registers a subclass of ``Trigger``: ``@trigger("every-other")``."""
