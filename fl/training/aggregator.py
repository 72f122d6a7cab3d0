"""Aggregators: the rule by which a service makes its new model of its clients' updates; the one seam for it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from fl.arrays import AnyArray, Float32Array, FloatArray, IntArray, read_only
from flmarket.core.errors import InputError, RunError
from flmarket.core.plugin_errors import method, plugin_code
from flmarket.core.plugin_options import in_range
from flmarket.core.plugins import Registry, built_in, subclass_problem


class Updates:
    """The models that clients delivered to one service in a round, in the order of the clients' numbers.

    All arrays are read-only.

    Attributes:
        weights: [n] the data sizes that the clients report, images; each at least 1.
        old: [P] the global model that they began with.
        noise: [n] the standard deviation of the noise that each has added to every parameter for its privacy.
    """

    def __init__(
        self,
        models: Iterable[Float32Array],
        weights: Sequence[int],
        old: Float32Array,
        noise: Sequence[float] | None = None,
    ) -> None:
        self._coming, self._begun = iter(models), False
        self.noise: FloatArray = read_only(
            np.zeros(len(weights)) if noise is None else np.array(noise, dtype=np.float64)
        )
        self.weights: IntArray = read_only(np.array(weights, dtype=np.int64))
        self.old = read_only(old)

    @cached_property
    def models(self) -> Float32Array:
        """The models, [n, P]."""
        return read_only(np.array(list(self._unread()), dtype=np.float32))

    def one_by_one(self) -> Iterator[Float32Array]:
        """Return an iterator over the models [P] that keeps none, for rules that need not have all of them at once.

        Raises:
            AggregatorError: it is the second one, and ``models`` was not read before.
        """
        return map(read_only, self.models if "models" in vars(self) else self._unread())

    def _finish(self) -> None:
        """Take the models that have not been read; they cannot be read any more."""
        self._begun = True
        for _ in self._coming:
            pass

    def _unread(self) -> Iterator[Float32Array]:
        if self._begun:
            raise AggregatorError("models are read one by one only once; use updates.models")
        self._begun = True
        return self._coming


class Aggregator(ABC):
    """A service's rule of aggregation. Subclasses may take keyword arguments: ``training.aggregation.options``.

    Each service has an object of its own. A new model may depend on the updates and on those of earlier rounds, and on
    nothing else, so that the same run gives the same bytes; compute without a BLAS (``@``, ``dot``, ``norm``), which
    adds in an order that depends on the processor.
    """

    summary: ClassVar[str] = ""
    """One line for ``flmarket plugins``; by default the first line of the docstring."""

    proximal: float = 0.0
    """mu: clients minimise their loss plus ``mu / 2`` times the squared distance to the old model."""

    @abstractmethod
    def aggregate(self, updates: Updates) -> FloatArray | Float32Array:
        """Return the new global model [P]. There is at least one update."""

    def state(self) -> Mapping[str, AnyArray]:
        """Return what it keeps from round to round, arrays of numbers from which a run resumes; by default nothing."""
        return {}

    def restore(self, state: Mapping[str, AnyArray]) -> None:  # noqa: B027 - most keep nothing
        """Take back what ``state`` returned."""


class AggregatorError(RunError):
    """An aggregator returned what cannot be meant."""


def aggregate(aggregator: Aggregator, updates: Updates, where: str) -> Float32Array:
    """Return the new global model [P], which may have numbers that are not finite: the caller checks.

    Args:
        aggregator: the rule.
        updates: what clients delivered; all of them are taken, whether the rule looks at them or not.
        where: the service and the round, for messages.

    Raises:
        AggregatorError: it returned something else.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of models that have diverged
        with plugin_code(f"aggregator {method(aggregator, 'aggregate')} failed, {where}"):
            new = np.asarray(aggregator.aggregate(updates))
        updates._finish()
        if new.shape != updates.old.shape or new.dtype.kind != "f":
            raise AggregatorError(
                f"aggregator {method(aggregator, 'aggregate')}, {where}: must return floats of shape "
                f"{updates.old.shape}, not {new.dtype} of shape {new.shape}"
            )
        return new.astype(np.float32)


def proximal_weight(aggregator: Aggregator) -> float:
    """Return the weight of the proximal term that an aggregator declares; InputError if it is no number from 0."""
    try:
        return in_range("proximal", aggregator.proximal, 0)
    except ValueError as error:
        raise InputError(f"aggregator {type(aggregator).__name__}: {error}") from error


def checkpoint_arrays(aggregator: Aggregator) -> dict[str, AnyArray]:
    """Return what an aggregator keeps (``state``), as a checkpoint stores it.

    Raises:
        AggregatorError: it is something else than arrays of numbers.
    """
    state = {key: np.array(value, order="C") for key, value in aggregator.state().items()}
    if not all(isinstance(key, str) and value.dtype.kind in "fiub" for key, value in state.items()):
        raise AggregatorError(f"aggregator {method(aggregator, 'state')} must return arrays of numbers, by name")
    return state


def mean_of(rows: AnyArray) -> FloatArray:
    """Return the mean [P] of rows [n, P], each as heavy as the others; they are added in their order, to 0.0.

    So it is the same in whichever order a sort leaves zeros of both signs.
    """
    total = np.zeros(rows.shape[1])
    for row in rows:
        total += row
    return total / len(rows)


def outliers(share: float, clients: int) -> int:
    """Return how many of so many clients a share below 0.5 of them is, rounded down; always less than half of them."""
    return min(int(share * clients + 1e-9), (clients - 1) // 2)  # 0.29 * 100 is a little less than 29


FEDAVG = "fedavg"
"""The paper's."""

AGGREGATORS: Registry[type[Aggregator]] = Registry(
    "aggregator",
    "flmarket.aggregators",
    built_in("fl.training.aggregators"),
    partial(subclass_problem, base=Aggregator),
)
"""All aggregators, by name."""

aggregator = AGGREGATORS.decorator
"""Return a class decorator that registers a subclass of ``Aggregator``: ``@aggregator("mine")``."""
