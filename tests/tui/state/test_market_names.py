"""Markets of one name are named by the values in which they differ, such as those of a sweep."""

from collections.abc import Callable
from pathlib import Path

from scenarios.build import Shelf
from scenarios.file.schema import Intervention
from scenarios.loader import load
from scenarios.logs.run_state import RunState
from scenarios.running.planning import plan
from scenarios.running.runner import execute
from tui.state.batch_folder import RunsFolder
from tui.state.compared_runs import market_name, name_of
from tui.state.watched_run import Session

Play = Callable[..., Session]


def test_a_folder_of_a_sweep_shows_its_values(tmp_path: Path) -> None:
    scenario = load("quickstart", ["training.backend=surrogate", "rounds=2", "sweep.services.digits.budget=[6, 7.5]"])
    for run in plan([scenario], ["lcfa", "random"], [0], tmp_path, Shelf()):
        execute(run, Shelf())
    found = RunsFolder(tmp_path).look().runs
    assert sorted(run.scenario for run in found) == [
        f"quickstart (services.digits.budget={budget})" for budget in (6, 6, 7.5, 7.5)
    ]
    one = RunsFolder(found[0].standing.path.parent.parent).look().runs[0]
    assert one.scenario == found[0].standing.folder


def test_a_folder_with_forks_shows_what_they_change(tmp_path: Path) -> None:
    market = load("quickstart", ["training.backend=surrogate", "rounds=2"])
    changes = [(Intervention(round=2, key="clients.cores", value=cores),) for cores in (2, 3)]
    forks = [market.model_copy(update={"interventions": change}) for change in changes]
    for run in plan([market, *forks], ["lcfa"], [0], tmp_path, Shelf()):
        execute(run, Shelf())
    assert sorted(run.scenario for run in RunsFolder(tmp_path).look().runs) == [
        "quickstart (clients.cores = 2 from round 2)",
        "quickstart (clients.cores = 3 from round 2)",
        "quickstart (original)",
    ]


def test_runs_that_are_compared_are_named_by_the_values(play_small: Play, scenario_text: str) -> None:
    """Until a run is complete, its scenario alone says which point it is."""
    other_text = scenario_text.replace("rounds = 12", "rounds = 11")
    assert other_text != scenario_text
    one, other = play_small(scenario_text), play_small(other_text)
    other.hash8 = "11111111"
    assert name_of(one, [one, other]) == "rounds=12"
    assert market_name(other, [one, other]) == "rounds=11"
    assert one.state is RunState.COMPLETE
