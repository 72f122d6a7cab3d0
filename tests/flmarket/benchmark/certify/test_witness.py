"""A witness is a scenario: loaded and run like any other, it shows what the certificate says."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from des.mechanism import MECHANISMS, Clearing
from des.mechanisms.pay_as_offered import PayAsOffered
from des.money import text, to_micro
from flmarket.benchmark.certify import witness
from flmarket.benchmark.certify.certificate import AttackPlan, certify
from flmarket.benchmark.certify.players import SIDES
from flmarket.benchmark.certify.sampling import Sizes, sample
from flmarket.benchmark.certify.search import Gain
from scenarios.build import Shelf, build
from scenarios.loader import load, parse, points
from scenarios.running.planning import plan
from scenarios.running.runner import execute


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "options", "side"),
    [
        ("pay-as-offered", {}, "services"),
        ("uniform-price", {}, "services"),
        ("uniform-price", {}, "clients"),
        ("proportional-share", {}, "services"),
        ("iterated", {"steps": 3}, "clients"),
    ],
)
def test_the_logs_of_its_runs_show_the_gain(tmp_path: Path, mechanism, options, side) -> None:
    """Truth and misreport are two runs; what the party has of each follows from offers.csv and its true amounts."""
    attack = AttackPlan(mechanism, options, markets=3, tries=60)
    gain = certify(attack).gaining(side)[0]
    market, path = gain.market, tmp_path / f"{mechanism}-{side}.toml"
    line = witness.write_witness(attack, gain, tmp_path)
    assert line == f"{path}: {witness.words(gain)}\n  flmarket run {path} --seed {market.seed}"
    has = []
    for run in plan([load(path)], [], [market.seed], tmp_path / "runs", Shelf()):
        execute(run, Shelf())
        offers = pd.read_csv(run.directory.path / "offers.csv").query("outcome == 'served'")
        services, clients = offers["service"].str.removeprefix("service-").astype(int) - 1, offers["client"]
        paid = to_micro(offers["paid" if "paid" in offers else "payment"].to_numpy())  # pay-as-offered logs it once
        true = market.values if side == "services" else market.costs  # noqa: PD011 - not of a table
        each = (true[services, clients] - paid) * (1 if side == "services" else -1)
        has.append(int(each[(services if side == "services" else clients) == gain.party].sum()))
    assert has == [gain.truthful, gain.misreporting]
    assert has[1] > has[0]


def test_over_several_rounds_it_bids_otherwise_in_odd_and_in_even_ones() -> None:
    attack = AttackPlan("uniform-price", shape=Sizes(2, 2, 1), markets=2, tries=20, rounds=3)
    gain = certify(attack).gaining("clients")[0]
    written = witness.witness(attack, gain)
    assert f"it has {text(gain.misreporting)} of 3 rounds instead of {text(gain.truthful)}" in written
    rounds = []
    for point in points(parse(written)):
        setup = build(point.scenario, gain.market.seed, Shelf())
        rounds.append([setup.market.population.draw(number).bid[:, gain.party].tolist() for number in (1, 2, 3)])
        setup.market.close()
    odd, even = np.split(np.array(gain.report), 2)
    assert rounds == [[[*gain.truth[:2]]] * 3, [odd.tolist(), even.tolist(), odd.tolist()]]


class ByAccuracy(PayAsOffered):
    """Pays bids, and nobody once a model is imperfect: in every other sampled market all are perfect."""

    def __init__(self) -> None:
        self.over = False

    def clear(self, book):
        core = super().clear(book).core
        return Clearing(np.where(self.over, -1, core), book.bids)

    def close(self, book, clearing):
        self.over = self.over or any(it.after < 1 for it in book.deliveries)


def test_where_a_mechanism_goes_by_accuracies_the_witness_has_what_comes_of_it_in_its_own_market(monkeypatch) -> None:
    monkeypatch.setattr(MECHANISMS, "_registered", {})
    MECHANISMS.register("by-accuracy", ByAccuracy)
    attack = AttackPlan("by-accuracy", shape=Sizes(2, 2, 1), markets=2, tries=20, rounds=3)
    gain = next(it for it in certify(attack).gaining("clients") if it.market.seed == 1)
    [has] = re.findall(r"^# .* has (\S+) of 3 rounds instead of (\S+)\.$", witness.witness(attack, gain), re.MULTILINE)
    assert float(has[0]) > float(has[1])
    assert to_micro(float(has[0])) < gain.misreporting


def test_the_words_name_the_lies_alone() -> None:
    market = sample(Sizes(), 0, 0)
    gain = Gain("services", 1, (3_000_000, 2_500_000), (0, 2_500_000), 0, 1_250_000, market)
    assert witness.words(gain) == (
        "service-2 reports 0 for client 0, who is worth 3 to it: it has 1.250000 of the round instead of 0.000000"
    )
    gain = Gain("clients", 0, (1_000_000, 500_000), (4_000_000, 100_000), 10, 20, market)
    assert witness.words(gain) == (
        "client 0 asks 4 of service-1, whose work costs it 1, 0.1 of service-2, whose work costs it 0.5: "
        "it has 0.000020 of the round instead of 0.000010"
    )


def test_the_first_run_is_the_truth_and_the_second_differs_in_the_misreport_alone() -> None:
    attack = AttackPlan("uniform-price", markets=2, tries=40)
    gain = certify(attack).gaining("services")[0]
    runs = points(parse(witness.witness(attack, gain)))
    key = f"services.service-{gain.party + 1}.policy_options.values"
    for run, report in zip(runs, (gain.truth, gain.report), strict=True):
        [(changed, values)] = run.values.items()  # noqa: PD011 - not of a table
        assert changed == key
        assert [text(to_micro(value)) for value in values] == [text(value) for value in report]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_the_largest_markets_can_be_shown(number: int) -> None:
    """Four services and five clients, each of which bids otherwise."""
    attack = AttackPlan("uniform-price", shape=Sizes(4, 5, 2), markets=1, tries=10, seed=number)
    certificate = certify(attack)
    for gain in [gain for side in SIDES for gain in certificate.gaining(side)]:
        witness.witness(attack, gain)


def test_a_scenario_that_does_not_play_the_same_is_not_written(tmp_path: Path) -> None:
    attack = AttackPlan("uniform-price", markets=2, tries=20)
    gain = certify(attack).gaining("clients")[0]
    wrong = replace(gain, misreporting=gain.misreporting + 1)
    assert witness.write_witness(attack, wrong, tmp_path).endswith(
        "(not written as a scenario: the policy worth offers something else than the players of this market)"
    )
    assert not list(tmp_path.iterdir())
