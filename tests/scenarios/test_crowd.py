"""The built-in market ``crowd`` at its full size, 10,000 clients and ten services, with small embedded images."""

from collections import Counter

import pytest

from des.log_records import Outcome, RoundReport
from des.mechanism import DEFAULT
from learning.play_round import play
from scenarios.build import Shelf, build
from scenarios.file.schema import Scenario
from scenarios.loader import load

SMALL = {"clients.data_size": [30, 60], "clients.emd": [0.2, 0.6], "clients.cost": {"per_sample": 1.0, "per_emd": 2.0}}


def crowd() -> Scenario:
    """The market as it is, but with the embedded digits, and some six data sets for each service's budget."""
    names = [service.name for service in load("crowd").services]
    digits = {f"services.{name}.dataset": "digits" for name in names}
    return load("crowd", {**SMALL, **digits, "rounds": 2})


def played(workers: int) -> list[RoundReport]:
    """The reports of a run of two rounds."""
    reports: list[RoundReport] = []
    setup = build(crowd(), 0, Shelf(), workers=workers)
    try:
        play(setup.market, setup.policies, [reports.append])
    finally:
        setup.federation.close()
    return reports


@pytest.mark.slow
def test_ten_services_train_for_real_among_ten_thousand_clients_whatever_the_workers() -> None:
    scenario = crowd()
    assert (scenario.clients.count, len(scenario.services)) == (10_000, 10)
    assert scenario.market.mechanism == DEFAULT
    first, second = played(workers=2), played(workers=0)
    for one, other in zip(first, second, strict=True):
        assert (one.services, one.offers, one.events) == (other.services, other.offers, other.events)
        served = Counter(offer.service for offer in one.offers if offer.outcome is Outcome.SERVED)
        assert set(served) == {service.name for service in scenario.services}
        assert sum(served.values()) < 2_000  # only they train
        assert max(offer.client for offer in one.offers) > 9_000
        assert max(Counter(offer.client for offer in one.offers if offer.paid is not None).values()) <= 2
    before, after = ([row.accuracy for row in report.services] for report in first)
    assert before != after
