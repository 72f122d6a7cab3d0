"""Parts of a batch, for machines that share a folder and nothing else."""

import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import parse
from scenarios.running.batch import play_batch
from scenarios.running.planning import plan_batch
from scenarios.running.run_options import RunOptions
from support.shell import CLI, flmarket

SURROGATE = ["training.backend=surrogate", "training.local_epochs=2"]


def test_parts_are_the_batch_and_do_not_depend_on_what_is_complete(one_service: str, tmp_path: Path) -> None:
    scenarios, shelf = [parse(one_service, overrides=SURROGATE)], Shelf()
    batch = (scenarios, ["random", "lcfa"], range(5))
    whole = plan_batch(*batch, RunOptions(out=tmp_path), shelf)
    for parts in (1, 3, 10):
        options = [RunOptions(out=tmp_path, part=f"{part}/{parts}") for part in range(1, parts + 1)]
        found = [plan_batch(*batch, one, shelf) for one in options]
        assert sorted((run for part in found for run in part), key=whole.index) == whole
        assert max(map(len, found)) - min(map(len, found)) <= 1
    before = plan_batch(*batch, RunOptions(out=tmp_path, part="2/3"), shelf)
    played = play_batch(*batch, RunOptions(out=tmp_path, part="1/3"), progress=False)
    assert played.complete == whole[::3]
    assert plan_batch(*batch, RunOptions(out=tmp_path, part="2/3"), shelf) == before


@pytest.mark.slow
def test_parts_that_play_at_once_in_one_folder_come_to_the_bytes_of_one_batch(
    one_service: str, tmp_path: Path, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    batch = ([parse(one_service, overrides=SURROGATE)], ["random", "lcfa"], range(2))
    (tmp_path / "parts").mkdir()
    threads = [
        threading.Thread(
            target=play_batch,
            args=(*batch, RunOptions(out=tmp_path / "parts", part=part, jobs=2)),
            kwargs={"progress": False},
        )
        for part in ("1/2", "2/2")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    play_batch(*batch, RunOptions(out=tmp_path / "whole"), progress=False)
    assert files_of(tmp_path / "parts") == files_of(tmp_path / "whole")
    assert len(files_of(tmp_path / "whole")) == 4 * 4


@pytest.mark.slow
def test_an_array_of_tasks_of_which_one_is_killed_and_started_again_comes_to_the_bytes_of_one_batch(
    one_service: str, tmp_path: Path, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    (tmp_path / "market.toml").write_text(one_service)
    settings = [f"--set={setting}" for setting in SURROGATE]
    batch = ["run", "market.toml", "--policy", "random", "--policy", "lcfa", "--seeds", "6", *settings]

    def task(part: int) -> subprocess.Popen[str]:
        command = [*CLI, *batch, "--out", "parts", "--part", f"{part}/4"]
        return subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, bufsize=1
        )

    first, *others = [task(part) for part in range(1, 5)]
    with first:
        assert first.stderr is not None
        assert any(": complete" in line for line in first.stderr)
        first.kill()
    again = task(1)
    notes = [process.communicate()[1] for process in (again, *others)]
    assert [process.returncode for process in (again, *others)] == [0] * 4, notes
    assert "already complete, skipped" in notes[0]
    flmarket(*batch, "--out", "whole", cwd=tmp_path)
    assert files_of(tmp_path / "parts") == files_of(tmp_path / "whole")
    assert "12 runs" in flmarket("report", "parts", cwd=tmp_path).stdout


@pytest.mark.parametrize("part", ["", "0/3", "4/3", "3", "a/b", "1/0", "-1/3"])
def test_what_is_no_part_is_refused(part: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"part {part!r}: must be K/N with K from 1 to N, such as 3/16")):
        RunOptions(part=part)


def test_on_the_command_line(one_service: str, tmp_path: Path) -> None:
    (tmp_path / "market.toml").write_text(one_service)
    command = ("run", "market.toml", "--seeds", "5", "--dry-run", "--part")
    listed = flmarket(*command, "2/2", cwd=tmp_path).stdout
    assert re.findall(r"seed (\d)", listed) == ["1", "3"]
    refused = flmarket(*command, "6/6", cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (2, "part 6/6: the batch has no more than 5 runs\n")
