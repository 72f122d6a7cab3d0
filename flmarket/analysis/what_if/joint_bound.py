"""The most that the services of a round could have had together: a bound that no policy or mechanism can exceed.

What counts is the DQI (eq. 6) of the clients that serve, summed over services. The bound is its maximum over all
allocations that keep K and in which each service could pay its clients' bids within its budget; a mechanism never pays
less. Small markets are solved exactly, by knapsacks of the services, or else as a 0/1 program; in others the bound is
the linear relaxation's, which is never below.
"""

from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from math import fsum
from typing import Any

import numpy as np

from des.mechanisms.vcg import budget_cuts
from des.money import MICRO, MicroArray
from fl.arithmetic.elementary import rounded
from fl.arrays import BoolArray, FloatArray, IntArray
from learning.client_selection.knapsack import knapsack

LARGEST = 200
"""Pairs of a service and a client, up to which the 0/1 program is solved; its time grows steeply with them."""

TRIES = 50
"""Branches of knapsacks that are looked at before the 0/1 program; most rounds of `paper` need one or two."""

NODES = 500
"""Branches that the solver may look at before the relaxation takes its place: no time, so that machines agree."""

CUTS = 20  # rounds of cuts, one for each answer that exceeds a budget by some micro-units

WHOLE = 10_000
"""The largest bid of a service as a multiple of a common amount, up to which the solver counts in those amounts."""

_SCALE = 1000.0  # the largest worth as the solver sees it: it stops within 1e-6 of the optimum, whatever the unit


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound of the DQI that serves in a round."""

    value: float  # the bound
    exact: bool  # whether it is reached by an allocation, or only that of the relaxation


def joint_bound(
    worth: FloatArray,  # [M, C] what each client is worth to each service; without a positive worth, it is not taken
    bids: MicroArray,  # [M, C] micro-units
    budgets: MicroArray,  # [M] micro-units
    cores: int | IntArray,  # K, or [C] what each client has
) -> Bound:
    """Return the most that services can have together."""
    cores = np.broadcast_to(cores, worth.shape[1])
    of = np.flatnonzero((worth > 0) & (bids <= budgets[:, None]))
    if not len(of):
        return Bound(0.0, exact=True)
    service, client = np.divmod(of, worth.shape[1])
    if len(of) <= LARGEST and (best := _by_knapsacks(worth, bids, budgets, cores)) is not None:
        return Bound(best, exact=True)
    program = _Program(worth.ravel()[of], bids.ravel()[of], service, client, budgets, cores)
    if len(of) <= LARGEST and (chosen := program.solve()) is not None:
        return Bound(rounded(fsum(worth.ravel()[of][chosen].tolist())), exact=True)
    return Bound(rounded(program.relaxed()), exact=False)


def _by_knapsacks(worth: FloatArray, bids: MicroArray, budgets: MicroArray, cores: IntArray) -> float | None:
    """Return the optimum by branch and bound; None where it is not proven within ``TRIES``.

    Without K, each service takes the knapsack that is best for it, and the sum is a bound. A client that more than K
    take is done without by one of them: a branch for each.
    """

    @cache
    def best(m: int, without: frozenset[int]) -> tuple[float, IntArray]:
        values = worth[m].copy()
        values[list(without)] = 0.0
        chosen = knapsack(bids[m], values, int(budgets[m]))
        return fsum(values[chosen].tolist()), chosen

    def bound(branch: tuple[frozenset[int], ...]) -> float:
        return fsum(best(m, without)[0] for m, without in enumerate(branch))

    root = (frozenset[int](),) * len(worth)
    heap, seen = [(-bound(root), 0, root)], {root}
    for _ in range(TRIES):
        _, _, branch = heappop(heap)
        sets = [best(m, without)[1] for m, without in enumerate(branch)]
        crowded = np.flatnonzero(np.bincount(np.concatenate(sets), minlength=worth.shape[1]) > cores)
        if not len(crowded):
            return rounded(fsum(worth[m][c] for m, taken in enumerate(sets) for c in taken.tolist()))
        client = int(crowded[0])
        for m in (m for m, taken in enumerate(sets) if client in taken):
            further = (*branch[:m], branch[m] | {client}, *branch[m + 1 :])
            if further not in seen:
                seen.add(further)
                heappush(heap, (-bound(further), len(seen), further))
    return None


@dataclass(frozen=True, slots=True)
class _Program:
    """The program: [n] pairs of a service and a client, each of which is served or is not."""

    worth: FloatArray
    bids: MicroArray
    service: IntArray
    client: IntArray
    budgets: MicroArray
    cores: IntArray  # [C]

    def _limits(self) -> tuple[Any, FloatArray]:
        """Return the rows of the clients' cores, then of the budgets; and the most that each may reach.

        Bids mostly are multiples of some amount. A budget in whole amounts then leaves the solver nothing to round.
        """
        from scipy.sparse import csr_array, vstack  # it takes long to import

        n = len(self.worth)
        named, client = np.unique(self.client, return_inverse=True)
        by_client = csr_array((np.ones(n), (client, np.arange(n))))
        shape = len(self.budgets), n
        unit = np.full(len(self.budgets), float(MICRO))
        budgets = (self.budgets + 0.4) / MICRO
        for m in np.unique(self.service):
            bids = self.bids[self.service == m]
            step = int(np.gcd.reduce(bids))
            if step and bids.max() <= WHOLE * step:
                unit[m], budgets[m] = step, self.budgets[m] // step
        by_service = csr_array((self.bids / unit[self.service], (self.service, np.arange(n))), shape=shape)
        most = np.concatenate([self.cores[named].astype(np.float64), budgets])
        return vstack([by_client, by_service], format="csr"), most

    def solve(self) -> BoolArray | None:
        """Return the best pairs, [n]; None where they are not proven to be the best within the limits."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        n, scale = len(self.worth), _SCALE / self.worth.max()
        rows, most = self._limits()
        limits = [LinearConstraint(rows, ub=most)]
        for _ in range(CUTS):
            solution = milp(
                -self.worth * scale, constraints=limits, integrality=np.ones(n), bounds=Bounds(0, 1),
                options={"mip_rel_gap": 0.0, "node_limit": NODES, "presolve": False},  # presolved, HiGHS may print
            )  # fmt: skip
            if solution.status != 0:
                return None
            chosen = np.asarray(solution.x) > 0.5
            over = budget_cuts(self.service, self.bids, self.budgets, chosen)
            cuts = [LinearConstraint(row[None, :], ub=reach) for row, reach in over]
            if not cuts:
                return chosen
            limits += cuts
        return None

    def relaxed(self) -> float:
        """Return the optimum of the linear relaxation, from above.

        By weak duality any prices of cores and of money that are not negative give an upper bound. The solver's are
        taken, so that its tolerances do not count.
        """
        from scipy.optimize import linprog

        rows, most = self._limits()
        scale = _SCALE / self.worth.max()
        relaxed = linprog(-self.worth * scale, A_ub=rows, b_ub=most, bounds=(0, 1), method="highs")
        prices = np.zeros(len(most))
        if relaxed.status == 0:
            prices = np.maximum(-np.asarray(relaxed.ineqlin.marginals), 0.0)
        left = np.maximum(self.worth - rows.T @ prices / scale, 0.0)
        return fsum((most * prices / scale).tolist()) + fsum(left.tolist())
