"""What clients contribute and envy, by replay: Shapley values against their definition, and runs against each other."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations
from math import factorial
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flmarket
from fl.arithmetic.streams import stream
from flmarket import InputError
from flmarket.analysis.results.replayed import gtg_shapley, shapley
from learning.statistics.measure import ALL_MEASURES, MARKET, MeasureError
from scenarios.loader import parse
from support.scenarios import TWO_SERVICES

SURROGATE = 'name = "two"\n' + TWO_SERVICES


def gloves(some: Sequence[int]) -> float:
    """Player 0 has a left glove, 1 and 2 have right ones; a pair is worth 1."""
    return float(0 in some and len(some) > 1)


def test_who_has_the_only_left_glove_has_two_thirds() -> None:
    assert shapley(gloves, 3) == pytest.approx([2 / 3, 1 / 6, 1 / 6])


def random_game(count: int, seed: int) -> dict[tuple[int, ...], int]:
    rng = stream(seed, "game")
    return {some: int(rng.integers(1000)) for size in range(count + 1) for some in combinations(range(count), size)}


def test_shapley_values_of_ten_players_are_those_of_brute_force() -> None:
    game, count = random_game(10, 0), 10
    expected = [Fraction(0)] * count
    for player in range(count):
        for size in range(count):
            for some in combinations([it for it in range(count) if it != player], size):
                gain = game[tuple(sorted((*some, player)))] - game[some]
                expected[player] += Fraction(factorial(size) * factorial(count - size - 1) * gain, factorial(count))
    found = shapley(lambda some: game[tuple(some)], count)
    assert found == pytest.approx([float(it) for it in expected], abs=1e-9)
    assert found.sum() == pytest.approx(game[tuple(range(count))] - game[()])


@given(st.integers(1, 5), st.integers(0, 1000))
def test_a_shapley_value_is_the_mean_gain_over_all_orders_of_arrival(count: int, seed: int) -> None:
    game, gains = random_game(count, seed), np.zeros(count)
    for order in permutations(range(count)):
        for place, player in enumerate(order):
            gains[player] += game[tuple(sorted(order[: place + 1]))] - game[tuple(sorted(order[:place]))]
    assert shapley(lambda some: game[tuple(some)], count) == pytest.approx(gains / factorial(count))


def test_sampled_values_are_near_the_exact_ones_by_their_errors() -> None:
    game = random_game(8, 1)
    exact = shapley(lambda some: game[tuple(some)], 8)
    found, error = gtg_shapley(lambda some: game[tuple(some)], 8, stream(0, "test"), 200, 0.0)
    assert (error > 0).all()
    assert (abs(found - exact) < 4 * error).all()
    assert found.sum() == pytest.approx(exact.sum())
    fewer, wider = gtg_shapley(lambda some: game[tuple(some)], 8, stream(0, "test"), 8, 0.0)
    assert wider.mean() > 2 * error.mean()
    assert not np.array_equal(fewer, found)


def test_truncation_ends_a_permutation_within_the_tolerance_and_leaves_a_round_without_change_out() -> None:
    asked: list[tuple[int, ...]] = []

    def first_counts(some: Sequence[int]) -> float:
        asked.append(tuple(some))
        return 0.5 * bool(some)

    found, error = gtg_shapley(first_counts, 12, stream(0, "test"), 2, 0.01)
    assert found == pytest.approx(np.full(12, 0.5 / 12))
    assert not error.any()
    assert max(map(len, asked[2:])) == 1  # after those of nobody and of all
    found, error = gtg_shapley(lambda some: 0.005 * len(some) / 12, 12, stream(0, "test"), 2, 0.01)
    assert not found.any()
    assert not error.any()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return flmarket.run(parse(SURROGATE), "random", out=tmp_path_factory.mktemp("replayed"), progress=False).paths[0]


def test_contributions_of_a_round_add_up_to_what_the_accuracy_rose(run: Path) -> None:
    found, results = flmarket.contributions(run), flmarket.read(run)
    columns = ["service", "round", "client", "paid", "leave_one_out", "shapley", "error", "permutations"]
    assert [*found.columns] == columns
    accuracy = results.rounds.pivot_table(index="round", columns="service", values="accuracy")
    for (service, number), rows in found.groupby(["service", "round"]):
        if number > 1:
            rise = accuracy[service][number] - accuracy[service][number - 1]
            assert rows["shapley"].sum() == pytest.approx(rise, abs=2e-6)  # logs have six decimals
        if len(rows) == 1:
            assert rows["leave_one_out"].tolist() == pytest.approx(rows["shapley"].tolist())
    served = results.offers[results.offers["outcome"] == "served"]
    assert found["paid"].sum() == pytest.approx(served["paid"].sum())
    assert len(found) == len(served)
    assert not found[["error", "permutations"]].any(axis=None)
    part = flmarket.contributions(run, service="beta", rounds=2, permutations=0)
    assert set(part["service"]) == {"beta"}
    assert part["round"].max() <= 2
    assert part["shapley"].isna().all()


def test_rounds_of_many_clients_are_sampled_and_say_how_often(tmp_path: Path) -> None:
    many = parse(SURROGATE, "many", {"clients.count": 14, "services.alpha.budget": 100, "rounds": 2})
    [path] = flmarket.run(many, "lcfa", out=tmp_path, progress=False).paths
    found = flmarket.contributions(path, service="alpha", permutations=30, tolerance=0.0)
    sampled = found[found["permutations"] > 0]
    assert len(sampled)
    assert (sampled.groupby("round")["client"].transform("size") > 10).all()
    assert (sampled["permutations"] >= 30).all()
    assert (sampled["error"] > 0).all()
    assert found.equals(flmarket.contributions(path, service="alpha", permutations=30, tolerance=0.0))


def test_who_poisoned_a_model_has_a_negative_value(one_service: str, tmp_path: Path) -> None:
    changes = {"clients.groups": [{"name": "poison", "count": 2, "update_scale": -3}], "services.alpha.budget": 100}
    changes |= {"rounds": 1, "training.model": "logistic", "training.local_epochs": 5, "clients.data_size": [80]}
    [path] = flmarket.run(parse(one_service, "one", changes), "lcfa", out=tmp_path, progress=False).paths
    values = flmarket.contributions(path).groupby("client")["shapley"].sum()
    poisoned, honest = values[values.index < 2], values[values.index >= 2]
    assert len(poisoned)
    assert poisoned.max() < 0 < honest.min()


def test_contributions_name_what_cannot_be_replayed(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown service 'gamma'; choose from alpha, beta"):
        flmarket.contributions(run, service="gamma")
    with pytest.raises(InputError):
        flmarket.contributions(tmp_path)
    for wrong in ({"rounds": 0}, {"permutations": -1}, {"tolerance": -0.1}):
        with pytest.raises(InputError, match=r"^rounds must be at least 1, and permutations and tolerance at least 0$"):
            flmarket.contributions(run, **wrong)


def test_correlations_are_those_of_the_clients_sums(run: Path) -> None:
    found, [result] = flmarket.contributions(run), flmarket.read(run).runs
    for name, column in (("Shapley correlation", "shapley"), ("leave-one-out correlation", "leave_one_out")):
        values = dict(ALL_MEASURES.load(name).values(result))
        services = [it for it in values if it != MARKET]
        assert services
        for service in services:
            sums = found[found["service"] == service].groupby("client")[["paid", column]].sum()
            assert values[service] == pytest.approx(np.corrcoef(sums["paid"], sums[column])[0, 1])
        assert values[MARKET] == pytest.approx(np.mean([values[it] for it in services]))


def test_envy_is_what_the_best_paid_place_would_be_worth_more(tmp_path: Path) -> None:
    """All have the same data, so all have the cost c = 0.05 * 40 - 0.2; who was not wanted envies price - c."""
    posted = {"market.mechanism": "posted-price", "market.options.price_per_sample": 0.06}
    alike = parse(SURROGATE, "alike", {"clients.data_size": [40], "clients.emd": [0.2], **posted})
    [result] = flmarket.run(alike, "lcfa", out=tmp_path, progress=False).runs
    offers, cost = result.in_units.offers, 0.05 * 40 - 1.0 * 0.2
    expected = {}
    for service in result.setting.services:
        served = offers[(offers["service"] == service) & (offers["outcome"] == "served")]
        rounds = [
            np.mean([rows["paid"].max() - rows.set_index("client")["paid"].get(it, cost) for it in range(6)])
            for _, rows in served.groupby("round")
        ]
        expected[service] = np.mean(rounds) if rounds else 0.0
    assert max(expected.values()) > 0
    expected[MARKET] = np.mean([*expected.values()])
    assert dict(ALL_MEASURES.load("envy").values(result)) == pytest.approx(expected)


def test_a_run_that_cannot_be_replayed_costs_its_report_that_measure_alone(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copytree(run, copy)
    rounds = copy / "rounds.csv"
    rounds.write_text(rounds.read_text().replace("0.9", "0.8", 1))
    [result] = flmarket.read(run).runs
    [broken] = flmarket.read(copy).runs
    assert result.setting.services == broken.setting.services
    with pytest.raises(MeasureError, match="measure 'Shapley correlation' of "):
        ALL_MEASURES.load("Shapley correlation").values(broken)
