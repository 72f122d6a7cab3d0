"""An agent that was trained anew never passes for the one whose results are there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from des.log_records import RoundReport
from flmarket.core.errors import InputError, RunError
from scenarios.build import Shelf
from scenarios.loader import parse
from scenarios.logs.directory import RunDirectoryError
from scenarios.running.batch import run_all
from scenarios.running.batch_run import AfterRound
from scenarios.running.planning import plan, split_by_completion
from scenarios.running.run_options import RunOptions
from scenarios.running.runner import execute
from support.observers import Observer
from support.worlds import switching


@pytest.fixture
def agent(write_agent: Callable[..., Path], tmp_path: Path) -> Path:
    """A file with the agent that comes with flmarket."""
    return write_agent(tmp_path / "mahdrl.safetensors")


def test_a_scenario_that_names_the_file_gets_another_directory(
    agent: Path, write_agent: Callable[..., Path], two_services: str, tmp_path: Path
) -> None:
    mine = ["services.alpha.policy=mahdrl", f"services.alpha.checkpoint={agent}"]
    scenario = parse(two_services, overrides=mine)
    [before] = plan([scenario], [], [0], tmp_path, Shelf())
    write_agent(agent, another=True)
    [after] = plan([scenario], [], [0], tmp_path, Shelf())
    assert after.directory != before.directory


def test_policies_to_be_compared_share_a_directory_so_a_run_of_another_agent_is_refused_there(
    agent: Path, write_agent: Callable[..., Path], two_services: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learning.training.agent_files.shipped", lambda name: agent)  # as an update of flmarket would
    shelf = Shelf()
    runs = plan([parse(two_services)], ["mahdrl", "random"], [0], tmp_path / "runs", shelf)
    run_all(runs, shelf, Observer(), RunOptions(workers=0))
    results = [(run.directory.path / "offers.csv").read_bytes() for run in runs]
    assert split_by_completion(runs) == ([], runs)

    write_agent(agent, another=True)
    with pytest.raises(
        RunDirectoryError, match=r"mahdrl.seed-0000.meta\.json: belongs to a run with another learned agent"
    ):
        run_all(runs, shelf, Observer(), RunOptions(workers=0))
    assert split_by_completion(runs[1:]) == ([], runs[1:])  # the other policy's run has nothing to do with it
    assert [(run.directory.path / "offers.csv").read_bytes() for run in runs] == results

    runs = plan([parse(two_services)], ["mahdrl", "random"], [0], tmp_path / "runs", shelf)
    run_all(runs, shelf, Observer(), RunOptions(workers=0, fresh=True))
    new, same = ((run.directory.path / "offers.csv").read_bytes() for run in runs)
    assert new != results[0]
    assert same == results[1]
    assert split_by_completion(runs) == ([], runs)


@pytest.mark.slow
@pytest.mark.parametrize("policies", [[], ["mahdrl:{agent}"]], ids=["in the scenario", "--policy"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_agent_that_is_trained_anew_while_a_batch_plays_ends_it(
    jobs: int, policies: list[str], agent: Path, write_agent: Callable[..., Path], two_services: str, tmp_path: Path
) -> None:
    """Before, the later runs were played by the new agent, and averaged with those of the old one."""
    mine = ["services.alpha.policy=mahdrl", f"services.alpha.checkpoint={agent}"]
    scenario = parse(two_services, overrides=[] if policies else mine)
    shelf = Shelf()
    runs = plan([scenario], [name.format(agent=agent) for name in policies], [0, 1, 2], tmp_path / "runs", shelf)
    run_all(runs[:1], shelf, Observer(), RunOptions(workers=0))
    write_agent(agent, another=True)
    with pytest.raises(InputError, match=r"^agent/alpha on .+ differs from what the batch was planned with; leave "):
        run_all(runs[1:], shelf, Observer(), RunOptions(jobs=jobs, workers=0))
    assert [path.parent for path in tmp_path.rglob("meta.json")] == [runs[0].directory.path]


def test_an_agent_that_begins_later_is_the_one_that_was_there_when_the_run_began(
    agent: Path, write_agent: Callable[..., Path], tmp_path: Path
) -> None:

    def train_anew(report: RoundReport) -> None:
        if report.round == 1:
            write_agent(agent, another=True)

    change = (4, "services.alpha.policy", f'"mahdrl:{agent}"')
    [run] = plan([parse(switching(change))], [], [0], tmp_path / "runs", Shelf())
    with pytest.raises(RunError, match=r"^agent/alpha@4 is no longer what it was when the run began; leave "):
        execute(run, Shelf(), AfterRound(train_anew))
