"""Interventions: checked like every key, applied at the start of their round, and no other world for anybody."""

import re

import numpy as np
import pytest

from des.log_records import RoundReport
from des.market import Market
from des.observation import Offer
from des.offer_checks import OfferError
from flmarket.core.errors import InputError
from learning.play_round import play
from learning.policy import POLICIES
from scenarios.build import build_market, build_policy
from scenarios.file.schema import Scenario
from scenarios.loader import ScenarioError, digest, dumps, parse
from scenarios.logs.reading import LogError, LoggedRound
from scenarios.world import World
from support.federations import StubFederation
from support.runs import round_text
from support.scenarios import TWO_SERVICES, problems

BASE = TWO_SERVICES.replace("alpha", "one.a").replace("beta", "two").replace("cores = 1", "cores = 2")


def text(*interventions: tuple[int, str, str], policy: str = "lcfa") -> str:
    tables = [f'[[interventions]]\nround = {n}\nkey = "{key}"\nvalue = {value}\n' for n, key, value in interventions]
    base = re.sub(r'policy = ".*"', f'policy = "{policy}"', BASE.replace("rounds = 8", "rounds = 6"))
    return f'name = "interventions"\n{base}{"".join(tables)}'


def reports(scenario: Scenario) -> list[RoundReport]:
    market = build_market(scenario, 1, StubFederation(start=0.5, gain=0.0))
    found: list[RoundReport] = []
    play(market, {s.name: build_policy(scenario, s) for s in scenario.services}, [found.append])
    return found


@pytest.mark.parametrize(
    ("intervention", "message"),
    [
        ((7, "clients.cores", "1"), "must be at most the 6 rounds, not 7"),
        ((0, "clients.cores", "1"), "greater than or equal to 1, not 0"),
        ((2, "clients.cores", "0"), "greater than or equal to 1, not 0"),
        ((2, "clients.core", "1"), "did you mean 'clients.cores'?"),
        ((2, "rounds", "9"), "cannot be changed in the middle of a run"),
        ((2, "services.two.dataset", '"digits"'), "cannot be changed in the middle of a run"),
        ((2, "services.tow.budget", "9"), "did you mean 'two'?"),
        ((2, "services.two.budget", "-1"), "greater than or equal to 0, not -1"),
        ((2, "services.two.budget", "1.1234567"), "more than six decimals"),
        ((2, "clients.offline", "3"), "must be a list of clients"),
        ((2, "clients.offline", '["3"]'), "must be a list of clients, whole numbers"),
        ((2, "clients.offline", "[6]"), "unknown client 6; clients are 0 to 5"),
        ((2, "clients.offline", "[1, 1]"), "names a client twice"),
    ],
)
def test_what_is_wrong_is_said(intervention: tuple[int, str, str], message: str) -> None:
    [problem] = problems(text(intervention))
    assert message in problem


def test_the_same_key_twice_in_a_round_is_refused() -> None:
    with pytest.raises(ScenarioError, match="changes the same key in the same round as another intervention"):
        parse(text((2, "clients.cores", "1"), (2, "clients.cores", "3")))


def test_they_are_part_of_the_scenario_and_its_hash() -> None:
    plain, intervened = (
        parse(text()),
        parse(text((3, "clients.offline", "[1, 4]"), (2, "services.one.a.budget", "2.5"))),
    )
    assert parse(dumps(intervened)) == intervened
    assert digest(plain) != digest(intervened)


def test_a_market_plays_under_them_from_their_round_on_in_the_same_world() -> None:
    interventions = (
        (3, "services.one.a.budget", "4"),
        (4, "clients.offline", "[0, 2]"),
        (5, "clients.cores", "1"),
        (6, "clients.offline", "[]"),
    )
    intervened, plain = parse(text(*interventions)), parse(text())
    changed, before = reports(intervened), reports(plain)
    assert [round_text(r) for r in changed[:2]] == [round_text(r) for r in before[:2]]
    assert [r.services[0].budget for r in changed] == [10_000_000] * 2 + [4_000_000] * 4
    assert all(r.services[0].offered <= 4_000_000 for r in changed[2:])
    for report in changed:
        wanted = {offer.client for offer in report.offers}
        assert not ({0, 2} & wanted) or report.round not in (4, 5)
        per_client = [sum(o.client == c and o.core is not None for o in report.offers) for c in range(6)]
        assert max(per_client) <= (1 if report.round >= 5 else 2)
    # Bids are what they would have been: the draw knows nothing of interventions.
    world, other = World(intervened, 1), World(plain, 1)
    for n in range(1, 7):
        assert (world.qualities(n).bid == other.qualities(n).bid).all()
    assert world.conditions(4).offline == {0, 2}


@pytest.mark.parametrize("policy", POLICIES.names())
def test_every_policy_passes_over_clients_that_are_offline(policy: str) -> None:
    try:
        found = reports(parse(text((1, "clients.offline", "[0, 1, 2]"), policy=policy)))
    except InputError as error:
        pytest.skip(f"the policy has nothing to start from: {error}")
    assert {offer.client for report in found for offer in report.offers} <= {3, 4, 5}


def test_an_offer_to_an_offline_client_is_an_error() -> None:
    market: Market = build_market(parse(text((1, "clients.offline", "[3]"))), 1, StubFederation(start=0.5, gain=0.0))
    observations = market.open_round()
    assert observations["two"].available.tolist() == [True, True, True, False, True, True]
    bad = Offer(np.array([3]), np.array([observations["two"].own_bids[3]]))
    with pytest.raises(OfferError, match="round 1, client 3: the client is offline"):
        market.close_round({"one.a": Offer.none(), "two": bad})


def test_logs_read_back_to_what_was_written() -> None:
    for report in reports(parse(text((2, "clients.offline", "[3]"), (4, "clients.cores", "1"), policy="random"))):
        logged = LoggedRound.read(round_text(report))
        # Accuracies and means have six decimals in the tables.
        assert round_text(report) == logged.text
        assert (logged.number, logged.end) == (report.round, report.end)
        assert logged.offers == report.offers
        assert [tuple(e)[:6] for e in logged.events] == [tuple(e)[:6] for e in report.events]
        assert [s.spent for s in logged.services] == [s.spent for s in report.services]


@pytest.mark.parametrize(
    "wrong", [{}, {"rounds": "1,2\n", "offers": "", "events": ""}, {"rounds": "", "offers": "", "events": ""}]
)
def test_a_text_that_is_no_round_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(LogError):
        LoggedRound.read(wrong)
