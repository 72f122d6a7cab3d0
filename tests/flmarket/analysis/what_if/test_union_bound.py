"""The best set of clients as a union, against trying all sets of small markets."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.money import MICRO
from fl.data.dqi import JIAO, PRINTED, dqi
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.what_if import bounds, union_bound
from flmarket.analysis.what_if.bounds import Bounds, run_bounds
from flmarket.analysis.what_if.union_bound import ReportedData, best_union
from flmarket.core.errors import InputError
from scenarios.loader import load, parse
from support.runs import played, table
from support.scenarios import three_services
from support.tiers import examples

CLIENTS = st.lists(
    st.tuples(st.sampled_from([0, 50, 100, 400]), st.sampled_from([0.0, 0.4, 0.55, 1.8]), st.integers(0, 4)),
    min_size=1, max_size=7,
)  # fmt: skip


def worth_of(clients, parameters) -> float:
    images = sum(size for size, _, _ in clients)
    mean = sum(size * emd for size, emd, _ in clients) / max(images, 1)
    return max(float(dqi(images, mean, parameters)), 0.0) if images else 0.0


@examples(100)
@given(CLIENTS, st.integers(0, 12), st.sampled_from(sorted(PRINTED)), st.data())
def test_it_is_the_best_of_all_sets_that_the_budget_buys(clients, budget: int, which: str, draw) -> None:
    size, emd, price = (np.array(column) for column in zip(*clients, strict=True))
    there = np.array(sorted(draw.draw(st.sets(st.sampled_from(range(len(clients)))))), dtype=np.int64)
    data, parameters = ReportedData(size, emd, PRINTED[which]), PRINTED[which]
    chosen = best_union(data, price * MICRO, budget * MICRO, there)
    assert set(chosen.tolist()) <= set(there.tolist())
    assert price[chosen].sum() <= budget
    best = max(
        worth_of([clients[c] for c in them], parameters)
        for k in range(len(there) + 1)
        for them in combinations(there.tolist(), k)
        if sum(price[c] for c in them) <= budget
    )
    assert data.worth(chosen) == pytest.approx(best, abs=1e-9)
    assert data.worth(chosen) == pytest.approx(worth_of([clients[c] for c in chosen.tolist()], parameters), abs=1e-12)


def test_of_equal_sets_the_cheapest_is_bought() -> None:
    data = ReportedData(np.array([100, 100, 100]), np.array([0.4, 0.4, 0.4]), JIAO)
    assert best_union(data, np.array([3, 1, 2]) * MICRO, 3 * MICRO, np.arange(3)).tolist() == [1, 2]
    assert best_union(data, np.array([3, 1, 2]) * MICRO, 2 * MICRO, np.arange(3)).tolist() == [1]
    assert best_union(data, np.array([3, 1, 2]) * MICRO, 0, np.arange(3)).tolist() == []


def test_a_market_with_too_many_sets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(union_bound, "MOST_SETS", 7)
    data = ReportedData(np.array([100, 201, 403]), np.zeros(3), JIAO)
    with pytest.raises(InputError, match="more than 7 different sets"):
        best_union(data, np.ones(3, dtype=np.int64), 3, np.arange(3))
    assert best_union(data, np.ones(3, dtype=np.int64), 3, np.arange(2)).tolist() == [0, 1]


SMALL = """
name = "small"
rounds = 3
dqi = "jiao"
clients = { count = 6, cores = 1, data_size = [40, 80], emd = [0.2, 0.8], cost = { per_sample = 0.05, per_emd = 1.0 } }
training = { backend = "surrogate" }
""" + three_services("hqfa", "greedy", "random")


def test_what_served_is_worth_what_its_images_are_and_never_more_than_the_bounds(tmp_path: Path) -> None:
    run = played(parse(SMALL), tmp_path)
    found = run_bounds(Logs.read(run), "union")
    for number in (1, 2, 3):
        rows = [row for row in table(run.path, "offers") if row["round"] == str(number) and row["outcome"] == "served"]
        for m, name in enumerate(("alpha", "beta", "gamma")):
            of = [(int(row["data_size"]), float(row["emd"]), 0) for row in rows if row["service"] == name]
            assert found.realised[number - 1, m] == pytest.approx(worth_of(of, JIAO), abs=1e-9)
    assert found.realised.sum() > 0
    assert (found.best >= 0).all()
    assert (found.realised.sum(axis=1) <= found.bound + 1e-9).all()
    assert (found.best <= found.bound[:, None] + 1e-9).all()
    added = run_bounds(Logs.read(run))
    assert (found.realised <= added.realised + 1e-9).all(), "with these parameters, a union is worth less than a sum"
    runs = read([tmp_path])
    report = make_report(runs, measures=Bounds.read(runs, "union").measures)
    shown = {(row.service, row.measure.name): row.interval.estimate for row in report.estimates}
    assert shown["market", "union DQI bound"] == pytest.approx(found.bound.mean())
    assert shown["market", "union DQI bound ratio"] == pytest.approx(found.bound.sum() / found.realised.sum())
    assert ("market", "DQI bound") not in shown


def test_a_bound_is_exact_where_no_client_is_wanted_by_more_services_than_it_has_cores(tmp_path: Path) -> None:
    """With cores for all services each may choose alone."""
    alone = run_bounds(Logs.read(played(parse(SMALL, overrides=["clients.cores=3"]), tmp_path / "free")), "union")
    assert alone.exact.all()
    contested = run_bounds(Logs.read(played(parse(SMALL), tmp_path / "contested")), "union")
    assert not contested.exact.all()
    assert contested.bound.tolist() == alone.bound.tolist()


def test_bounds_of_unions_solve_no_knapsack_of_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(bounds, "best_set")
    found = run_bounds(Logs.read(played(parse(SMALL), tmp_path)), "union")
    assert found.best.sum() > 0


def test_clients_that_cannot_serve_a_service_are_no_part_of_its_best_set(tmp_path: Path) -> None:
    group = 'clients.groups=[{name = "own", count = 6, services = ["alpha", "gamma"]}]'
    found = run_bounds(Logs.read(played(parse(SMALL, overrides=[group]), tmp_path)), "union")
    assert found.best[:, 1].tolist() == [0, 0, 0]
    assert (found.best[:, [0, 2]] > 0).all()
    assert (found.realised.sum(axis=1) <= found.bound + 1e-9).all()


def test_bounds_of_a_market_with_too_many_sets_name_the_run_the_round_and_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(load("paper", ["training.backend=surrogate", "rounds=1", "dqi=jiao"]), tmp_path)
    monkeypatch.setattr(union_bound, "MOST_SETS", 20)
    with pytest.raises(InputError, match=r"seed-0000: round 1, mnist: there are more than 20 different sets"):
        Bounds.read(read([tmp_path]), "union")
