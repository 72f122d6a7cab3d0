"""Responses: how much clients do of the work that they were awarded; the one seam for it.

Between award and work a client answers with a quantity from 0 to 1: the part of its data, of the local epochs or of the
privacy loss that it gives. It is paid by what it promises; models are trained with what it does.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from typing import ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from des.mechanism import Menu
from des.money import MICRO, MicroArray, part_of, to_micro
from fl.arrays import FloatArray, IntArray
from fl.training.jobs import HONEST, TrainingJob
from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import method
from flmarket.core.plugins import Registry, built_in, subclass_problem

Amount = TypeVar("Amount", int, IntArray)

_HALVINGS = 30  # of the range of quantities: 2^-30 is below 1e-9
_MOST = 1e7  # money; as the largest cost


@dataclass(frozen=True, slots=True)
class Awards:
    """The awards of a round before clients answer, one entry for each. Arrays are read-only; money is in its unit.

    Attributes:
        round: n, from 1.
        services: [awards] index of the service that was awarded the client's work.
        clients: [awards] index of the client.
        price: [awards] what the service pays for all of the work.
        cost: [awards] what all of the work costs the client, as ``clients.cost`` has it.
        data_size: [awards] D that the client holds, images.
        emd: [awards] realised EMD of its data (eq. 1).
        unit: [awards] the client's private type.
        menu: what the mechanism posts in place of a price for each part of the work; None if it posts nothing.
    """

    round: int
    services: IntArray
    clients: IntArray
    price: FloatArray
    cost: FloatArray
    data_size: IntArray
    emd: FloatArray
    unit: FloatArray
    menu: Menu | None = None


class Response(ABC):
    """The way clients answer. Subclasses may take keyword arguments: ``clients.response.options``.

    An answer follows from the awards alone: equal awards are answered equally, in any order of calls.
    """

    summary: ClassVar[str] = ""
    """One line for ``flmarket plugins``; by default the first line of the docstring."""

    @abstractmethod
    def respond(self, awards: Awards) -> FloatArray:
        """Return the quantity [awards] that each client promises, 0 to 1; with 0 it declines.

        Where there is a menu, it is one of the quantities on it, or 0.
        """

    def work(self, awards: Awards, promised: FloatArray) -> FloatArray:
        """Return the quantity [awards] that clients really do: above 0 and up to what they promised, the default.

        Who does less is paid by its promise, unless the mechanism settles after delivery.
        """
        return promised

    def cost(self, awards: Awards, quantity: FloatArray) -> FloatArray:
        """Return what quantities cost clients, money [awards]; by default a part of the whole cost.

        Nothing for a quantity of 0, and rising in it.
        """
        return awards.cost * quantity

    def best_entry(self, awards: Awards, menu: Menu) -> FloatArray:
        """Return the quantity [awards] of the entry that leaves each client the most; 0 where all leave it a loss."""
        payments = np.broadcast_to(menu.payment, (len(awards.price), len(menu.quantity))) / MICRO
        utility = np.stack(
            [
                payments[:, entry] - self.cost(awards, np.full(len(awards.price), quantity))
                for entry, quantity in enumerate(menu.quantity.tolist())
            ]
        )
        best = utility.argmax(axis=0)
        chosen: FloatArray = np.where(utility.max(axis=0) < 0, 0.0, menu.quantity[best])
        return chosen


class BestResponse(Response):
    """Clients do what leaves them the most: payment less cost, a concave utility where the cost is convex."""

    @abstractmethod
    def marginal(self, awards: Awards, quantity: FloatArray) -> FloatArray:
        """Return the slope [awards] of ``cost`` at quantities: what a little more costs, by its amount; not falling."""

    def respond(self, awards: Awards) -> FloatArray:
        """Return the best responses: off a menu the entry that leaves the most, else the quantity to 1e-9."""
        if awards.menu is not None:
            return self.best_entry(awards, awards.menu)
        quantity = np.zeros(len(awards.price))
        for halving in range(1, _HALVINGS + 1):
            step = 2.0**-halving
            quantity += step * (self.marginal(awards, quantity + step) <= awards.price)
        all_of_it = self.marginal(awards, np.ones(len(quantity))) <= awards.price
        return np.where(all_of_it, 1.0, quantity)


def _smaller(job: TrainingJob, size: int) -> TrainingJob:
    """Return a job on so many of its images: of each label as many as its share, spread over those that are owned."""
    counts = (
        None if job.counts is None else tuple(np.diff(np.cumsum(job.counts) * size // job.size, prepend=0).tolist())
    )
    images = None if job.images is None else job.images[np.arange(size) * job.size // size]
    return job._replace(size=size, counts=counts, images=images)


class Answers(NamedTuple):
    """What clients answer to awards, [awards] each; quantities in millionths, money in micro-units."""

    promised: IntArray
    done: IntArray
    payment: MicroArray  # for what is promised
    cost: MicroArray  # of what is done


class ResponseError(RunError):
    """A response returned what cannot be meant."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which clients answer in a market."""

    response: Response
    of: Literal["data", "epochs", "epsilon", "speed"] = "data"  # what quantities are parts of
    epsilon: float = 1.0  # the privacy loss of all of the work
    delta: float = 1e-5  # the probability with which it may be more
    clip: float = 1.0  # the L2 norm to which updates are clipped before noise is added

    def answers(self, awards: Awards, prices: MicroArray) -> Answers:
        """Return what clients answer, given what all of the work is paid, micro-units.

        Raises:
            ResponseError: quantities are not 0 to 1, not on the menu, or more is done than was promised.
        """
        shape = awards.price.shape
        given = self._numbers("respond", self.response.respond(awards), shape)
        promised = self._quantities("respond", given)
        payment = part_of(prices, promised) if awards.menu is None else self._off_menu(awards.menu, promised)
        done = self._quantities("work", self._numbers("work", self.response.work(awards, promised / MICRO), shape))
        if ((done > promised) | ((done == 0) & (promised > 0))).any():
            raise self._refusal("work", "what is done must be above 0, and at most what was promised")
        costs = self._numbers("cost", self.response.cost(awards, done / MICRO), shape)
        if ((costs < 0) | (costs > _MOST)).any():
            raise self._refusal("cost", f"a cost is below 0, or above {_MOST:,.0f}")
        return Answers(promised, done, payment, to_micro(costs))

    def images(self, size: Amount, quantity: Amount) -> Amount:
        """Return how many images a part of the work is; at least one where it is anything."""
        return -(-size * quantity // MICRO) if self.of == "data" else size

    def epochs(self, epochs: Amount, quantity: Amount) -> Amount:
        """Return how many local epochs a part of the work is; at least one where it is anything."""
        return -(-epochs * quantity // MICRO) if self.of == "epochs" else epochs

    def duration(self, compute: IntArray, quantity: IntArray) -> IntArray:
        """Return how long clients compute at a part of their speed, given how long they would at all of it."""
        return -(-compute * MICRO // np.maximum(quantity, 1)) if self.of == "speed" else compute

    def training(
        self,
        jobs: Iterable[TrainingJob],  # of one service, each all of the work
        samples: Iterable[int],  # the images that each client says it trains on
        done: Iterable[int],  # the part that each does, in millionths
        epochs: int,  # local epochs of all of the work
    ) -> list[TrainingJob]:
        """Return what is really trained.

        A part of the privacy loss epsilon is that of the Gaussian mechanism: noise of standard deviation
        ``clip sqrt(2 ln(1.25 / delta)) / epsilon``.
        """
        return [self._part(*each, epochs) for each in zip(jobs, samples, done, strict=True)]

    def _part(self, job: TrainingJob, samples: int, done: int, epochs: int) -> TrainingJob:
        part, conduct = _smaller(job, self.images(job.size, done)), job.conduct or HONEST
        if (own := self.epochs(epochs, done)) < epochs:
            conduct = conduct._replace(epochs=own)
        if self.of == "epsilon":
            noise = self.clip * sqrt(2 * log(1.25 / self.delta)) * MICRO / (self.epsilon * done)
            conduct = conduct._replace(clip=self.clip, noise=noise)
        return part._replace(reported=samples, conduct=job.conduct if conduct == HONEST else conduct)

    def _quantities(self, name: str, values: FloatArray) -> IntArray:
        if ((values < 0) | (values > 1)).any():
            raise self._refusal(name, f"quantities are 0 to 1, not {values.min():g} to {values.max():g}")
        return to_micro(values)

    def _off_menu(self, menu: Menu, promised: IntArray) -> MicroArray:
        """Return what is paid for the entries of a menu that were chosen."""
        chosen = promised[:, None] == to_micro(menu.quantity)
        if not (chosen.any(axis=1) | (promised == 0)).all():
            raise self._refusal("respond", "a quantity is not on the menu, and not 0")
        payments = np.broadcast_to(menu.payment, chosen.shape)
        paid: MicroArray = np.where(promised == 0, 0, payments[np.arange(len(chosen)), chosen.argmax(axis=1)])
        return paid

    def _numbers(self, name: str, returned: object, shape: tuple[int, ...]) -> FloatArray:
        values = np.asarray(returned)
        if values.shape != shape or values.dtype.kind not in "fi" or not np.isfinite(values).all():
            raise self._refusal(name, f"must return {shape[0]} finite numbers, one for each award")
        return values.astype(np.float64)

    def _refusal(self, name: str, problem: str) -> ResponseError:
        return ResponseError(f"response {method(self.response, name)}: {problem}")


RESPONSES: Registry[type[Response]] = Registry(
    "response", "flmarket.responses", built_in("des.responses"), partial(subclass_problem, base=Response)
)
"""All responses, by name."""

response = RESPONSES.decorator
"""Return a class decorator that registers a subclass of ``Response``: ``@response("half")``."""
