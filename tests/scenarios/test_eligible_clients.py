"""Groups of clients that can serve some of the services: who may offer to whom, and who knows of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.mechanism import asks_of
from des.mechanisms.pay_as_offered import PayAsOffered
from des.mechanisms.posted_price import PostedPrice
from des.observation import Offer
from des.offer_checks import OfferError
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.bounds import run_bounds
from flmarket.analysis.what_if.explain import Explanation
from flmarket.analysis.what_if.possible import best_set
from learning.lockstep.market_kinds import LockstepError, curves_of
from scenarios.build import eligibility, market_factory
from scenarios.calibration.traces import stripped
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, load, parse, points
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LoggedRound
from scenarios.world import World
from support.runs import change, played, rounds_text, table
from support.tiers import examples
from tui.state.bid_verdicts import BidVerdict, RoundBook

SMALL = {"training.backend": "surrogate", "rounds": 4}
DIGITS = {"name": "first", "count": 5, "services": ["digits"]}
TWO = {"name": "second", "count": 5, "services": ["strokes", "scribbles"]}
SERVED_BY = {"digits": {*range(5), *range(10, 16)}, "strokes": set(range(5, 16)), "scribbles": set(range(5, 16))}


def grouped(*groups: dict[str, Any], **changes: Any) -> Scenario:
    return load("quickstart", {**SMALL, "clients.groups": list(groups or (DIGITS, TWO)), **changes})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return played(grouped(), tmp_path_factory.mktemp("eligible"), "greedy")


def test_a_group_serves_the_services_that_it_names_and_the_others_serve_all() -> None:
    serves = eligibility(grouped())
    assert serves is not None
    assert [set(np.flatnonzero(row).tolist()) for row in serves] == list(SERVED_BY.values())
    assert eligibility(grouped({"name": "a", "count": 3})) is None


def test_services_see_who_can_serve_them_and_an_offer_to_another_is_refused() -> None:
    market = market_factory(grouped())(0)
    previewed = market.preview("strokes")
    seen = market.open_round()
    assert {name: set(np.flatnonzero(it.available).tolist()) for name, it in seen.items()} == SERVED_BY
    assert (previewed.available == seen["strokes"].available).all()
    nobody = {name: Offer([], []) for name in seen}
    with pytest.raises(OfferError, match="client 3: the client does not serve this service in this round"):
        market.close_round({**nobody, "strokes": Offer([3], [seen["strokes"].own_bids[3]])})
    market.close_round({**nobody, "digits": Offer([3], [seen["digits"].own_bids[3]])})


@pytest.mark.parametrize(
    "policy", ["random", "hqfa", "lcfa", "oracle", "outbid", "ucb", "contribution", "worth", "oort"]
)
def test_policies_offer_only_to_those_who_can_serve(policy: str, tmp_path: Path) -> None:
    run = played(grouped(rounds=2), tmp_path, policy)
    rows = table(run.path, "offers")
    assert len(rows) > 5
    assert all(int(row["client"]) in SERVED_BY[row["service"]] for row in rows)


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [("posted-price", {"price_per_sample": 0.08}), ("iterated", {}), ("fair-queue", {}), ("proportional-share", {})],
)
def test_mechanisms_clear_markets_in_which_not_all_serve_all(
    mechanism: str, options: dict[str, Any], tmp_path: Path
) -> None:
    run = played(grouped(**{"market.mechanism": mechanism, "market.options": options}), tmp_path, "greedy")
    assert all(int(row["client"]) in SERVED_BY[row["service"]] for row in table(run.path, "offers"))
    assert verify(run).problems == []


def test_verify_finds_an_offer_to_a_client_that_cannot_serve(run: RunDirectory, tmp_path: Path) -> None:
    assert verify(run).problems == []
    forged = played(grouped(), tmp_path, "greedy")
    change(forged.path, "offers", {"client": "3"}, lambda row: row["service"] == "strokes")
    assert any("the client's group does not serve this service" in text for text in verify(forged).problems)


def test_bounds_and_the_best_set_in_hindsight_leave_out_those_who_cannot_serve(run: RunDirectory) -> None:
    logs = Logs.read_whole(run)
    bounds = run_bounds(logs)
    assert (bounds.realised.sum(axis=1) <= bounds.bound + 1e-9).all()
    for number, world in logs.worlds():
        for service in logs.places:
            assert SERVED_BY[service] >= set(best_set(logs, number, world, service, budget=10**9).clients.tolist())


def test_a_bound_counts_only_those_who_can_serve(tmp_path: Path) -> None:
    """With money for all, the bound is the DQI of all who can serve, one service each; nobody serves scribbles."""
    budgets = {f"services.{name}.budget": 10_000 for name in SERVED_BY}
    groups = [{"name": "a", "count": 10, "services": ["digits"]}, {"name": "b", "count": 6, "services": ["strokes"]}]
    logs = Logs.read_whole(played(grouped(*groups, rounds=1, **budgets), tmp_path, "greedy"))
    [(_, world)] = logs.worlds()
    assert run_bounds(logs).bound[0] == pytest.approx(world.dqi[0, :10].sum() + world.dqi[1, 10:].sum())


def test_the_table_of_an_explanation_says_who_does_not_serve(run: RunDirectory) -> None:
    why = Explanation(Logs.read_whole(run), 1, "strokes").table()["why"]
    assert set(np.flatnonzero(why == "does not serve it").tolist()) == set(range(5))


def test_screens_say_that_a_client_does_not_serve(run: RunDirectory) -> None:
    first = LoggedRound.read(next(rounds_text(run.path)))
    book = RoundBook(first, World(parse(run.scenario_text()), 0))
    assert book.verdict(1, 3) is BidVerdict.UNWANTED
    assert book.line(1, 3).reason == "it does not serve this service"


def test_lockstep_refuses_clients_that_do_not_serve_all() -> None:
    with pytest.raises(
        LockstepError, match=r"has clients that cannot serve every service \(clients.groups, services\)"
    ):
        curves_of(market_factory(grouped())(0))


@given(
    st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=2, max_size=2),
    st.sampled_from([0.01, 0.03, 0.05, 0.1]),
)
@examples(25)
def test_a_client_is_willing_where_it_can_serve_and_the_mechanism_lets_it(able: list[list[bool]], price: float) -> None:
    serves = np.array(able)
    bids, sizes = np.arange(1, 9).reshape(2, 4) * 1_000_000, np.full((2, 4), 100)
    posted = asks_of(PostedPrice(price_per_sample=price), bids, sizes, 1, serves)
    alone = asks_of(PostedPrice(price_per_sample=price), bids, sizes, 1).willing
    assert alone is not None
    assert (posted.willing == (alone & serves)).all()
    paper = asks_of(PayAsOffered(), bids, sizes, 1, serves)
    assert paper.least is bids
    assert paper.willing is serves


def test_names_of_services_are_kept_and_calibration_leaves_them_out() -> None:
    scenario = grouped()
    assert parse(dumps(scenario)) == scenario
    assert (
        "services"
        not in dumps(grouped({"name": "a", "count": 3})).partition("[[clients.groups]]")[2].partition("[market]")[0]
    )
    assert eligibility(stripped(scenario)) is None
    swept = grouped(sweep={"clients.groups.first.services": [["digits"], ["strokes"]]})
    assert [it.scenario.clients.groups[0].services for it in points(swept)] == [("digits",), ("strokes",)]


def test_a_service_that_does_not_exist_or_is_renamed_is_named_with_its_place(two_services: str) -> None:
    group = '[[clients.groups]]\nname = "phones"\ncount = 2\nservices = ["first", "secnd"]\n\n'
    text = two_services.replace("[[services]]", f"{group}[[services]]", 1)
    names = [service.name for service in parse(two_services).services]
    text = text.replace('"first", "secnd"', f'"{names[0]}", "{names[1][:-1]}"')
    with pytest.raises(ScenarioError) as caught:
        parse(text, "market.toml")
    [found] = caught.value.problems
    said = f"unknown service '{names[1][:-1]}'; did you mean '{names[1]}'?"
    assert (found.key.partition("[")[0], found.message) == ("clients.groups.phones.services", said)
    assert text.splitlines()[(found.line or 0) - 1].startswith("services = ")
    with pytest.raises(ScenarioError, match=f"clients.groups.phones.services.*: unknown service '{names[0]}'"):
        parse(text.replace(f'"{names[1][:-1]}"', f'"{names[1]}"'), overrides=[f"services.{names[0]}.name=other"])
