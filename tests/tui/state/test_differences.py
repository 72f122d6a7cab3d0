"""Markets of one name are named by the values in which they differ, such as those of a sweep."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.running.batch import plan
from scenarios.running.runner import execute
from tui.state.batch_folder import RunsFolder
from tui.state.comparison import market_name, name_of
from tui.state.differences import flattened, told_apart
from tui.state.watched_run import Phase, Session

Play = Callable[..., Session]


def market(budget: float = 6, cores: int = 1, policy: str = "lcfa", **other: object) -> dict[str, object]:
    services = [
        {"name": "a", "budget": budget, "policy": policy, "policy_options": {"x": 1}},
        {"name": "b", "budget": 10, "policy": policy},
    ]
    return flattened({"name": "m", "rounds": 5, "clients": {"cores": cores}, "services": services, **other})


@pytest.mark.parametrize(
    ("markets", "names"),
    [
        ([market(6), market(7.5)], ["budget=6", "budget=7.5"]),
        ([market(6, 1), market(6, 2), market(7, 1)], ["cores=1, budget=6", "cores=2, budget=6", "cores=1, budget=7"]),
        ([market(6, policy="lcfa"), market(7, policy="hqfa")], ["budget=6", "budget=7"]),
        (
            [market(policy="lcfa"), market(policy="hqfa")],
            ["a.policy=lcfa, b.policy=lcfa", "a.policy=hqfa, b.policy=hqfa"],
        ),
        ([market(name="m"), market(name="other", description="the same")], []),
        ([market(u=1, v=1, w=1, x=1), market(u=2, v=2, w=2, x=2)], []),
    ],
)  # fmt: skip
def test_the_values_that_differ(markets: list[dict[str, object]], names: list[str]) -> None:
    assert list(told_apart(dict(enumerate(markets))).values()) == names


def test_a_folder_of_a_sweep_shows_its_values(tmp_path: Path) -> None:
    scenario = load("quickstart", ["training.backend=surrogate", "rounds=2", "sweep.services.digits.budget=[6, 7.5]"])
    for run in plan([scenario], ["lcfa", "random"], [0], tmp_path, Shelf()):
        execute(run, Shelf())
    found = RunsFolder(tmp_path).look().runs
    assert sorted(run.scenario for run in found) == 2 * ["quickstart (budget=6)"] + 2 * ["quickstart (budget=7.5)"]
    one = RunsFolder(found[0].standing.path.parent.parent).look().runs[0]
    assert one.scenario == found[0].standing.folder


def test_runs_that_are_compared_are_named_by_the_values(play_small: Play, scenario_text: str) -> None:
    """Until a run is complete, its scenario alone says which point it is."""
    other_text = scenario_text.replace("rounds = 12", "rounds = 11")
    assert other_text != scenario_text
    one, other = play_small(scenario_text), play_small(other_text)
    other.hash8 = "11111111"
    assert name_of(one, [one, other]) == f"{one.policy} · rounds=12"
    assert market_name(other, [one, other]) == f"{other.policy} · rounds=11"
    assert one.phase is Phase.COMPLETE
