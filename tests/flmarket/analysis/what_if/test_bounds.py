"""Bounds on what services could have had together, against trying every allocation of small markets."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.money import MICRO
from flmarket.analysis.results.measures import MEASURES
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.report_formats import csv_text, markdown
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.what_if import joint_bound as joint
from flmarket.analysis.what_if.bounds import Bounds, RunBounds, run_bounds
from flmarket.analysis.what_if.joint_bound import Bound, joint_bound
from flmarket.analysis.what_if.possible import possible
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import builtin_names, load, parse
from scenarios.logs.directory import RunDirectory
from scenarios.running.planning import plan
from scenarios.running.runner import execute
from support.runs import played
from support.scenarios import three_services
from support.tiers import examples, slow

SCENARIO = """
name = "small"
rounds = 4
clients = { count = 5, cores = 1, data_size = [40, 80], emd = [0.2, 0.8], cost = { per_sample = 0.05, per_emd = 1.0 } }
training = { backend = "surrogate" }
""" + three_services("hqfa", "hqfa", "random")


def bounds_of(out: Path, text: str = SCENARIO, *changes: str) -> tuple[RunBounds, RunDirectory]:
    run = played(parse(text, overrides=list(changes)), out)
    return run_bounds(Logs.read(run)), run


def allocations(services: int, clients: int, cores: int) -> Iterator[np.ndarray]:
    """Yield every [M, C] choice of who serves whom in which no client serves more than K services."""
    rows = [row for row in product((0, 1), repeat=services) if sum(row) <= cores]
    for chosen in product(rows, repeat=clients):
        yield np.array(chosen, dtype=np.int64).T.reshape(services, clients)


@st.composite
def markets(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Worth [M, C], bids [M, C], budgets [M] and K of a small market; amounts often add up to a budget, or nearly."""
    services, clients = draw(st.sampled_from([(1, 6), (2, 5), (3, 4), (3, 3)]))
    n = services * clients
    worth = draw(st.lists(st.sampled_from([-0.5, 0.0, 0.1, 0.25, 0.251, 0.8, 1.0]), min_size=n, max_size=n))
    bids = draw(st.lists(st.sampled_from([0, 1, 999_999, 1_000_000, 1_000_001, 2_500_000]), min_size=n, max_size=n))
    budgets = draw(st.lists(st.integers(0, 4).map(lambda it: it * 1_000_000), min_size=services, max_size=services))
    shape = services, clients
    return np.reshape(worth, shape), np.reshape(bids, shape), np.array(budgets), draw(st.integers(1, 3))


@given(markets())
@examples(60)
def test_the_bound_is_the_best_of_all_allocations(market: tuple[np.ndarray, np.ndarray, np.ndarray, int]) -> None:
    worth, bids, budgets, cores = market
    best = max(
        (worth * chosen).sum()
        for chosen in allocations(*worth.shape, cores)
        if ((bids * chosen).sum(axis=1) <= budgets).all()
    )
    found = joint_bound(worth, bids, budgets, cores)
    assert found.exact
    assert found.value == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(markets())
@examples(60)
def test_the_relaxation_is_never_below_the_optimum(market: tuple[np.ndarray, np.ndarray, np.ndarray, int]) -> None:
    exact = joint_bound(*market)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "LARGEST", 0)
        relaxed = joint_bound(*market)
    assert relaxed.value >= exact.value * (1 - 1e-9)
    assert relaxed.exact == (exact.value == 0)


@given(markets())
@examples(60)
def test_knapsacks_and_the_0_1_program_find_the_same_optimum(
    market: tuple[np.ndarray, np.ndarray, np.ndarray, int],
) -> None:
    by_knapsacks = joint_bound(*market)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "TRIES", 0)
        by_program = joint_bound(*market)
    assert by_knapsacks.exact
    assert by_program.exact
    assert by_knapsacks.value == pytest.approx(by_program.value, rel=1e-9, abs=1e-9)


def test_a_bound_that_is_not_proven_is_that_of_the_relaxation(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    bids = rng.integers(500_000, 3_000_000, (3, 30))
    market = rng.random((3, 30)), bids, np.full(3, 9_500_000), 1
    exact = joint_bound(*market)
    monkeypatch.setattr(joint, "TRIES", 0)
    monkeypatch.setattr(joint, "NODES", 0)
    relaxed = joint_bound(*market)
    assert exact.exact
    assert not relaxed.exact
    assert exact.value < relaxed.value < 1.1 * exact.value


# Work outlasts the rounds of `stragglers`, `job-stream` and `phones-at-night`, and in `afl` services decide on clients
# one after another: these have no bounds.
NO_BOUNDS = "afl", "changing", "scarce", "stragglers", "job-stream", "phones-at-night"
OTHERS = [name for name in builtin_names() if name not in NO_BOUNDS]


@pytest.mark.parametrize("name", ["changing", "scarce", *slow(*OTHERS)])
def test_nobody_gets_more_than_the_bound(name: str, tmp_path: Path) -> None:
    early = ["services.fashion-late.arrival=2"] if name == "changing" else []
    scenario = load(name, ["training.backend=surrogate", "rounds=2", *early])
    for run in plan([scenario], [], [0], tmp_path, Shelf()):
        execute(run, Shelf())
        found = run_bounds(Logs.read(run.directory))
        assert found.realised.sum() > 0
        assert (found.realised.sum(axis=1) <= found.bound * (1 + 1e-9)).all()
        assert found.ratio >= 1 - 1e-9


def test_a_run_is_bounded_by_its_budgets_cores_and_who_is_there(tmp_path: Path) -> None:
    """Each thing that is taken away from round 3 on lowers the bound of rounds from there, and only of those."""
    before, _ = bounds_of(tmp_path / "before")
    for key, value in (("services.alpha.budget", "1.0"), ("clients.offline", "[0, 1, 2, 3]")):
        text = f'{SCENARIO}\n[[interventions]]\nround = 3\nkey = "{key}"\nvalue = {value}\n'
        after, _ = bounds_of(tmp_path / key, text)
        assert after.bound[:2].tolist() == before.bound[:2].tolist()
        assert (after.bound[2:] <= before.bound[2:]).all()
        assert after.bound.sum() < before.bound.sum()
    text = f'{SCENARIO}\n[[interventions]]\nround = 3\nkey = "clients.cores"\nvalue = 2\n'
    more, _ = bounds_of(tmp_path / "cores", text)
    assert more.bound[:2].tolist() == before.bound[:2].tolist()
    assert (more.bound[2:] >= before.bound[2:]).all()
    assert more.bound.sum() > before.bound.sum()


def test_a_service_that_left_counts_for_nothing(tmp_path: Path) -> None:
    found, _ = bounds_of(tmp_path, SCENARIO, "services.alpha.target_accuracy=0.2")
    assert found.best[0, 0] > 0
    assert found.best[-1, 0] == found.realised[-1, 0] == 0
    assert found.bound[-1] < found.bound[0]


def test_what_is_reported_counts(tmp_path: Path) -> None:
    """Clients that say that they have more data than they hold raise the bound: services know nothing else."""
    fitted = SCENARIO.replace("rounds = 4", 'rounds = 4\ndqi = "fitted"')
    honest, _ = bounds_of(tmp_path / "honest", fitted, "services.alpha.budget=1000")
    options = ["clients.behaviour.kind=misreport", "clients.behaviour.options.size=2.0"]
    said, _ = bounds_of(tmp_path / "said", fitted, "services.alpha.budget=1000", *options)
    assert (said.bound > honest.bound).all()


def test_the_example_of_the_page() -> None:
    """docs/bounds.md: neither service could do better alone, and yet they could together."""
    worth = np.array([[0.9, 0.6, 0.7], [0.4, 0.6, 0.3]])
    bids, budgets = np.array([[3, 2, 3], [2, 2, 3]]) * MICRO, np.array([5, 4]) * MICRO
    assert joint_bound(worth, bids, budgets, 1) == Bound(1.8, exact=True)
    made = [[(0, 3 * MICRO), (1, 2 * MICRO)], [(1, 2_500_000)]]
    alone = [possible(bids[m], worth[m], [made[1 - m]], cores=1, budget=int(budgets[m])) for m in (0, 1)]
    assert [found.clients.tolist() for found in alone] == [[0], [1]]
    assert [found.quality for found in alone] == [0.9, 0.6]
    assert alone[0].prices.tolist() == [3_000_000, 2_500_001, 3_000_000]
    assert alone[1].prices.tolist() == [3_000_001, 2_000_001, 3_000_000]


def test_the_measures_of_a_run_follow_from_its_rounds() -> None:
    found = RunBounds(
        np.array([3.0, 1.0]), np.array([True, False]), np.array([[1.0, 0.5], [0.5, 0.0]]),
        np.array([[2.0, 1.0], [1.0, 0.0]]), np.array([[True, True], [True, False]]),
    )  # fmt: skip
    assert found.ratio == 2.0
    assert found.share.tolist() == [50.0, 50.0]
    assert found.regret.tolist() == [[1.0, 0.5], [0.5, 0.0]]
    assert found.mean_regret.tolist() == [0.75, 0.5], "the second service left after the first round"
    there = np.ones((1, 1), dtype=np.bool_)
    nothing = RunBounds(np.zeros(1), np.array([True]), np.zeros((1, 1)), np.zeros((1, 1)), there)
    assert nothing.ratio == 1.0
    assert nothing.share.tolist() == [100.0]
    nobody = RunBounds(np.ones(1), np.array([True]), np.zeros((1, 1)), np.ones((1, 1)), there)
    assert nobody.ratio == float("inf")


def test_a_report_shows_the_bounds(tmp_path: Path) -> None:
    found, _ = bounds_of(tmp_path)
    runs = read([tmp_path])
    bounds = Bounds.read(runs)
    report = make_report(runs, measures=[*MEASURES, *bounds.measures], notes=bounds.left_out(runs))
    values = {(row.service, row.measure.name): row.interval.estimate for row in report.estimates}
    assert values["market", "DQI bound ratio"] == pytest.approx(found.bound.sum() / found.realised.sum())
    assert values["market", "DQI bound"] == pytest.approx(found.bound.mean())
    assert values["market", "bound exact"] == 100
    assert values["alpha", "DQI served"] == pytest.approx(found.realised[:, 0].mean())
    assert values["alpha", "hindsight share"] == pytest.approx(found.share[0])
    assert values["alpha", "regret"] == pytest.approx(found.mean_regret[0])
    assert values["market", "regret"] == pytest.approx(found.mean_regret.mean())
    assert "| spent | DQI served | DQI bound ratio |" in markdown(report)
    assert "| hindsight share |" in markdown(report)
    assert "- *DQI bound ratio*: DQI bound / DQI served, at least 1;" in markdown(report)
    assert "DQI bound ratio" in csv_text(report)
    assert "DQI bound ratio" not in markdown(make_report(runs))


def test_under_another_mechanism_hindsight_is_left_out_by_name(tmp_path: Path) -> None:
    bounds_of(tmp_path, SCENARIO, "market.mechanism=uniform-price")
    runs = read([tmp_path])
    bounds = Bounds.read(runs)
    report = make_report(runs, measures=[*MEASURES, *bounds.measures], notes=bounds.left_out(runs))
    assert not any(row.measure.name == "hindsight share" for row in report.estimates)
    assert any(row.measure.name == "DQI bound ratio" for row in report.estimates)
    line = (
        "small: no hindsight share and no regret: they are worked out for pay-as-offered only; these runs are cleared "
        "by uniform-price."
    )
    assert line in markdown(report)


def test_with_many_clients_hindsight_is_left_out_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flmarket.analysis.what_if.bounds.MOST_CLIENTS", 4)
    bounds_of(tmp_path)
    runs = read([tmp_path])
    assert list(Bounds.read(runs).left_out(runs)) == [
        "small: no hindsight share and no regret: they are worked out for up to 4 clients; these runs have 5."
    ]


def test_the_rows_are_those_of_the_rounds(tmp_path: Path) -> None:
    """One for each round and service that takes part, with what it got, what it could have had, and the difference."""
    found, _ = bounds_of(tmp_path, SCENARIO, "services.alpha.target_accuracy=0.2")
    runs = read([tmp_path])
    rows = Bounds.read(runs).table(runs).to_dict("records")
    assert len(rows) == found.active.sum() < found.active.size, "alpha leaves before the end"
    assert {row["service"] for row in rows} == {"alpha", "beta", "gamma"}
    assert [row["round"] for row in rows if row["service"] == "beta"] == [1, 2, 3, 4]
    for row in rows:
        assert row["regret"] == row["best"] - row["realised"]
    own = [row["regret"] for row in rows if row["service"] == "alpha"]
    assert np.mean(own) == pytest.approx(found.mean_regret[0])
    assert {(row["scenario"], row["policy"], row["seed"]) for row in rows} == {("small", "as-configured", 0)}


def test_rows_without_hindsight_leave_it_empty(tmp_path: Path) -> None:
    bounds_of(tmp_path, SCENARIO, "market.mechanism=uniform-price")
    runs = read([tmp_path])
    assert Bounds.read(runs).table(runs)[["best", "regret"]].isna().all(axis=None)


def test_a_run_in_which_nobody_served_has_no_ratio(tmp_path: Path) -> None:
    """The policies beside it keep theirs: its cell stays empty."""
    for run in plan([parse(SCENARIO)], ["lcfa", "random"], [0], tmp_path, Shelf()):
        execute(run, Shelf())
    runs = read([tmp_path])
    bounds = Bounds.read(runs)
    path = next(run.directory.path for run in runs if run.policy == "random")
    of = {**bounds.of, path: replace(bounds.of[path], realised=np.zeros((4, 3)))}
    lines = markdown(make_report(runs, measures=[*MEASURES, *Bounds(of).measures])).splitlines()
    at = next(it for it in lines if "DQI bound ratio |" in it).rstrip(" |").split(" | ").index("DQI bound ratio")
    lcfa, random = (
        [*next(line for line in lines if line.startswith(f"| {it} |")).rstrip(" |").split(" | "), ""]
        for it in ("lcfa", "random")
    )
    assert float(lcfa[at]) >= 1
    assert not random[at].strip()


def test_a_world_that_cannot_be_drawn_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, directory = bounds_of(tmp_path)
    monkeypatch.setattr("flmarket.analysis.verification.evidence.Logs.behaviour", None)
    with pytest.raises(InputError) as caught:
        Bounds.read(read([tmp_path]))
    assert str(caught.value) == (
        f"{directory.path}: the clients' behaviour of the run is not known here, or has changed, so its bids cannot be "
        "drawn"
    )
