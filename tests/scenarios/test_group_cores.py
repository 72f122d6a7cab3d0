"""Groups of clients that have fewer cores than the others: how many services each serves, and who knows of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.allocation import NO_CORE, allocate, tie_order_of
from des.log_records import Outcome
from des.mechanism import MECHANISMS, Book, Clearing, ClearingError, Mechanism, clearing_of
from des.mechanisms.pay_as_offered import PayAsOffered
from des.mechanisms.posted_price import PostedPrice
from des.observation import Offer
from fl.arithmetic.draws import draw_key
from flmarket.analysis.results.measures import BUILT_IN
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.bounds import run_bounds
from flmarket.analysis.what_if.possible import best_set
from learning.lockstep.market_kinds import LockstepError, curves_of
from learning.policies.oracle import critical_prices
from learning.policies.outbid import prices
from learning.statistics.measure import MARKET
from scenarios.build import cores_of, market_factory
from scenarios.file.problems import ScenarioError
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, load, parse, points
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LoggedRound
from scenarios.world import World
from support.runs import edit, played, rounds_text, table
from support.shell import flmarket
from support.tiers import examples
from tui.panels.answers import winner
from tui.state.bid_verdicts import RoundBook
from tui.style.sentences import story

PHONES = {"name": "phones", "count": 5, "cores": 1}
OWN = {**dict.fromkeys(range(5), 1), **dict.fromkeys(range(5, 16), 2)}
"""The cores of each client of ``quickstart`` where its first five are phones."""
OPTIONS: dict[str, dict[str, Any]] = {
    "scheduler": {"order": "random"},
    "posted-price": {"price_per_sample": 0.08, "step": 0.1},
}


def grouped(*groups: dict[str, Any], **changes: Any) -> Scenario:
    rest = {"clients.cores": 2, "clients.groups": list(groups or (PHONES,)), **changes}
    return load("quickstart", {"training.backend": "surrogate", "rounds": 4, **rest})


def most_served(run: RunDirectory) -> dict[int, int]:
    """Return how many services each client has worked for in one round at most."""
    won = [(row["round"], int(row["client"])) for row in table(run.path, "offers") if row["core"]]
    return {client: max(won.count(it) for it in won if it[1] == client) for _, client in won}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return played(grouped(), tmp_path_factory.mktemp("cores"), "greedy")


def test_clients_of_a_group_have_its_cores_and_the_others_have_all() -> None:
    own = cores_of(grouped().clients)
    assert own is not None
    assert dict(enumerate(own.tolist())) == OWN
    assert cores_of(grouped({"name": "a", "count": 3, "cores": 2}).clients) is None
    assert cores_of(grouped({"name": "a", "count": 3}).clients) is None


def test_payments_compete_for_the_cores_that_each_client_has() -> None:
    """Client 0 has one core and client 1 two; three services want both, at 5, 4 and 4: a draw decides for client 1."""
    services, clients = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    draws = np.array([[0.5, 0.1, 0.9], [0.5, 0.9, 0.1]])
    core = allocate(services, clients, np.array([5, 4, 4, 5, 4, 4]), np.array([1, 2]), lambda of: draws[of])
    assert core.tolist() == [0, NO_CORE, NO_CORE, 0, NO_CORE, 1]


def test_a_posted_price_counts_the_cores_that_there_are() -> None:
    """Both clients would serve, and have three cores together; one of them works: two thirds are idle."""
    mechanism = PostedPrice(price_per_sample=1.0, step=0.3)
    bids = np.full((1, 2), 1_000_000)
    asks = mechanism.ask(bids, np.full((1, 2), 2))
    columns = np.array([0]), np.array([0]), asks.least[0, :1], bids[0, :1], asks.least[0, :1], np.array([9_000_000])
    book = Book(*columns, 2, lambda of: np.zeros((*np.shape(of), 1)), cores_of=np.array([1, 2]))
    mechanism.close(book, mechanism.clear(book))
    assert mechanism.price == 800_000


@st.composite
def books(draw: st.DrawFn) -> Book:
    """Offers of up to four services to four clients, most of them equal, so that ties are common."""
    services = draw(st.integers(1, 4))
    pairs = sorted(draw(st.sets(st.tuples(st.integers(0, services - 1), st.integers(0, 3)), min_size=1)))
    m, c = np.array(pairs).T
    bids, more = (np.array(draw(st.lists(st.integers(0, 3), min_size=len(m), max_size=len(m)))) * 10**6 for _ in "ab")
    budgets = np.bincount(m, bids + more, services).astype(np.int64)
    own = np.array(draw(st.lists(st.integers(1, 3), min_size=4, max_size=4)))
    ties = draw_key(draw(st.integers(0, 9)), "ties")
    return Book(m, c, bids + more, bids, bids, budgets, 3, lambda of: tie_order_of(ties, 1, services, of), cores_of=own)


@pytest.mark.parametrize("name", sorted(MECHANISMS.names()))
@given(book=books())
@examples(25)
def test_no_client_serves_more_than_its_cores(name: str, book: Book) -> None:
    clearing = clearing_of(MECHANISMS.create(name, **OPTIONS.get(name, {})), book, 1)
    assert book.cores_of is not None
    assert (np.bincount(book.clients[clearing.core != NO_CORE], minlength=4) <= book.cores_of).all()


@given(books())
def test_each_client_is_allocated_as_in_a_market_where_all_have_its_cores(book: Book) -> None:
    assert book.cores_of is not None
    columns = book.services, book.clients, book.payments
    core = allocate(*columns, book.cores_of, book.tie_order)
    for client, own in enumerate(book.cores_of.tolist()):
        mine = book.clients == client
        assert (core[mine] == allocate(*columns, own, book.tie_order)[mine]).all()


class OfBefore(Mechanism):
    """A mechanism that knows of no cores but K."""

    def clear(self, book: Book) -> Clearing:
        return Clearing(allocate(book.services, book.clients, book.payments, book.cores, book.tie_order), book.payments)


def test_a_mechanism_that_gives_away_cores_that_are_not_there_is_refused() -> None:
    columns = np.array([0, 1]), np.array([3, 3]), np.array([4, 5]), np.array([4, 4]), np.array([4, 4]), np.array([9, 9])
    book = Book(*columns, 2, lambda of: np.zeros((*np.shape(of), 2)), cores_of=np.array([2, 2, 2, 1]))
    with pytest.raises(ClearingError, match=r"round 7, client 3: it has 1 core, but is given core 1 \(eq. 2\)"):
        clearing_of(OfBefore(), book, 7)
    assert clearing_of(OfBefore(), replace(book, cores_of=None), 7).core.tolist() == [1, 0]
    assert clearing_of(PayAsOffered(), book, 7).core.tolist() == [NO_CORE, 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MECHANISMS.names()))
def test_markets_are_played_and_verified_whatever_clears_them(name: str, tmp_path: Path) -> None:
    rules = {"market.mechanism": name, "market.options": OPTIONS.get(name, {})}
    run = played(grouped(**rules, rounds=3), tmp_path, "greedy")
    served = most_served(run)
    assert max(served.values()) == 2
    assert all(count <= OWN[client] for client, count in served.items())
    assert verify(run).problems == []


def test_a_change_of_k_leaves_those_at_their_own_number_who_have_less(tmp_path: Path) -> None:
    changes = [{"round": 2, "key": "clients.cores", "value": 1}, {"round": 3, "key": "clients.cores", "value": 3}]
    market = market_factory(grouped(interventions=changes))(0)
    assert [market.schedule.at(number).cores for number in (1, 2, 3)] == [2, 1, 3]
    own = [market.schedule.at(number).cores_of for number in (1, 2, 3)]
    assert own[1] is None  # all have one
    assert [None if it is None else it[[0, 5]].tolist() for it in own] == [[1, 2], None, [1, 3]]
    run = played(grouped(interventions=changes), tmp_path, "greedy")
    assert verify(run).problems == []
    [shown] = read([run.path])
    assert shown.setting.cores.tolist() == [27, 16, 38, 38]


def test_core_use_is_of_the_cores_that_there_are(run: RunDirectory) -> None:
    [shown] = read([run.path])
    rounds = len({row["round"] for row in table(run.path, "rounds")})
    served = sum(row["outcome"] == Outcome.SERVED for row in table(run.path, "offers"))
    assert rounds == 4
    assert shown.setting.cores[:rounds].sum() == 4 * (5 + 2 * 11)
    assert BUILT_IN["core use"].values(shown)[MARKET] == pytest.approx(100 * served / 108)


def test_verify_finds_a_job_on_a_core_that_the_client_does_not_have(run: RunDirectory, tmp_path: Path) -> None:
    assert verify(run).problems == []
    forged = played(grouped(), tmp_path, "greedy")

    def move(rows: list[dict[str, str]]) -> None:
        next(row for row in rows if int(row["client"]) < 5 and row["core"] == "0")["core"] = "1"

    edit(forged.path, "offers", move)
    assert any("the client's cores are not used once each (eq. 2)" in text for text in verify(forged).problems)


def test_verify_finds_a_client_that_serves_one_service_too_many(run: RunDirectory, tmp_path: Path) -> None:
    forged = played(grouped(), tmp_path, "greedy")

    def serve(rows: list[dict[str, str]]) -> None:
        lost = next(row for row in rows if int(row["client"]) < 5 and row["outcome"] == Outcome.OUTBID)
        won = next(row for row in rows if row["outcome"] == Outcome.SERVED)
        lost.update({key: won[key] for key in ("outcome", "start", "end")}, core="1", paid=lost["payment"])

    edit(forged.path, "offers", serve)
    problems = verify(forged).problems
    assert any("the client's cores are not used once each (eq. 2)" in text for text in problems)
    assert any("was served, but others pay the client more" in text for text in problems)


def test_services_see_who_has_fewer_cores() -> None:
    market = market_factory(grouped())(0)
    previewed = market.preview("strokes").cores_of
    seen = market.open_round()["strokes"]
    assert seen.cores == 2
    assert seen.cores_of is not None
    assert previewed is not None
    assert dict(enumerate(seen.cores_of.tolist())) == dict(enumerate(previewed.tolist())) == OWN
    assert not seen.cores_of.flags.writeable


def test_a_best_response_tops_as_many_rivals_as_the_client_has_cores() -> None:
    rivals = [Offer(np.array([0, 1]), np.array([each, each])) for each in (5.0, 3.0)]
    bids = np.array([2_000_000] * 3)
    assert critical_prices(bids, rivals, np.array([1, 2, 1])).tolist() == [5_000_001, 3_000_001, 2_000_000]
    assert critical_prices(bids, rivals[:1], np.array([1, 2, 1])).tolist() == [5_000_001, 2_000_000, 2_000_000]


def test_outbid_beats_as_many_bids_as_the_client_has_cores() -> None:
    seen = market_factory(grouped())(0).open_round()["digits"]
    rivals = np.sort(seen.bids[1:], axis=0)
    wanted = np.where(np.arange(16) < 5, rivals[1], rivals[0]) + 1e-6
    assert prices(seen) == pytest.approx(np.maximum(seen.own_bids, wanted))


def test_bounds_count_the_cores_that_there_are(run: RunDirectory, tmp_path: Path) -> None:
    """With money for all, the bound is the DQI of the best services of each client, as many as it has cores."""
    logs = Logs.read_whole(run)
    bounds = run_bounds(logs)
    assert (bounds.realised.sum(axis=1) <= bounds.bound + 1e-9).all()
    budgets = {f"services.{name}.budget": 10_000 for name in logs.places}
    rich = Logs.read_whole(played(grouped(rounds=1, **budgets), tmp_path, "greedy"))
    [(number, world)] = rich.worlds()
    ranked = np.sort(world.dqi, axis=0)[::-1]
    assert run_bounds(rich).bound[0] == pytest.approx(ranked[0].sum() + ranked[1, 5:].sum())
    price = best_set(rich, number, world, "digits").prices
    assert (best_set(rich, number, world, "digits", cores=1).prices <= price).all()


def test_screens_name_the_cores_that_a_client_has(run: RunDirectory) -> None:
    scenario = parse(run.scenario_text())
    book = RoundBook(LoggedRound.read(next(rounds_text(run.path))), World(scenario, 0))
    assert [book.cores(client) for client in range(16)] == list(OWN.values())
    told = [winner(book, client) for client in range(16) if book.offers(client)]
    assert any(" has 1 core and 2 offers; the highest payment wins: " in text for text in told)
    assert any(" has 2 cores and 2 offers, so it serves " in text for text in told)
    assert "16 clients with at most 2 cores each" in next(iter(story(scenario)))
    assert "16 clients with 2 cores each" in next(iter(story(grouped({"name": "a", "count": 3}))))
    assert "Groups of clients: phones, a." in story(grouped(PHONES, {"name": "a", "count": 3}))


def test_lockstep_refuses_clients_with_fewer_cores() -> None:
    with pytest.raises(LockstepError, match=r"clients with fewer cores than others \(clients.groups, cores\)"):
        curves_of(market_factory(grouped())(0))


def test_cores_of_groups_are_kept_and_swept() -> None:
    scenario = grouped()
    assert parse(dumps(scenario)) == scenario
    swept = grouped(sweep={"clients.groups.phones.cores": [1, 2]})
    assert [it.scenario.clients.groups[0].cores for it in points(swept)] == [1, 2]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("2", "must be at most the 1 of clients.cores, the most that a client has, not 2"),
        ("0", "must be greater than or equal to 1, not 0"),
        ("1.5", "must be a valid integer, not 1.5"),
    ],
)
def test_a_wrong_number_is_an_error_with_its_line(two_services: str, value: str, said: str, tmp_path: Path) -> None:
    group = f'[[clients.groups]]\nname = "phones"\ncount = 2\ncores = {value}\n\n'
    text = two_services.replace("[[services]]", f"{group}[[services]]", 1)
    with pytest.raises(ScenarioError) as caught:
        parse(text, "market.toml")
    [found] = caught.value.problems
    assert (found.key.partition("[")[0], found.message) == ("clients.groups.phones.cores", said)
    assert text.splitlines()[(found.line or 0) - 1] == f"cores = {value}"
    (tmp_path / "market.toml").write_text(text)
    done = flmarket("validate", "market.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert f"market.toml:{found.line}: " in done.stderr
