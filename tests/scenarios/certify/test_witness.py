"""A witness is a scenario: loaded and run like any other, it shows what the certificate says."""

from pathlib import Path

import pandas as pd
import pytest

from des.money import text, to_micro
from scenarios.build import Shelf
from scenarios.certify import report, witness
from scenarios.certify.certificate import Certificate, Found, Plan, certify
from scenarios.certify.sampling import Shape
from scenarios.certify.search import Gain
from scenarios.loader import load, parse, points
from scenarios.running.batch import plan
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
    certificate = certify(Plan(mechanism, options, markets=3, tries=60))
    gain, market = certificate.found[side].gain, certificate.found[side].market
    true = market.values if side == "services" else market.costs  # noqa: PD011 - not of a table
    [line] = [line for line in report.write_witnesses(certificate, tmp_path) if f"{mechanism}-{side}" in line]
    path = tmp_path / f"{mechanism}-{side}.toml"
    assert line == f"{path}: {witness.words(gain)}\n  flmarket run {path} --seed {market.seed}"
    has = []
    for run in plan([load(path)], [], [market.seed], tmp_path / "runs", Shelf()):
        execute(run, Shelf())
        offers = pd.read_csv(run.directory.path / "offers.csv").query("outcome == 'served'")
        services, clients = offers["service"].str.removeprefix("service-").astype(int) - 1, offers["client"]
        paid = to_micro(paid_of(offers).to_numpy())
        if side == "services":
            own = (services == gain.party).to_numpy()
            has.append(int((true[services, clients] - paid)[own].sum()))
        else:
            own = (clients == gain.party).to_numpy()
            has.append(int((paid - true[services, clients])[own].sum()))
    assert has == [gain.truthful, gain.misreporting]
    assert has[1] > has[0]


def paid_of(offers: pd.DataFrame) -> pd.Series:
    """Return what was paid; logs of pay-as-offered name it once."""
    return offers["paid" if "paid" in offers else "payment"]


def test_the_words_name_the_lies_alone() -> None:
    gain = Gain("services", 1, (3_000_000, 2_500_000), (0, 2_500_000), 0, 1_250_000)
    assert witness.words(gain) == (
        "service-2 reports 0 for client 0, who is worth 3 to it: it has 1.250000 of the round instead of 0.000000"
    )
    gain = Gain("clients", 0, (1_000_000, 500_000), (4_000_000, 100_000), 10, 20)
    assert witness.words(gain) == (
        "client 0 asks 4 of service-1, whose work costs it 1, 0.1 of service-2, whose work costs it 0.5: "
        "it has 0.000020 of the round instead of 0.000010"
    )


def test_the_first_run_is_the_truth_and_the_second_differs_in_the_misreport_alone() -> None:
    certificate = certify(Plan("uniform-price", markets=2, tries=40))
    made = witness.witness(certificate, "services")
    honest, lying = (point.values for point in points(parse(made.scenario)))  # noqa: PD011 - not of a table
    gain = certificate.found["services"].gain
    [key] = honest
    assert list(lying) == [key] == [f"services.service-{gain.party + 1}.policy_options.values"]
    assert [text(to_micro(value)) for value in honest[key]] == [text(value) for value in gain.truth]
    assert [text(to_micro(value)) for value in lying[key]] == [text(value) for value in gain.report]


@pytest.mark.parametrize("number", range(6))
def test_the_largest_markets_can_be_shown(number: int) -> None:
    """Four services and five clients, each of which bids otherwise."""
    certificate = certify(Plan("uniform-price", shape=Shape(4, 5, 2), markets=1, tries=10, seed=number))
    for side in ("services", "clients"):
        if certificate.found[side].gain:
            witness.witness(certificate, side)


def test_what_a_scenario_does_not_play_the_same_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = certify(Plan("uniform-price", markets=2, tries=20))
    monkeypatch.setattr(witness, "outcome", lambda report: {})
    lines = list(report.write_witnesses(certificate, tmp_path))
    assert len(lines) == 2
    for line in lines:
        assert line.endswith(
            "(not written as a scenario: the policy worth offers something else than the players of this market)"
        )
    assert not list(tmp_path.iterdir())


def test_without_a_gain_there_is_no_witness() -> None:
    certificate = Certificate(Plan("vcg"), 1, 1, {"services": Found(1), "clients": Found(1)})
    with pytest.raises(ValueError, match=r"^none of the clients gains$"):
        witness.witness(certificate, "clients")
