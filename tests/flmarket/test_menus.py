"""Menus of contracts by private type: gains by hand, found in menus that are broken on purpose, and played."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.allocation import allocate
from des.mechanism import MECHANISMS, Asks, Clearing, Mechanism, Menu
from des.money import MICRO
from des.response import Awards
from des.responses.quadratic import Quadratic
from flmarket.analysis.verification.verify import verify
from flmarket.testing import check_menu, menu_deviations
from scenarios.loader import load
from support.runs import played, table

DOCS = Path(__file__).parents[2] / "docs"

COSTS = 2.0, 3.0, 5.0  # of all of the work; a part q of it costs q^2 times that


class Contracts(Mechanism):
    """Posts a menu."""

    def __init__(self, *, quantity, payment):
        self.quantity, self.payment = np.array(quantity), np.ceil(np.array(payment) * MICRO).astype(int)

    def ask(self, bids, data_size):
        return Asks(np.maximum(bids, self.payment.max()))

    def clear(self, book):
        core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
        return Clearing(core, book.payments)

    def menu(self, book, clearing):
        return Menu(self.quantity, self.payment)


class ByBid(Contracts):
    """Pays each client for one contract alone, that of its bid."""

    def menu(self, book, clearing):
        bids = book.bids[clearing.core >= 0, None] / MICRO
        return Menu(self.quantity, np.where(bids == COSTS, self.payment, 0))


QUANTITY, PAYMENT = (1, 1 / 2, 2 / 9), (2 + 1 / 4 + 8 / 81, 3 / 4 + 8 / 81, 20 / 81)
"""The optimal menu where work is worth 4 and types are equally likely: virtual costs are 2, 3 + 1 and 5 + 2 * 2.

The third type keeps nothing; the second keeps 2 * 4/81, as it would of the contract of the third; the first that and
1/4, as it would of the contract of the second.
"""

COST_PRICED = {"quantity": (1, 2 / 3, 2 / 5), "payment": (2, 4 / 3, 4 / 5)}
"""Each type's best contract, at its cost: the cheaper types would rather have those of the dearer ones."""


def test_the_optimal_menu_is_incentive_compatible_and_individually_rational() -> None:
    optimal = Contracts(quantity=QUANTITY, payment=PAYMENT)
    assert menu_deviations(optimal, Quadratic(), COSTS) == []
    check_menu(optimal, Quadratic(), COSTS)


def test_what_types_gain_by_contracts_that_are_meant_for_others_is_found_as_worked_out_by_hand() -> None:
    for kind in (Contracts, ByBid):  # where each is paid for the contract of its bid, they bid as another type
        found = menu_deviations(kind(**COST_PRICED), Quadratic(), COSTS)
        assert [(it.type, it.contract) for it in found] == [(0, 2), (0, 1), (1, 2)]
        by_hand = [4 / 5 - 2 * 4 / 25, 4 / 3 - 2 * 4 / 9, 4 / 5 - 3 * 4 / 25]
        assert [it.gain for it in found] == pytest.approx(by_hand, abs=2e-6)
        with pytest.raises(AssertionError) as caught:
            check_menu(kind(**COST_PRICED), Quadratic(), COSTS)
        assert str(caught.value) == (
            f"menu of {kind.__name__}: it is not incentive compatible: those to whom all of the work costs 2 keep "
            "0.480000 more of the contract at place 2 than of their own"
        )


def test_a_contract_by_which_its_type_would_lose_is_found() -> None:
    short = Contracts(quantity=QUANTITY, payment=(*PAYMENT[:2], PAYMENT[2] - 0.01))
    [(place, contract, gain)] = menu_deviations(short, Quadratic(), COSTS)
    assert (place, contract) == (2, None)
    assert gain == pytest.approx(0.01, abs=2e-6)
    with pytest.raises(AssertionError, match=r"not individually rational: .* costs 5 keep 0\.01\d+ more without a con"):
        check_menu(short, Quadratic(), COSTS)


def test_the_same_menu_has_other_deviations_where_quantities_cost_otherwise() -> None:
    optimal = Contracts(quantity=QUANTITY, payment=PAYMENT)
    assert menu_deviations(optimal, Quadratic(curvature=0.5), COSTS)


def test_a_mechanism_without_a_contract_for_each_type_is_refused() -> None:
    for mechanism, types in (MECHANISMS.create("pay-as-offered"), COSTS), (Contracts(**COST_PRICED), COSTS[:2]):
        with pytest.raises(
            AssertionError, match=rf"who bids 2 must be shown {len(types)} contracts, one for each type"
        ):
            check_menu(mechanism, Quadratic(), types)


def test_the_page_on_certificates_prints_the_witness_that_it_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(MECHANISMS, "_registered", {})
    monkeypatch.syspath_prepend(tmp_path)
    *_, plugin = re.findall(r"^```python\n(.*?)^```", (DOCS / "extending/response.md").read_text(), re.M | re.S)
    (tmp_path / "contracts.py").write_text(plugin)
    page = (DOCS / "mechanisms/certificates.md").read_text()
    [(program, printed)] = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", page, re.M | re.S)
    exec(program, {})  # noqa: S102 - it is the page's
    assert capsys.readouterr().out == printed


PARTS = st.lists(st.integers(1, 20), min_size=1, max_size=5, unique=True)


@given(PARTS, st.lists(st.floats(0, 10), min_size=5, max_size=5), st.lists(st.floats(0, 20), min_size=5, max_size=5))
def test_clients_take_their_own_contract_where_no_deviation_is_found_and_else_the_one_of_the_largest_gain(
    parts: list[int], costs: list[float], payments: list[float]
) -> None:
    count = len(parts)
    types = [round(cost, 6) for cost in costs[:count]]
    made = Contracts(quantity=[part / 20 for part in parts], payment=[round(it, 6) for it in payments[:count]])
    found, menu = menu_deviations(made, Quadratic(), types), made.menu(None, None)
    numbers, ones = np.arange(count), np.ones(count)
    awards = Awards(1, numbers, numbers, 100 * ones, np.array(types), 1 + numbers, ones, ones, menu)
    taken = Quadratic().best_entry(awards, menu)
    paid = ((taken[:, None] == menu.quantity) * menu.payment).sum(axis=1) / MICRO
    own = menu.payment / MICRO - np.array(types) * menu.quantity**2
    gains = paid - np.array(types) * taken**2 - own
    for place in range(count):
        largest = max((it.gain for it in found if it.type == place), default=0.0)
        assert gains[place] == pytest.approx(largest, abs=1.1e-6)


def test_a_client_of_a_type_that_deviates_takes_the_other_contract_when_it_is_played(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(MECHANISMS, "_registered", {})
    MECHANISMS.register("broken", Contracts)
    for witness in menu_deviations(Contracts(**COST_PRICED), Quadratic(), COSTS)[::2]:
        assert witness.contract == 2
        scenario = load(
            "quickstart",
            {
                "rounds": 1, "training.backend": "surrogate", "clients.count": 1, "clients.data_size": [100],
                "clients.cost": {"kind": "unit", "unit": {"choices": [COSTS[witness.type] / 100]}},
                "clients.response.kind": "quadratic", "market.mechanism": "broken",
                "market.options": {name: list(each) for name, each in COST_PRICED.items()},
            },
        )  # fmt: skip
        once, again = (played(scenario, tmp_path / f"type-{witness.type}" / name) for name in ("once", "again"))
        for name in ("responses", "clients", "offers"):
            assert (once.path / f"{name}.csv").read_bytes() == (again.path / f"{name}.csv").read_bytes()
        assert verify(once).problems == []
        [answer] = table(once.path, "responses")
        assert float(answer["promised"]) == COST_PRICED["quantity"][2]
        [profit] = (float(row["profit"]) for row in table(once.path, "clients") if row["profit"])
        assert profit == pytest.approx(witness.gain, abs=1e-6)  # of its own contract it would keep nothing
