"""A market's life: rounds in turn, exits, the end, and legal extremes."""

from dataclasses import replace

import numpy as np
import pytest

from des.costs.linear import Linear
from des.market import MarketError
from des.observation import Offer, Status
from fl.training.jobs import Diverged, TrainingOutcome


def play(market, act) -> list:
    reports = []
    while not market.finished:
        seen = market.open_round()
        reports.append(market.close_round({name: act(o) for name, o in seen.items()}))
    return reports


def test_services_leave_at_their_targets_and_the_market_ends_with_the_last(
    make_market, plain_service, pay_the_bid
) -> None:
    # All start at 0.1 and gain 0.1 a round.
    alpha = replace(plain_service, name="alpha", target_accuracy=0.3)
    beta = replace(plain_service, name="beta", target_accuracy=0.45)
    market = make_market([alpha, beta], cores=2, rounds=10)
    reports = play(market, pay_the_bid)

    assert len(reports) == 4  # beta passes 0.45 in round 4, and nobody is left
    assert [r.last for r in reports] == [False, False, False, True]
    assert market.finished
    assert market.round == 4
    # Reports are rectangular: whoever has left keeps its row, its accuracy and its reward, and spends nothing.
    rows = [(r.status, r.accuracy, r.spent > 0) for report in reports for r in report.services if r.service == "alpha"]
    assert rows == [
        (Status.TRAINING, 0.2, True),
        (Status.REACHED, 0.3, True),
        (Status.LEFT, 0.3, False),
        (Status.LEFT, 0.3, False),
    ]
    rewards = [report.services[0].reward for report in reports]
    assert rewards == pytest.approx([100**0.2, 100**0.3, 100**0.3, 100**0.3])  # absorbing
    # Past its target a service is rewarded for the target: 0.45, not 0.5.
    assert (reports[3].services[1].accuracy, reports[3].services[1].reward) == (0.5, pytest.approx(100**0.45))
    # Only who took part is told how it went, and nothing is heard of it any more.
    assert [sorted(report.feedback) for report in reports] == [["alpha", "beta"]] * 2 + [["beta"]] * 2
    assert reports[1].feedback["alpha"].status is Status.REACHED
    assert all(event.service != "alpha" for report in reports[2:] for event in report.events)
    assert market.ledger.accounts["alpha"].granted == 2 * 20_000_000


def test_rounds_go_in_turn(make_market) -> None:
    market = make_market(["alpha"], rounds=1)
    with pytest.raises(MarketError, match="no round is open"):
        market.close_round({})
    market.open_round()
    with pytest.raises(MarketError, match="round 1 is still open"):
        market.open_round()
    market.close_round({"alpha": Offer.none()})
    with pytest.raises(MarketError, match="no round is open"):
        market.close_round({"alpha": Offer.none()})
    with pytest.raises(MarketError, match="the market finished after round 1"):
        market.open_round()


def test_only_updates_that_will_arrive_are_trained(make_market, make_offer, stub_federation) -> None:
    federation = stub_federation()
    market = make_market(["alpha", "beta"], federation=federation)
    market.open_round()
    market.close_round({"alpha": make_offer((2, 2.1), (0, 3.0)), "beta": make_offer((0, 2.1), (1, 2.1))})
    ((round_, jobs),) = federation.asked
    assert round_ == 1
    assert [(job.service, job.client, job.size) for job in jobs] == [
        ("alpha", 2, 100),
        ("alpha", 0, 100),
        ("beta", 1, 100),
    ]
    assert [job.emd for job in jobs] == pytest.approx([0.4] * 3)


def test_a_failure_of_training_comes_out_as_it_is(make_market, make_offer, stub_federation) -> None:
    class Failing(stub_federation):
        def train_round(self, round_, jobs):
            raise Diverged(jobs[0].service, round_, jobs[0].client)

    market = make_market(["alpha"], federation=Failing())
    market.open_round()
    with pytest.raises(
        Diverged, match="service 'alpha': training diverged in round 1: the loss of client 2 is not finite"
    ) as caught:
        market.close_round({"alpha": make_offer((2, 2.1))})
    assert (caught.value.service, caught.value.round, caught.value.client) == ("alpha", 1, 2)


def test_an_accuracy_that_is_not_finite_is_a_failure_of_training(make_market, make_offer, stub_federation) -> None:
    class Lost(stub_federation):
        def train_round(self, round_, jobs):
            return {"alpha": TrainingOutcome(float("nan"), np.zeros(1))}

    market = make_market(["alpha"], federation=Lost())
    market.open_round()
    with pytest.raises(Diverged, match="service 'alpha': training diverged in round 1: the global model is not finite"):
        market.close_round({"alpha": make_offer((2, 2.1))})


@pytest.mark.parametrize("act", ["nobody", "pay the bid"])
@pytest.mark.parametrize(
    ("services", "clients"),
    [
        (1, {"count": 1, "cores": 1}),
        (1, {"count": 20}),
        (4, {"count": 1}),
        (2, {"cores": 64}),  # more cores than services
        (20, {"count": 200}),
        (3, {"data_sizes": (1,), "emds": (0.0,), "cost": Linear(per_sample=0.0)}),  # data for nothing
    ],
)
def test_extreme_but_legal_markets_run(make_market, paper_clients, pay_the_bid, services, clients, act) -> None:
    names = [f"s{m}" for m in range(services)]
    market = make_market(names, paper_clients, rounds=3, **clients)
    reports = play(market, pay_the_bid if act == "pay the bid" else lambda _: Offer.none())
    assert [len(report.services) for report in reports] == [services] * 3
    served = [service.served for report in reports for service in report.services]
    assert (max(served) > 0) == (act == "pay the bid")
    market.ledger.check()  # raises unless every micro-unit is accounted for


@pytest.mark.parametrize("budget", [0, 1, 2_099_999])
def test_a_budget_below_every_bid_buys_nobody(make_market, plain_service, pay_the_bid, budget: int) -> None:
    market = make_market([replace(plain_service, name="poor", budget=budget), "rich"])
    for report in play(market, pay_the_bid):
        poor, rich = report.services
        assert (poor.wanted, poor.spent, poor.accuracy) == (0, 0, 0.1)
        assert rich.served == (0 if rich.status is Status.LEFT else 3)
