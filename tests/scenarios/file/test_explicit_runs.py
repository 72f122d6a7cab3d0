"""[[runs]]: an explicit list of what to run, alone or with a sweep."""

import pytest

from scenarios.file.checks import Catalogue
from scenarios.loader import ScenarioError, dumps, parse, points, with_policy, with_rounds

RUNS = """
[[runs]]
clients.cores = 1
"services.mnist.budget" = 10

[[runs]]
services.digits.policy = "random"
"""


def problems(text: str, catalogue: Catalogue, *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse(text, "market.toml", overrides, catalogue=catalogue)
    return [str(problem) for problem in caught.value.problems]


def test_each_table_is_a_scenario(market: str, catalogue: Catalogue) -> None:
    scenario = parse(market + RUNS, catalogue=catalogue)
    first, second = points(scenario, catalogue=catalogue)
    assert first.values == {"clients.cores": 1, "services.mnist.budget": 10}
    assert (first.scenario.clients.cores, first.scenario.service("mnist").budget) == (1, 10)
    assert second.values == {"services.digits.policy": "random"}
    assert (second.scenario.clients.cores, second.scenario.service("digits").policy) == (2, "random")
    assert not first.scenario.runs


def test_with_a_sweep_every_table_meets_every_point(market: str, catalogue: Catalogue) -> None:
    scenario = parse(market + RUNS + "[sweep]\nrounds = [2, 3]\n", catalogue=catalogue)
    assert [point.values["rounds"] for point in points(scenario, catalogue=catalogue)] == [2, 3, 2, 3]
    assert len({point.label for point in points(scenario, catalogue=catalogue)}) == 4


def test_it_is_written_and_read_back(market: str, catalogue: Catalogue) -> None:
    scenario = parse(market + RUNS, catalogue=catalogue)
    assert parse(dumps(scenario), catalogue=catalogue) == scenario


@pytest.mark.parametrize(
    ("runs", "problem"),
    [
        ("[[runs]]\nclients.coers = 1\n", "did you mean 'cores'?"),
        ("[[runs]]\nclients.cores = 0\n", "with clients.cores=0: Input should be greater than or equal to 1, not 0"),
        ("[[runs]]\nservices.mnits.budget = 1\n", "unknown service 'mnits'; did you mean 'mnist'?"),
        ("[[runs]]\nname = 'x'\n", "cannot be swept"),
        ("[[runs]]\nclients.cores = 1\n[sweep]\nclients.cores = [1, 2]\n", "is swept too"),
        ("[[runs]]\n'clients.cost' = 3\nclients.cost.per_emd = 1.0\n", "overlaps with clients.cost"),
        ("[[runs]]\ntimeline.deadline = 5\ntimeline.slot = 3\n", "must be at most the slot"),
        ("[[runs]]\n", "runs"),
        ("[runs]\nclients.cores = 1\n", "runs"),
    ],
)
def test_a_mistake_is_named_with_its_line(runs: str, problem: str, market: str, catalogue: Catalogue) -> None:
    [found, *_] = [text for text in problems(market + runs, catalogue) if problem in text]
    assert int(found.split(":")[1]) > market.count("\n")


def test_the_command_line_does_not_change_what_runs_set(market: str, catalogue: Catalogue) -> None:
    [found] = problems(market + RUNS, catalogue, "clients.cores=2")
    assert "is in this scenario's [[runs]]" in found
    scenario = parse(market + RUNS + "[sweep]\nrounds = [2, 3]\n", catalogue=catalogue)
    with pytest.raises(ScenarioError, match="policy"):
        with_policy(scenario, "hqfa", catalogue=catalogue)
    with pytest.raises(ScenarioError, match="rounds"):
        with_rounds(scenario, 3, catalogue=catalogue)
