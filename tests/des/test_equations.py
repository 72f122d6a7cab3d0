"""The paper's market equations, by number, with values computed by hand.

Equations go by their labels in the paper's source: (2) cores, (4) budget, (5) bid; there is no (3). The EMD (1) and the
DQI (6) are in ``tests/fl/data/test_dqi.py``. Who is served (2) is in
``mechanisms/test_tables.py``; that the constraints hold for any offers is in ``test_any_offers.py``.
"""

from dataclasses import replace

import pytest

from des.clients.population import Population
from des.cost import CostError
from des.offer_checks import OfferError
from des.reward import reward
from des.service import ServiceState
from fl.data.dqi import PUBLISHED
from support.clients import changed


@pytest.mark.parametrize(
    ("payments", "fits"),
    [
        ((2.1, 2.1), True),  # 4.2 of 4.2
        ((2.1, 2.100001), False),  # one micro-unit over
        ((2.1, 2.1000004), True),  # rounds to the micro-unit that fits
        ((4.2,), True),
        ((4.200001,), False),
        ((), True),
    ],
)
def test_equation_4_the_payments_offered_are_within_the_budget(
    make_market, make_offer, plain_service, payments, fits
) -> None:
    market = make_market([replace(plain_service, name="alpha", budget=4_200_000)])
    market.open_round()
    offers = {"alpha": make_offer(*enumerate(payments))}
    if fits:
        assert market.close_round(offers).services[0].offered <= 4_200_000
    else:
        with pytest.raises(OfferError, match=r"over the budget of 4\.200000 \(eq\. 4\)"):
            market.close_round(offers)


@pytest.mark.parametrize(
    ("payment", "enough"), [(2.1, True), (5.0, True), (2.0999996, True), (2.099999, False), (0.0, False)]
)
def test_equation_5_a_payment_is_at_least_the_bid(make_market, make_offer, payment: float, enough: bool) -> None:
    market = make_market(["alpha"])  # every bid is 0.025 * 100 - 0.4 = 2.1
    market.open_round()
    offers = {"alpha": make_offer((1, payment))}
    if enough:
        assert market.close_round(offers).offers[0].bid == 2_100_000
    else:
        with pytest.raises(OfferError, match=r"client 1: the payment .* is below the bid 2\.100000 \(eq\. 5\)"):
            market.close_round(offers)


@pytest.mark.parametrize(
    ("size", "emd", "bid"),
    [  # O = 0.025 D - v: the paper's cheapest, dearest, and two between
        (100, 1.0, 1_500_000),
        (400, 0.4, 9_600_000),
        (200, 0.6, 4_400_000),
        (300, 0.8, 6_700_000),
        # 15 images over 10 labels cannot have an EMD of 0.35. Five labels with 2 images and five with 1 have
        # 10 * |1/15 - 1/10| = 1/3; the next EMD is 1/3 + 1/15. The bid is for what the data really are: 0.375 - 1/3.
        (15, 0.35, 41_667),
    ],
)
def test_equation_5_bids_follow_the_data(paper_clients, size: int, emd: float, bid: int) -> None:
    clients = Population(changed(paper_clients, data_sizes=(size,), emds=(emd,)), [10], [PUBLISHED], seed=0)
    assert set(clients.draw(1).bid.ravel().tolist()) == {bid}


def test_equation_5_a_bid_is_never_negative(paper_clients) -> None:
    with pytest.raises(CostError, match="a cost is negative"):
        Population(changed(paper_clients, data_sizes=(100, 30)), [10], [PUBLISHED], seed=0)  # 0.75 - 1.0


@pytest.mark.parametrize(
    ("omega", "accuracy", "target", "expected"),
    [
        (100.0, 0.0, 0.85, 1.0),
        (100.0, 0.5, 0.85, 10.0),  # the square root of 100
        (60.0, 0.5, 0.97, 7.745966692414834),  # the square root of 60
        (30.0, 0.97, 0.97, 27.089913423621464),  # 30^0.97 = exp(0.97 ln 30)
        (100.0, 0.95, 0.85, 50.118723362727245),  # past the target: 100^0.85, and no more
    ],
)
def test_reward_is_omega_to_the_accuracy(plain_service, omega, accuracy, target, expected) -> None:
    spec = replace(plain_service, reward_base=omega, target_accuracy=target)
    assert reward(spec, ServiceState(accuracy, accuracy)) == pytest.approx(expected, rel=1e-12)
