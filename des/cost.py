"""Costs: what the work of a round costs a client; the one seam for it.

A cost follows from the client's data, its speed and its private type. What the client asks is another thing: behaviours
make bids of costs. Profit, certificates and bounds use the costs themselves.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np

from des.money import MicroArray, to_micro
from fl.arithmetic.draws import uniforms
from fl.arrays import AnyArray, FloatArray, IntArray, UInt32Array, read_only
from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import method
from flmarket.core.plugins import Registry, built_in, subclass_problem

LARGEST_COST = 10_000_000
"""Money; the costs of the largest population still add up inside 64 bits of micro-units."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a round. The arrays are read-only and broadcast to one shape, usually [M, C].

    Attributes:
        data_size: D, images.
        emd: realised EMD (eq. 1).
        speed: each client's speed; 2 computes twice as fast as the timeline's ``seconds_per_sample``.
        unit: each client's private type, drawn once for the whole run (``clients.cost.unit``); 1 where none is drawn.
    """

    data_size: IntArray
    emd: FloatArray
    speed: FloatArray
    unit: FloatArray


class Cost(ABC):
    """What work costs the clients of one kind. Subclasses may take keyword arguments: ``clients.cost.options``."""

    summary: ClassVar[str] = ""
    """One line for ``flmarket plugins``; by default the first line of the docstring."""

    uses_speed: ClassVar[bool] = True
    """Whether a client's speed plays a part.

    Where neither speeds nor types make a difference, costs of listed data are worked out once, not in each round.
    """

    @abstractmethod
    def amounts(self, work: Work) -> FloatArray:
        """Return the costs, money, each from the same element of the work alone, none of them negative.

        As one of data size, EMD, speed and type rises, a cost must go one way: the range of costs, from which the
        spaces of environments follow, is that at the ends of theirs.
        """


class CostError(RunError):
    """A cost returned what cannot be meant, or is negative for data that clients hold."""


@dataclass(frozen=True, slots=True)
class PrivateType:
    """The distribution of a number that each client knows of itself, drawn once for the whole run."""

    uniform: tuple[float, float] | None = None  # its ends
    choices: tuple[float, ...] = (1.0,)  # all equally likely, where it is not uniform
    per_service: bool = False  # whether a client has one for each service

    @property
    def ends(self) -> tuple[float, float]:
        return self.uniform or (min(self.choices), max(self.choices))

    def draw(self, key: UInt32Array, services: int, clients: IntArray) -> FloatArray:
        """Return the types of clients, given by their indices: [M, clients], or [1, clients]."""
        draws = uniforms(key, 0, np.arange(services if self.per_service else 1)[:, None], clients)[0]
        if self.uniform:
            low, high = self.uniform
            types: FloatArray = low + (high - low) * draws
            return types
        values: FloatArray = np.array(self.choices)[(draws * len(self.choices)).astype(np.int64)]
        return values


ALIKE = PrivateType()
"""All clients are of type 1."""


def costs(
    cost: Cost, size: AnyArray, emd: FloatArray, speed: FloatArray | np.float64, unit: FloatArray | np.float64
) -> MicroArray:
    """Return what work costs, micro-units, in the shape of ``size``.

    Raises:
        CostError: the cost returned no finite numbers of that shape, or one above ``LARGEST_COST``.
    """
    return _money(cost, _amounts(cost, size, emd, speed, unit))


def require_not_negative(cost: Cost, amounts: MicroArray, size: AnyArray, emd: FloatArray) -> None:
    """Raise a CostError where what data sets cost, arrays of one shape, is negative."""
    if amounts.size and amounts.min() < 0:
        at = np.unravel_index(amounts.argmin(), amounts.shape)
        raise _refusal(cost, f"a cost is negative, that of {size[at]:.0f} images at EMD {emd[at]:g}")


def cost_ends(
    cost: Cost, size: AnyArray, emd: FloatArray, speeds: Sequence[float], unit: PrivateType
) -> tuple[MicroArray, MicroArray]:
    """Return the lowest and the highest cost of each data set, micro-units, over clients' speeds and types.

    It is the same array twice where neither makes a difference. Errors as in ``costs``.
    """
    ends = [_money(cost, amounts) for amounts in amounts_at_ends(cost, size, emd, speeds, unit)]
    if len(ends) == 1:
        return ends[0], ends[0]
    return np.minimum.reduce(ends), np.maximum.reduce(ends)


def amounts_at_ends(
    cost: Cost, size: AnyArray, emd: FloatArray, speeds: Sequence[float], unit: PrivateType
) -> list[FloatArray]:
    """Return the costs of data sets, money, at the ends of the ranges of speeds and types."""
    ends = {min(speeds), max(speeds)} if cost.uses_speed else {1.0}
    corners = product(sorted(ends), sorted(set(unit.ends)))
    return [_amounts(cost, size, emd, np.float64(speed), np.float64(each)) for speed, each in corners]


def _amounts(cost: Cost, *work: AnyArray | np.float64) -> FloatArray:
    size = work[0]
    amounts = np.asarray(cost.amounts(Work(*(read_only(np.asarray(each)) for each in work))))
    if amounts.shape != size.shape or amounts.dtype.kind not in "fi":
        raise _refusal(cost, f"must return numbers of shape {size.shape}, not {amounts.dtype} of {amounts.shape}")
    if not np.isfinite(amounts).all():
        raise _refusal(cost, "a cost is not finite")
    return amounts.astype(np.float64, copy=False)


def _money(cost: Cost, amounts: FloatArray) -> MicroArray:
    if amounts.size and amounts.max() > LARGEST_COST:
        raise _refusal(cost, f"a cost of {amounts.max():.6f} is above the limit of {LARGEST_COST:,}")
    money: MicroArray = to_micro(amounts)
    return money


def _refusal(cost: Cost, problem: str) -> CostError:
    return CostError(f"cost {method(cost, 'amounts')}: {problem}")


LINEAR = "linear"
"""The paper's."""

COSTS: Registry[type[Cost]] = Registry(
    "cost", "flmarket.costs", built_in("des.costs"), partial(subclass_problem, base=Cost)
)
"""All costs, by name."""

cost = COSTS.decorator
"""Return a class decorator that registers a subclass of ``Cost``: ``@cost("electricity")``."""
