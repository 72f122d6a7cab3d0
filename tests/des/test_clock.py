"""Time is whole microseconds: what arrives in time is what fractions say, in the market and in lockstep."""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from des.clock import Travel, WorkTimes
from des.costs.linear import Linear
from des.log_records import Outcome
from des.observation import Offer
from des.timeline import Durations
from learning.lockstep.lockstep import Lockstep
from learning.lockstep.offers import Offers
from scenarios.loader import ScenarioError, load
from support.clients import changed
from support.markets import factory, plain

SECONDS = [0.001, 0.01, 0.1, 0.003, 0.0001, 0.00001, 5e-7, 0.0123456789, 0.0]
SPEEDS = [1.0, 2.0, 4.0, 0.5, 0.25, 0.3, 1.7, 3.0, 7.0, 0.8413447460685429]
UPLOADS = [0.0, 0.1, 0.2, 0.5, 0.7, 0.000001, 1.1]


@pytest.mark.parametrize(("deadline", "served"), [(0.3, 26), (0.299999, 0)])
def test_an_update_that_takes_exactly_until_the_deadline_arrives(
    make_market, plain_service, pay_the_bid, deadline: float, served: int
) -> None:
    """100 images, two epochs at .001 s an image, .1 s to upload: .3 s, though .2 + .1 is more than .3 in floats."""
    service, timeline = (
        replace(plain_service, name="alpha", local_epochs=2, budget=10**9),
        Durations(0.001, 0.1, deadline=deadline),
    )
    market = make_market([service], count=26, timeline=timeline)
    report = market.close_round({"alpha": pay_the_bid(market.open_round()["alpha"])})
    assert sum(offer.outcome is Outcome.SERVED for offer in report.offers) == served
    assert len(report.offers) == 26


def drawn(number: int) -> tuple[dict, Fraction]:
    """A market of one service and one client, and how long its job takes in seconds, exactly."""
    rng = random.Random(number)  # noqa: S311 - no secrets here
    size, epochs, speed = rng.choice([1, 7, 50, 100, 333, 1000]), rng.randint(1, 5), rng.choice(SPEEDS)
    seconds, upload = rng.choice(SECONDS), rng.choice(UPLOADS)
    whole = Fraction(repr(seconds)) * size * epochs / Fraction(repr(speed)) + Fraction(repr(upload))
    # Mostly the first microsecond at which a job is in time, or the last at which it is late.
    end = max(1, -(-whole * 10**6 // 1) + rng.choice([-1, 0, 0, 0, 1, rng.randint(0, 10**6)])) / 10**6
    kind = plain()
    people = changed(
        kind["population"], count=1, data_sizes=(size,), emds=(0.4,), cost=Linear(per_sample=0.025), speeds=(speed,)
    )
    service = replace(kind["services"][0], local_epochs=epochs, budget=10**9)
    patience = {rng.choice(["slot", "deadline"]): end}
    timeline, curves = Durations(seconds, upload, **patience), {"s0": kind["curves"]["s0"]}
    return kind | {"population": people, "services": [service], "timeline": timeline, "curves": curves}, whole


def test_models_travel_as_long_as_their_bytes_take() -> None:
    """177,704 bytes are 1,421,632 bits: 1.421632 s at 1 Mbps. 3 and 5 bits a microsecond are rounded half-even."""
    travel = Travel(0, np.array([16.0, 1.0, 3.0]))
    sizes, clients = np.array([177_704, 177_704, 177_704, 5, 7]), np.array([1, 2, 0, 0, 0])
    assert travel.of(sizes, clients).tolist() == [1_421_632, 473_877, 88_852, 2, 4]
    assert Travel(500_000, None).of(sizes, clients).tolist() == [500_000] * 5


def test_each_client_fetches_and_sends_over_its_own_bandwidths(make_market, plain_service, pay_the_bid) -> None:
    """A model of 125,000 bytes is a million bits: 1 s to fetch at 1 Mbps, 1 s to train, 4 s to send at 0.25 Mbps."""
    service = replace(plain_service, name="alpha", budget=10**9, model_bytes=125_000)
    market = make_market([service], timeline=Durations(0.01, 0.0), downloads=(1.0, 2.0), uploads=(0.25, 0.5), count=40)
    people = market.population
    report = market.close_round({"alpha": pay_the_bid(market.open_round()["alpha"])})
    took = {it.client: ((it.end or 0) - (it.start or 0)) / 10**6 for it in report.offers}
    down, up = people.download, people.upload
    assert took == {client: 1 / down[client] + 1 + 1 / up[client] for client in range(40)}
    assert len(set(zip(down, up, strict=True))) == 4  # drawn by themselves
    assert np.array_equal(people.speed, np.ones(40))


@pytest.mark.slow
def test_no_job_falls_that_fractions_keep() -> None:
    """500 timelines. Rounded to a microsecond, a job may be kept that takes half of one too long, no more."""
    kinds = [drawn(number) for number in range(500)]
    makes, served = [factory(kind) for kind, _ in kinds], []
    for (kind, whole), make in zip(kinds, makes, strict=True):
        market = make(0)
        report = market.close_round({"s0": Offer(np.array([0]), market.open_round()["s0"].own_bids)})
        served.append(report.offers[0].outcome is Outcome.SERVED)
        limit = Fraction(kind["timeline"].patience, 10**6)
        assert served[-1] or whole > limit, kind["timeline"]
        assert not served[-1] or whole <= limit + Fraction(1, 2 * 10**6), kind["timeline"]
    many, each, zero = Lockstep(makes, [0] * 500), np.arange(500), np.zeros(500, dtype=np.int64)
    assert many.close(Offers(each, zero, zero, many.open().bids[:, 0, 0])).served[:, 0].tolist() == served
    assert 200 < sum(served) < 450


def test_training_times_are_rounded_half_even_however_large_their_parts_are() -> None:
    rates = [(seconds, speed) for seconds in (*SECONDS, 1e6, 0.7310585786300049) for speed in (*SPEEDS, 1e-6)]
    work, place = np.meshgrid([1, 2, 3, 5, 1_000_000_000], np.arange(len(rates)))
    exact = [Fraction(repr(seconds)) * 10**6 / Fraction(repr(speed)) for seconds, speed in rates]
    wanted = [round(int(n) * exact[at]) for n, at in zip(work.ravel(), place.ravel(), strict=True)]
    assert WorkTimes(rates).of(work.ravel(), place.ravel()).tolist() == wanted
    assert WorkTimes([(5e-7, 1.0)] * 3).of(np.array([1, 3, 5]), np.arange(3)).tolist() == [0, 2, 2]


@pytest.mark.parametrize("key", ["upload_seconds", "slot", "deadline"])
def test_times_that_are_no_whole_microseconds_are_refused(key: str) -> None:
    with pytest.raises(ScenarioError, match=rf"timeline\.{key} = \S+: has more than six decimals: 0\.3000000000001"):
        load("quickstart", {f"timeline.{key}": 0.3000000000001})
