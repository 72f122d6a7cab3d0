"""Runs of several scenarios side by side: none hides another, and a policy looks the same wherever it is drawn."""

from pathlib import Path
from typing import Any

import pytest

import flmarket
from flmarket.analysis.figures.report_figures import figures
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.report_formats import markdown
from flmarket.analysis.results.run_results import by_setting, read, without_forks
from scenarios.build import Shelf
from scenarios.loader import builtin_text, parse
from scenarios.running.planning import plan

SHORT = {"training.backend": "surrogate", "rounds": 3}


def play(out: Path, *policies: str, **changes: Any) -> flmarket.Results:
    scenario = flmarket.load("quickstart", SHORT | changes)
    return flmarket.run(scenario, policies, seeds=1, out=out, progress=False)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenarios of one name, which have the policy random in common."""
    out = tmp_path_factory.mktemp("several") / "runs"
    play(out, "hqfa", "random")
    play(out, "lcfa", "random", **{"clients.cores": 2})
    return out


@pytest.fixture(scope="module")
def results(out: Path) -> flmarket.Results:
    return flmarket.Results([out])


LABELS = {"quickstart (clients.cores=1)", "quickstart (clients.cores=2)"}


def test_scenarios_of_one_name_are_told_apart_by_what_they_differ_in(results: flmarket.Results) -> None:
    summary = results.summary()
    assert len(summary) == 2 * 2 * 4
    assert set(summary.index.get_level_values("scenario")) == LABELS
    assert summary.groupby("clients.cores").size().to_dict() == {1: 2 * 4, 2: 2 * 4}
    compared = results.compare("random")
    assert compared.index.is_unique
    assert set(compared.index.get_level_values("scenario")) == LABELS
    assert all(label in repr(results) for label in LABELS)
    assert all(f"\n## {label}\n" in markdown(make_report(results.runs)) for label in LABELS)
    assert len({figure.caption for figure in figures(results.runs)}) == 2 * 5


def test_tables_of_many_runs_have_a_column_for_what_they_differ_in(results: flmarket.Results) -> None:
    assert set(results.rounds.groupby("clients.cores")["scenario"].unique().map(len)) == {1}
    assert set(results.rounds["clients.cores"]) == {1, 2}


def test_a_changed_service_and_its_forks_are_named_by_its_budget(tmp_path: Path) -> None:
    for budget in (5, 6):
        [run] = play(tmp_path, "hqfa", **{"services.digits.budget": budget}).paths
        flmarket.fork(run, 2, [{"clients.cores": 2}], progress=False)
    assert {run.setting.label for run in read([tmp_path])} == {
        f"quickstart (services.digits.budget={budget}){change}"
        for budget in (5, 6)
        for change in ("", ": clients.cores = 2 from round 2")
    }


def test_forks_come_behind_what_they_are_of_and_can_be_left_out(tmp_path: Path) -> None:
    [run] = play(tmp_path, "hqfa").paths
    forks = flmarket.fork(run, 2, [{"clients.cores": cores} for cores in range(2, 6)], progress=False)
    found = [it.directory.path for it in read([tmp_path])]
    assert found[0] == run
    assert set(found[1:]) == {fork.path for fork in forks}
    assert [it.directory.path for it in without_forks(read([tmp_path]))] == [run]
    assert len(without_forks(read([forks[0].path]))) == 1, "one alone is shown"
    named = [run, forks[0].path]
    assert len(without_forks(read(named), named)) == 2, "and what is named"


def test_scenarios_that_differ_in_who_plays_are_named_by_that(tmp_path: Path) -> None:
    for policy in ("random", "lcfa"):
        play(tmp_path, **{"services.digits.policy": policy})
    assert {run.setting.label for run in read([tmp_path])} == {
        f"quickstart (services.digits.policy={policy})" for policy in ("random", "lcfa")
    }


def test_scenarios_that_differ_in_too_much_are_named_by_their_hashes(tmp_path: Path) -> None:
    play(tmp_path, "random")
    play(tmp_path, "random", **{"clients.cores": 2, "clients.count": 9, "rounds": 4, "market.mechanism": "vcg"})
    assert {run.setting.label for run in read([tmp_path])} == {path.name for path in tmp_path.iterdir()}


def test_a_scenario_alone_goes_by_its_name(out: Path) -> None:
    for folder in out.iterdir():
        assert {run.setting.label for run in read([folder])} == {"quickstart"}


def test_the_same_scenario_in_two_places_is_told_apart_by_its_path(out: Path, tmp_path: Path) -> None:
    play(tmp_path, "greedy", **{"clients.cores": 2})
    [copy] = tmp_path.iterdir()
    labels = {run.setting.label for run in read([out, tmp_path])}
    assert labels == {
        f"{copy} (clients.cores=2)",
        f"{out / copy.name} (clients.cores=2)",
        "quickstart (clients.cores=1)",
    }


def test_a_policy_has_one_colour_in_all_panels_and_one_line_in_the_legend(results: flmarket.Results) -> None:
    figure = results.plot("accuracy")
    colours: dict[str, set[str]] = {}
    for axes in figure.axes:
        for line in axes.lines:
            if not line.get_label().startswith("_"):
                colours.setdefault(line.get_label(), set()).add(line.get_color())
    assert set(colours) == {"hqfa", "random", "lcfa"}
    assert all(len(found) == 1 for found in colours.values())
    assert len(set.union(*colours.values())) == 3
    [legend] = figure.legends
    shown = {text.get_text(): line.get_color() for text, line in zip(legend.texts, legend.get_lines(), strict=True)}
    assert shown == {policy: found for policy, [found] in colours.items()}


@pytest.mark.parametrize("kind", ["accuracy", "reward"])
def test_a_policy_has_one_colour_in_all_figures_of_a_report(results: flmarket.Results, kind: str) -> None:
    drawn = [figure.draw().axes[0] for figure in figures(results.runs) if figure.name.endswith(kind)]
    colours = [{line.get_label(): line.get_color() for line in axes.lines} for axes in drawn]
    assert len(colours) == len(by_setting(results.runs)) == 2
    assert colours[0]["random"] == colours[1]["random"]
    policies = {"hqfa", "random", "lcfa"}
    assert len({(colours[0] | colours[1])[policy] for policy in policies}) == len(policies)


def test_the_points_of_a_sweep_stay_in_its_order(tmp_path: Path) -> None:
    """Not in that of their hashes, nor of their values."""
    text = builtin_text("quickstart") + "\n[sweep]\n'clients.cores' = [3, 1, 4, 2]\n"
    scenario = parse(text, overrides=SHORT)
    results = flmarket.run(scenario, ["lcfa", "random"], out=tmp_path, progress=False)
    assert [run.setting.sweep["clients.cores"] for run in results.runs] == [3, 3, 1, 1, 4, 4, 2, 2]
    headings = [line for line in markdown(make_report(results.runs)).splitlines() if line.startswith("## quickstart")]
    assert headings == [f"## quickstart (clients.cores={cores})" for cores in (3, 1, 4, 2)]


def test_runs_of_scenarios_of_one_name_are_called_differently(tmp_path: Path) -> None:
    """In the closing table of a batch, and in the messages about its progress."""
    scenarios = [parse(builtin_text("quickstart"), overrides=SHORT | {"clients.cores": cores}) for cores in (1, 2)]
    runs = plan(scenarios, ["random"], [0], tmp_path, Shelf())
    assert [run.group for run in runs] == [f"quickstart clients.cores={cores} (random)" for cores in (1, 2)]
    [alone] = plan(scenarios[:1], ["random"], [0], tmp_path, Shelf())
    assert alone.group == "quickstart (random)"


def test_a_fork_is_called_by_its_changes_as_on_the_screens(tmp_path: Path) -> None:
    [run] = play(tmp_path, "hqfa").paths
    flmarket.fork(
        run, 2, [{"clients.cores": 2}, {"services.digits.budget": 5, "clients.offline": [1, 2]}], progress=False
    )
    labels = {run.setting.label for run in read([tmp_path])}
    assert labels == {
        "quickstart",
        "quickstart: clients.cores = 2 from round 2",
        "quickstart: services.digits.budget = 5 from round 2, clients.offline = [1, 2] from round 2",
    }
    markdown_page = markdown(make_report(read([tmp_path])))
    assert "## quickstart: clients.cores = 2 from round 2\n" in markdown_page
