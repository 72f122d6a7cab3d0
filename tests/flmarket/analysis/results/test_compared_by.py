"""Mechanisms and numbers of services as what is compared, and scenarios of one name that share little else."""

from pathlib import Path

import pytest

import flmarket
from flmarket.analysis.figures.report_figures import figures
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.report_formats import markdown
from flmarket.core.errors import InputError
from scenarios.loader import parse

CURVES = {"training.backend": "surrogate", "training.local_epochs": 2}
MECHANISMS = ["pay-as-offered", "uniform-price", "proportional-share"]


def played(out: Path, policies: list[str], **changes: object) -> flmarket.Results:
    fixed = {"training.backend": "surrogate", "rounds": 2, "description": ""}
    scenario = flmarket.load(changes.pop("scenario", "quickstart"), {**fixed, **changes})
    return flmarket.run(scenario, policies=policies, seeds=3, out=out, progress=False)


@pytest.fixture(scope="module")
def mechanisms(tmp_path_factory: pytest.TempPathFactory) -> flmarket.Results:
    """Three mechanisms crossed with two numbers of services, under two policies."""
    sweep = {"market.mechanism": MECHANISMS, "services.count": [1, 2]}
    return played(tmp_path_factory.mktemp("by"), ["hqfa", "random"], scenario="paper", sweep=sweep)


@pytest.mark.slow
def test_mechanisms_are_compared_as_policies_are(mechanisms: flmarket.Results) -> None:
    found = mechanisms.compare("uniform-price", by="market.mechanism")
    assert set(found.index.get_level_values("market.mechanism")) == {"pay-as-offered", "proportional-share"}
    assert set(found.index.get_level_values("scenario")) == {
        f"paper (services.count={count}, policies={policy})" for count in (1, 2) for policy in ("hqfa", "random")
    }
    assert (found["pairs"] == 3).all()
    means = mechanisms.summary()["AUC"].to_dict()
    for (label, mechanism, service, measure), row in found.iterrows():
        if measure == "AUC":
            count, policy = label[len("paper (services.count=")], label[:-1].rpartition("=")[2]
            one, other = (
                means[f"paper (market.mechanism={it}, services.count={count})", policy, service]
                for it in (mechanism, "uniform-price")
            )
            assert row["difference"] == pytest.approx(one - other)


def test_one_panel_has_a_curve_for_each_value(mechanisms: flmarket.Results) -> None:
    panels = [axes for axes in mechanisms.plot(by="market.mechanism").axes if axes.get_visible()]
    assert len(panels) == 2 * (1 + 2)  # policies, and the services of each number
    for panel in panels:
        assert [line.get_label() for line in panel.lines if not line.get_label().startswith("_")] == MECHANISMS


def test_a_number_of_services_can_be_the_baseline_of_those_that_all_have(mechanisms: flmarket.Results) -> None:
    found = mechanisms.compare("2", by="services.count")
    assert set(found.index.get_level_values("service")) == {"mnist", "market"}
    assert set(found.index.get_level_values("services.count")) == {"1"}
    panels = [axes for axes in mechanisms.plot(by="services.count").axes if axes.get_visible()]
    assert len(panels) == 3 * 2 * 2  # mechanisms, policies, and the services of the larger number


def test_sweeps_under_a_comparison_keep_the_policies_apart(mechanisms: flmarket.Results) -> None:
    text = markdown(make_report(mechanisms.runs, "pay-as-offered", by="market.mechanism"))
    for policy in ("hqfa", "random"):
        assert f"## Sweep of paper, {policy}\n" in text
    assert "Differences are market.mechanism minus pay-as-offered" in text


@pytest.mark.parametrize(
    ("baseline", "by", "message"),
    [
        ("vcg", "market.mechanism", "baseline 'vcg': no run has that market.mechanism; choose from pay-as-offered, "),
        ("1", "market.mechanisms", "no key 'market.mechanisms' to compare by; did you mean 'market.mechanism'"),
        ("1", "services.*.dataset", "no such key|no run has that"),
    ],
)
def test_what_cannot_be_compared_is_named(baseline: str, by: str, message: str, mechanisms: flmarket.Results) -> None:
    with pytest.raises(InputError, match=message):
        make_report(mechanisms.runs, baseline, by=by)


def test_sweeps_of_scenarios_of_one_name_with_other_services_are_two(
    one_service: str, two_services: str, tmp_path: Path
) -> None:
    """Their points were points of one sweep, whose arrays did not fit together."""
    sweep = {"services.alpha.budget": [6.0, 9.0], "clients.cores": [1, 2]}
    for text in (one_service, two_services):
        scenario = parse(text, overrides={"name": "same", **CURVES, "sweep": sweep})
        flmarket.run(scenario, out=tmp_path, progress=False)
    results = flmarket.read(tmp_path)
    assert len(results.summary()) == 4 * (1 + 1) + 4 * (2 + 1)
    report = make_report(results.runs)
    assert len({row.setting.family for row in report.points}) == 2
    assert markdown(report).count("\n## Sweep of same-") == 2
    assert sum("sweep-effects" in figure.name for figure in figures(results.runs)) == 2


def test_runs_that_are_not_crossed_have_no_effects_that_are_averages(tmp_path: Path) -> None:
    runs = [{"clients.cores": cores, "rounds": rounds} for cores, rounds in [(1, 2), (2, 3)]]
    results = played(tmp_path, ["random"], runs=runs)
    assert make_report(results.runs).effects == []
    assert not any("sweep-effects" in figure.name for figure in figures(results.runs))


def test_what_only_some_of_the_compared_have_heads_no_table(tmp_path: Path) -> None:
    """The heading had the level of the first row, whose policy takes one, over all policies."""
    policy = "services.digits.policy"
    runs = [{policy: "rtb-const", f"{policy}_options": {"level": 0.5}}, {policy: "random"}]
    report = make_report(played(tmp_path, ["as-configured"], runs=runs).runs, by=policy)
    assert {row.policy for row in report.estimates} == {"rtb-const", "random"}
    assert {row.setting.label for row in report.estimates} == {"quickstart"}


def test_one_truthful_run_does_not_hide_the_clients_of_the_others(tmp_path: Path) -> None:
    played(tmp_path, ["random"])
    played(tmp_path, ["random"], **{"clients.behaviour.kind": "markup"})
    assert len(flmarket.read(tmp_path).clients["seed"].unique()) == 3


def test_the_names_of_flmarket_are_the_public_ones() -> None:
    assert dir(flmarket) == sorted([*flmarket.__all__, "__version__"])
