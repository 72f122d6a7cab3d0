"""Damage to a run directory: whatever is changed in whichever file, everything that reads the run says so."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flmarket.analysis.results.export import export
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory, RunDirectoryError
from scenarios.logs.run_state import RunState
from scenarios.running.batch_run import Run
from scenarios.running.planning import split_by_completion
from scenarios.running.runner import execute
from support.runs import planned
from tui.state.feeds import DirectoryFeed
from tui.state.watched_run import Session

FILES = ("scenario.toml", "rounds.csv", "offers.csv", "events.csv", "run.log", "meta.json")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Run:
    scenario = load("scarce", ["rounds=2", "training.backend=surrogate"])
    execute(run := planned(scenario, tmp_path_factory.mktemp("runs"), "hqfa"), Shelf())
    return run


@pytest.fixture
def run(played: Run, tmp_path: Path) -> Run:
    """A copy to damage, of the same run and with the same path below its folder."""
    relative = played.directory.path.relative_to(played.directory.path.parents[2])
    path = shutil.copytree(played.directory.path, tmp_path / "runs" / relative)
    return Run(played.scenario, played.policy, played.seed, RunDirectory(path), played.digest, played.sweep)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    """Change one bit, as a bad disk does."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)


DAMAGES: list[Callable[[Path], None]] = [Path.unlink, lambda path: path.write_bytes(b""), cut]
IDS = ["deleted", "emptied", "cut"]


def test_nothing_is_wrong_with_a_run_as_it_was_written(run: Run) -> None:
    assert run.directory.damage(digests=True) == []
    assert split_by_completion([run]) == ([], [run])


@pytest.mark.parametrize("damage", [*DAMAGES, flip], ids=[*IDS, "flipped"])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_run_is_not_skipped_as_complete(run: Run, name: str, damage: Callable[[Path], None]) -> None:
    damage(run.directory.path / name)
    if (name, damage) == ("meta.json", Path.unlink):
        assert split_by_completion([run]) == ([run], [])  # an unfinished run, which is played
        return
    with pytest.raises(InputError, match=rf"{name}: .*remove its directory") as error:
        split_by_completion([run])
    assert str(run.directory.path / name) in str(error.value)


@pytest.mark.parametrize("damage", [*DAMAGES, flip], ids=[*IDS, "flipped"])
@pytest.mark.parametrize("name", FILES[:-1])
def test_verify_names_the_damaged_file(run: Run, name: str, damage: Callable[[Path], None]) -> None:
    damage(run.directory.path / name)
    assert any(str(run.directory.path / name) in problem for problem in verify(run.directory).problems)


@pytest.mark.parametrize("damage", DAMAGES, ids=IDS)
@pytest.mark.parametrize("name", FILES[:-1])
def test_whoever_reads_a_run_looks_at_the_sizes(
    run: Run, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    path = run.directory.path
    damage(path / name)
    for look in (lambda: read([path]), lambda: export([path], tmp_path / "all.csv", "events")):
        with pytest.raises(RunDirectoryError) as error:
            look()
        assert str(path / name) in str(error.value)
    session = Session("replay")
    DirectoryFeed(session, path).read()
    assert session.state is RunState.UNREADABLE
    assert str(path / name) in (session.error or "")


def test_a_log_may_grow_after_the_end(run: Run) -> None:
    """What PyTorch writes to standard error as a process ends goes there."""
    with (run.directory.path / "run.log").open("a") as log:
        log.write("a warning\n")
    assert run.directory.damage(digests=True) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta | {"seed": 1},
        lambda meta: dict(reversed(meta.items())),  # the same to whoever reads JSON, but nobody has written it
        lambda meta: {key: value for key, value in meta.items() if key not in ("files", "sha256")},
    ],
    ids=["another value", "another order", "no digests"],
)
def test_a_change_of_meta_json_is_found(change: Callable[[dict[str, object]], dict[str, object]], run: Run) -> None:
    path = run.directory.path / "meta.json"
    path.write_text(json.dumps(change(json.loads(path.read_text())), indent=2) + "\n")
    with pytest.raises(RunDirectoryError, match=r"meta\.json: is damaged: checksum mismatch"):
        split_by_completion([run])


def test_a_damaged_meta_json_does_not_keep_fresh_from_starting_over(run: Run) -> None:
    (run.directory.path / "meta.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"meta\.json: is damaged"):
        split_by_completion([run])
    assert split_by_completion([run], fresh=True) == ([run], [])
    execute(run, Shelf(), workers=0, fresh=True)
    assert run.directory.state is RunState.COMPLETE


def test_checkpoints_that_a_last_moment_kill_left_behind_are_removed(run: Run) -> None:
    (run.directory.path / "checkpoint").mkdir()
    assert split_by_completion([run]) == ([], [run])
    assert not (run.directory.path / "checkpoint").exists()
