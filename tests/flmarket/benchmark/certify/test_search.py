"""The search finds what can be worked out by hand."""

import pytest

from des.money import MICRO
from flmarket.benchmark.certify import search
from flmarket.benchmark.certify.sampling import MOST_BID, TICK, Dice
from flmarket.benchmark.certify.search import attack


def test_under_pay_as_offered_a_service_bids_just_above_its_rival(bench) -> None:
    gain = attack(bench("pay-as-offered", [[4.0], [2.5]], [[1.0], [1.0]]), "services", 0, 100, Dice(0))
    assert gain.truthful == 0
    assert gain.report in [(2_500_000,), (2_500_001,)]  # a tie may be drawn in its favour
    assert gain.amount == 4 * MICRO - gain.report[0]


def test_under_uniform_prices_a_client_asks_what_its_best_service_would_pay(bench) -> None:
    gain = attack(bench("uniform-price", [[4.0], [2.5]], [[1.0], [1.0]]), "clients", 0, 100, Dice(0))
    assert gain.truthful == 1_500_000
    assert gain.report[0] == 4 * MICRO
    assert gain.misreporting == 3 * MICRO


def test_a_service_with_a_budget_leaves_out_what_costs_it_too_much(bench) -> None:
    """It can pay one client; the one that it prefers is taken by another service."""
    market = bench("uniform-price", [[3.0, 2.0], [4.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]], [3.0, 4.0])
    gain = attack(market, "services", 0, 100, Dice(0))
    assert (gain.truthful, gain.misreporting) == (0, MICRO)
    assert gain.report[1] == gain.truth[1]  # no lie that adds nothing
    assert gain.report[0] < MICRO


@pytest.mark.parametrize("side", ["services", "clients"])
def test_where_nothing_is_to_be_gained_the_truth_is_returned(bench, side) -> None:
    market = bench("uniform-price" if side == "services" else "proportional-share", [[4.0], [2.5]], [[1.0], [2.0]])
    gain = attack(market, side, 0, 200, Dice(0))
    assert not gain.found
    assert gain.amount == 0
    assert gain.report == gain.truth


def test_equal_dice_find_the_same_and_tries_are_kept(bench) -> None:
    market = ("pay-as-offered", [[4.0, 3.0], [2.5, 3.5]], [[1.0, 1.2], [1.0, 0.9]], [5.0, 4.0])
    first, again = bench(*market), bench(*market)
    assert attack(first, "services", 0, 40, Dice(1)) == attack(again, "services", 0, 40, Dice(1))
    assert first.plays == again.plays <= 1 + 1 + 40 + 2  # rivals' offers, the truth, the tries, the simpler reports


def test_a_search_ends_when_nothing_is_left_to_try(bench, monkeypatch) -> None:
    """A client of one service has few bids to choose from: here six, which is less than the tries."""
    monkeypatch.setattr(search, "TICK", MICRO)
    market = bench("uniform-price", [[4.0]], [[1.0]])
    gain = attack(market, "clients", 0, 1000, Dice(0))
    assert (gain.truthful, gain.misreporting, gain.report) == (0, 3 * MICRO, (4 * MICRO,))
    assert market.plays <= 1 + 6 + 1  # the first look at the market, the bids, the simpler report


def test_a_client_bids_in_steps_that_a_scenario_can_show(bench) -> None:
    gain = attack(bench("uniform-price", [[3.9999], [2.5]], [[1.0], [1.0]]), "clients", 0, 100, Dice(0))
    assert gain.report[0] == 3_999_000
    assert all(bid % TICK == 0 and bid <= MOST_BID for bid in gain.report)
