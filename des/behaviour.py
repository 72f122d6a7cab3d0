"""Client behaviour: what clients ask for their work and report of their data; the one seam for it.

What the work costs a client and what it asks for it are two things. So are the data that it holds and the data that it
reports: services see the reports, and training uses what is there.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from des.money import Micro, MicroArray
from fl.arrays import BoolArray, FloatArray, IntArray, read_only
from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import method
from flmarket.core.plugins import Registry, built_in, subclass_problem


@dataclass(frozen=True, slots=True)
class Setting:
    """The market that clients behave in, as it is known before its first round.

    Attributes:
        seed: the run's seed.
        services: M.
        clients: how many behave so: C, or those of a group with a behaviour of its own.
        cores: K, how many services a client can serve at once.
        highest: [M] the highest cost of any data that a client of the market can report to each service, micro-units.
        group: [clients] the numbers that they have among all clients, ascending; None where they are all.
    """

    seed: int
    services: int
    clients: int
    cores: int
    highest: MicroArray
    group: IntArray | None = None

    @property
    def numbers(self) -> IntArray:
        """The numbers [clients] that clients have in the market.

        Draws keyed by these differ between groups of one behaviour, and stay as they are when groups are added.
        """
        return np.arange(self.clients) if self.group is None else self.group


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a round's offers, one entry for each, from which clients learn. Money is in micro-units.

    Attributes:
        services: [offers] index of the service.
        clients: [offers] index of the client that it wanted.
        served: [offers] whether the client served it.
        paid: [offers] what the client was paid; 0 where it did not serve.
        cost: [offers] what the work costs the client.
    """

    services: IntArray
    clients: IntArray
    served: BoolArray
    paid: MicroArray
    cost: MicroArray

    @classmethod
    def of(cls, offers: Iterable[tuple[str, int, Micro | None]], names: Sequence[str], costs: MicroArray) -> "Outcomes":
        """Return the outcomes of offers.

        Args:
            offers: service, client, and what it was paid, None if it did not serve; in the order of offers.csv.
            names: of the services.
            costs: [M, C] what the work costs each client, micro-units.
        """
        rows = list(offers)
        places = {name: m for m, name in enumerate(names)}
        services = np.array([places[name] for name, _, _ in rows], dtype=np.int64)
        clients = np.array([client for _, client, _ in rows], dtype=np.int64)
        served = np.array([paid is not None for _, _, paid in rows], dtype=np.bool_)
        amounts = np.array([paid or 0 for _, _, paid in rows], dtype=np.int64)
        cost = read_only(costs[services, clients])
        return cls(read_only(services), read_only(clients), read_only(served), read_only(amounts), cost)


class Behaviour(ABC):
    """The behaviour of clients: those of a market, or of a group.

    Subclasses may take keyword arguments: ``clients.behaviour.options``.

    What a client bids may depend on the round, on the cost of the data that it reports, on keyed draws and on the
    outcomes of earlier rounds, which it gets through ``close``. It must not depend on anything else, so that the same
    run gives the same bytes and can be replayed from its logs.
    """

    summary: ClassVar[str] = ""
    """One line for ``flmarket plugins``; by default the first line of the docstring."""

    misreports: bool = False
    """Whether clients may report other data than they hold; only then ``report`` and ``misreporting`` are called."""

    def begin(self, setting: Setting) -> None:  # noqa: B027 - many behaviours do without
        """Start in a market, before its first round. An object serves one market at a time."""

    @abstractmethod
    def bids(self, round_: int, costs: MicroArray) -> MicroArray:
        """Return the bids [M, C] of all clients to all services, micro-units, none of them negative.

        Called with equal arguments between two calls of ``close``, it must return equal bids.

        Args:
            round_: n, from 1.
            costs: [M, C] what work on the data costs that each client reports, micro-units; read-only.
        """

    @abstractmethod
    def bid_range(self, lowest: MicroArray, highest: MicroArray) -> tuple[MicroArray, MicroArray]:
        """Return the lowest [M] and the highest [M] bids that costs within these ranges can lead to, micro-units.

        Args:
            lowest, highest: [M] the range of the costs for each service, micro-units.
        """

    def report(self, data_size: IntArray, emd: FloatArray, largest_emd: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return what a client that misreports says of data; each element depends on the same element alone.

        Args:
            data_size: [...] D, images.
            emd: [...] realised EMD (eq. 1).
            largest_emd: [...] the largest EMD that data with as many labels can have; broadcasts.
        """
        return data_size, emd

    def misreporting(self, round_: int) -> BoolArray | None:
        """Return which clients [C] misreport in a round; None if none do."""
        return None

    def close(self, round_: int, outcomes: Outcomes) -> None:  # noqa: B027 - most behaviours learn nothing
        """Learn from what came of a round's bids, for those of the next one. Called once in each round."""

    def state(self) -> Mapping[str, Any]:
        """Return what ``close`` has learned as plain data, from which a run resumes; by default nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - most behaviours learn nothing
        """Take back what ``state`` returned."""

    @property
    def learns(self) -> bool:
        """Whether bids depend on what came of earlier ones, and so on what services do."""
        return type(self).close is not Behaviour.close


class BehaviourError(RunError):
    """A behaviour returned what cannot be meant."""


def bids_of(behaviour: Behaviour, round_: int, costs: MicroArray) -> MicroArray:
    """Return the bids [M, C] of a round as int64, micro-units, all of at least 0.

    Raises:
        BehaviourError: they are something else.
    """
    returned = behaviour.bids(round_, costs)
    if returned is costs:  # those of truthful clients; nobody can have changed them
        return costs
    bids = np.asarray(returned)
    where = f"behaviour {method(behaviour, 'bids')}, round {round_}"
    if bids.shape != costs.shape or bids.dtype.kind != "i":
        raise BehaviourError(
            f"{where}: must return whole numbers of shape {costs.shape}, not {bids.dtype} of shape {bids.shape}"
        )
    if (bids < 0).any():
        raise BehaviourError(f"{where}: a bid is negative")
    return bids.astype(np.int64)


def reports_of(
    behaviour: Behaviour, data_size: IntArray, emd: FloatArray, largest_emd: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return what clients that misreport say of data; see ``Behaviour.report``.

    Raises:
        BehaviourError: no data set can be that.
    """
    reports = behaviour.report(read_only(data_size), read_only(emd), read_only(largest_emd))
    size, other = map(np.asarray, reports if isinstance(reports, tuple) and len(reports) == 2 else (None, None))
    possible = size.shape == other.shape == emd.shape and size.dtype.kind == "i" and other.dtype.kind == "f"
    if not (possible and (size >= 1).all() and ((other >= 0) & (other <= largest_emd)).all()):
        raise BehaviourError(
            f"behaviour {method(behaviour, 'report')}: must return whole numbers of at least 1 and EMDs from 0 to the "
            f"largest one, each of shape {emd.shape}"
        )
    return size.astype(np.int64), other.astype(np.float64)


def liars_of(behaviour: Behaviour, round_: int, clients: int) -> BoolArray | None:
    """Return which clients [C] misreport in a round; None if none do.

    Raises:
        BehaviourError: the behaviour did not return one truth value for each client.
    """
    liars = behaviour.misreporting(round_) if behaviour.misreports else None
    if liars is None:
        return None
    if np.shape(liars) != (clients,) or np.asarray(liars).dtype != np.bool_:
        raise BehaviourError(
            f"behaviour {method(behaviour, 'misreporting')}, round {round_}: must return {clients} truth values, one "
            "for each client"
        )
    return np.asarray(liars)


TRUTHFUL = "truthful"
"""The default: clients bid their costs, as in the paper."""


BEHAVIOURS: Registry[type[Behaviour]] = Registry(
    "behaviour", "flmarket.behaviours", built_in("des.behaviours"), partial(subclass_problem, base=Behaviour)
)
"""All client behaviours, by name."""

behaviour = BEHAVIOURS.decorator
"""Return a class decorator that registers a subclass of ``Behaviour``: ``@behaviour("greedy")``."""
