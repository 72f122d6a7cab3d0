"""VCG: the set of services and clients with the highest joint surplus, and Clarke payments to the clients."""

from collections.abc import Iterator, Sequence

import numpy as np

from des.allocation import NO_CORE
from des.mechanism import Book, Clearing, Mechanism
from des.money import MICRO, Micro, MicroArray
from fl.arrays import BoolArray, FloatArray, IntArray
from flmarket.core.plugin_options import one_of

__all__ = ["VCG"]

SIDES = ("clients", "services")

MOST_CUTS = 1000  # rounds of cuts, one for each answer that breaks a constraint by some micro-units


class VCG(Mechanism):
    """Serves the offers with the highest joint surplus, value less bid, and prices them as Clarke does.

    Source of the prices: Clarke, "Multipart pricing of public goods", Public Choice 11, 1971.

    Values are what services offer; K and the budgets, which limit the values of those served, are constraints of a 0/1
    program (``scipy.optimize.milp``). With ``side = "clients"`` a client gets its bids and what its being there adds to
    the joint surplus, so that its cost is its best bid. With ``side = "services"`` a service pays its clients' bids and
    what its being there costs the others; its values are then its best offers as long as no budget binds. (Where
    budgets are private, no deterministic auction of identical items is truthful, individually rational and Pareto
    optimal without positive transfers: Dobzinski, Lavi and Nisan, "Multi-unit auctions with budget limits", Games and
    Economic Behavior 74, 2012; with public ones the clinching auction is.) Both sides at once cannot be had without a
    subsidy (Myerson and Satterthwaite, Journal of Economic Theory 29, 1983). Of several best sets that with the most
    offers is chosen, then by draws.

    Fidelity to Clarke (1971): checked:
    tests/des/mechanisms/test_theorems.py::test_no_other_set_has_a_higher_joint_surplus,
    tests/des/mechanisms/test_sources.py::test_clarke_s_payments_are_what_a_party_s_presence_is_worth_to_all,
    tests/des/mechanisms/test_sources.py::test_for_one_client_a_service_pays_clarke_what_vickrey_asks.
    """

    summary = "highest joint surplus, with Clarke payments to the clients; for small markets"
    keeps_budgets = True
    largest = 400

    def __init__(self, *, side: str = "clients") -> None:
        self._side = one_of("side", side, SIDES)

    def clear(self, book: Book) -> Clearing:
        count = len(book.clients)
        core, price = np.full(count, NO_CORE, dtype=np.int64), book.asks.copy()
        surplus = book.payments - book.asks
        if not count:
            return Clearing(core, price)
        draws = book.tie_order(book.clients)[np.arange(count), book.services]
        served = _best_set(book, surplus, draws)
        parties = book.clients if self._side == "clients" else book.services
        total = int(surplus[served].sum())
        for party in np.unique(parties[served]).tolist():
            without = optimum(book, surplus, parties != party)
            mine = (served & (parties == party)).nonzero()[0]
            # What the client adds to the joint surplus, or what the service takes from the others; optima are found
            # to within some micro-units.
            gain = int(surplus[mine].sum())
            amount = total - without if self._side == "clients" else without - (total - gain)
            price[mine] += division(min(max(amount, 0), gain), surplus[mine])
        for client in np.unique(book.clients[served]).tolist():
            mine = (served & (book.clients == client)).nonzero()[0]
            core[mine[np.lexsort((draws[mine], -price[mine]))]] = np.arange(len(mine))
        return Clearing(core, price)


def optimum(book: Book, surplus: MicroArray, present: BoolArray) -> Micro:
    """Return the highest joint surplus of some of the offers, micro-units."""
    chosen = _solve(book, surplus / MICRO, present)
    return int(surplus[chosen].sum())


def division(amount: Micro, shares: MicroArray) -> MicroArray:
    """Divide an amount in proportion to shares that add up to at least as much; no part is above its share."""
    whole = sum(shares.tolist())
    if not whole:
        return np.zeros_like(shares)
    parts = [share * amount // whole for share in shares.tolist()]
    left = amount - sum(parts)
    for at, share in enumerate(shares.tolist()):
        more = min(left, share - parts[at], 1)
        parts[at] += more
        left -= more
    return np.array(parts, dtype=np.int64)


def _best_set(book: Book, surplus: MicroArray, draws: FloatArray) -> BoolArray:
    """Return which offers are served. Ties end in draws, so that the set does not depend on how it was found."""
    everyone = np.ones(len(surplus), dtype=np.bool_)
    best = optimum(book, surplus, everyone)
    at_best = [(surplus / MICRO, best / MICRO)]
    most = int(_solve(book, np.ones(len(surplus)), everyone, at_best).sum())
    at_best.append((np.ones(len(surplus)), float(most)))
    return _solve(book, draws, everyone, at_best)


def _solve(
    book: Book,  # the offers
    worth: FloatArray,  # [offers] to be maximised
    present: BoolArray,  # [offers] whether the offer can be served
    # weights [offers], and what they have to add up to at least, to within half a micro-unit
    floors: Sequence[tuple[FloatArray, float]] = (),
) -> BoolArray:
    """Return the offers with the highest worth that keep K and the budgets, as booleans [offers]."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # it takes long to import
    from scipy.sparse import csr_array

    count = len(book.clients)
    if not present.any():
        return np.zeros(count, dtype=np.bool_)
    columns = np.arange(count)
    named, client = np.unique(book.clients, return_inverse=True)
    limits = [
        LinearConstraint(
            csr_array((np.ones(count), (client, columns))),
            ub=book.cores if book.cores_of is None else book.cores_of[named],
        ),
        LinearConstraint(
            csr_array((book.payments / MICRO, (book.services, columns)), shape=(len(book.budgets), count)),
            ub=(book.budgets + 0.4) / MICRO,
        ),
        *(LinearConstraint(weights[None, :], lb=least - 0.5 / MICRO) for weights, least in floors),
    ]
    for _ in range(MOST_CUTS):
        answer = milp(
            -worth, constraints=limits, integrality=np.ones(count), bounds=Bounds(0, present.astype(float)),
            options={"mip_rel_gap": 0.0, "presolve": False},  # presolved, HiGHS prints where its answer needs repair
        )  # fmt: skip
        if answer.x is None:
            raise ArithmeticError(f"the joint optimum was not found: {answer.message}")
        chosen = np.asarray(answer.x) > 0.5
        # The solver keeps its constraints to within some micro-units. What breaks one is excluded, and nothing else.
        cuts = [LinearConstraint(row[None, :], ub=most) for row, most in _cuts(book, chosen, floors)]
        if not cuts:
            return chosen
        limits += cuts
    raise ArithmeticError("the joint optimum could not be kept within the budgets")


def budget_cuts(
    services: IntArray,  # [n] who pays
    amounts: MicroArray,  # [n] what, micro-units
    budgets: MicroArray,  # [M] of each service, micro-units
    chosen: BoolArray,  # [n] what was chosen
) -> Iterator[tuple[FloatArray, float]]:
    """Yield for each budget that what was chosen exceeds a row [n], and the most it may reach: not all of it together.

    A solver keeps budgets to within some micro-units. These rows exclude what exceeds one, and nothing else.
    """
    spent = np.zeros(len(budgets), dtype=np.int64)
    np.add.at(spent, services[chosen], amounts[chosen])
    for m in (spent > budgets).nonzero()[0]:
        together = (chosen & (services == m)).astype(np.float64)
        yield together, together.sum() - 1


def _cuts(
    book: Book, chosen: BoolArray, floors: Sequence[tuple[FloatArray, float]]
) -> Iterator[tuple[FloatArray, float]]:
    """Yield for each budget that the chosen offers exceed, or floor that they miss, a row and the most it may reach.

    A row excludes what is wrong: the offers of that service together, or this very choice.
    """
    yield from budget_cuts(book.services, book.payments, book.budgets, chosen)
    if any(weights[chosen].sum() < least - 0.5 / MICRO for weights, least in floors):
        yield np.where(chosen, 1.0, -1.0), chosen.sum() - 1.0
