"""`flmarket suite`."""

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from flmarket.core import tracking
from support.shell import CLI, Command, flmarket
from support.terminal import wait_for

FEW = ("--markets", "alone,starved", "--seeds", "3")

MINE = ("suite", "--plugin", "mine.py", "big-spender")

BIG_SPENDER = """\
import flmarket


@flmarket.policy("big-spender")
class BigSpender(flmarket.Policy):
    \"\"\"The dearest clients first, each paid its bid.\"\"\"

    def act(self, observation):
        bids = observation.own_bids
        return flmarket.fill_budget((-bids).argsort(), bids, observation.budget, available=observation.available)
"""


@pytest.mark.slow
def test_a_policy_of_your_own_gets_a_table_a_page_and_a_submission(command: Command, tmp_path: Path) -> None:
    (tmp_path / "my_policy.py").write_text(BIG_SPENDER)
    done = command("suite", "--plugin", "my_policy.py", "big-spender", *FEW, "--html", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "**big-spender in each market**" in done.stdout
    assert "| starved | visitor |" in done.stdout
    assert "submissions/big-spender.json: 15 runs" in done.stderr
    found = json.loads((tmp_path / "submissions/big-spender.json").read_text())
    assert found["plugins"]["policy big-spender"]["file"] == "my_policy.py"
    assert list(found["results"])[:2] == ["alone/resident/all", "starved/resident/all"]
    assert "<title>flmarket suite</title>" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_what_is_there_is_not_played_again_unless_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "INTERVAL", 0.0)  # each run is told
    (tmp_path / "mine.py").write_text(BIG_SPENDER)
    first = flmarket(*MINE, *FEW, "--mode", "resident", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    again = flmarket(*MINE, *FEW, cwd=tmp_path)
    assert again.stderr.startswith("big-spender, runs: 1 of 9")  # the visitors alone
    (tmp_path / "mine.py").write_text(BIG_SPENDER + "# changed\n")
    changed = flmarket(*MINE, *FEW, cwd=tmp_path)
    assert changed.returncode == 2
    assert "start over with the option fresh" in changed.stderr
    fresh = flmarket(*MINE, *FEW, "--fresh", cwd=tmp_path)
    assert fresh.returncode == 0
    assert fresh.stdout == again.stdout


@pytest.mark.slow
def test_a_leaderboard_of_submissions(tmp_path: Path) -> None:
    played = flmarket("suite", "random", "oracle", *FEW, "--out", "all", "--quiet", cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    assert played.stderr == ""
    done = flmarket("suite", "--leaderboard", "all", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| oracle*†", "| random†"))]
    assert len(rows) == 2
    assert rows[0].startswith("| oracle*†")
    assert rows[1].startswith("| random† | 0.000 [0.000, 0.000] |")
    assert "Marked †: not all of the suite is played" in done.stdout
    part = flmarket("suite", "--leaderboard", "all", *FEW, "--mode", "resident", cwd=tmp_path)
    assert "Only a part of the suite is compared: mode resident; markets alone,starved; seeds 7101," in part.stdout
    assert "All of this part is played: 2 of 2 results" in part.stdout
    assert "†" not in part.stdout


@pytest.mark.slow
def test_two_processes_may_write_one_submission(tmp_path: Path) -> None:
    command = [*CLI, "suite", "hqfa", "--mode", "resident", "--quiet", "--markets"]
    markets = ("alone,starved,like-paper,rich", "unequal,starved-one-core,alone-fitted-many")
    processes = [subprocess.Popen([*command, names], cwd=tmp_path, stdout=subprocess.DEVNULL) for names in markets]
    assert [process.wait() for process in processes] == [0, 0]
    found = json.loads((tmp_path / "submissions/hqfa.json").read_text())["results"]
    assert sorted(found) == sorted(f"{name}/resident/all" for name in ",".join(markets).split(","))
    assert {len(aucs) for aucs in found.values()} == {5}


def test_trainings_of_one_method_are_one_line(write_agent: Callable[..., Path], tmp_path: Path) -> None:
    write_agent(tmp_path / "a.safetensors")
    write_agent(tmp_path / "b.safetensors", another=True)
    agents = ("mahdrl:a.safetensors", "mahdrl:b.safetensors")
    done = flmarket(
        "suite", *agents, "--method", "mine", "--markets", "alone", "--seed", "7101", "--quiet", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "submissions").iterdir())) == 2
    assert "| mine† |" in done.stdout.splitlines()[-1]
    assert done.stdout.splitlines()[-1].endswith("| 2 |")


def test_what_cannot_be_one_method_is_not_played(write_agent: Callable[..., Path], tmp_path: Path) -> None:
    write_agent(tmp_path / "a.safetensors")
    shutil.copy(tmp_path / "a.safetensors", tmp_path / "same.safetensors")
    shutil.copy(tmp_path / "a.json", tmp_path / "same.json")
    for policies in (("hqfa", "lcfa"), ("mahdrl:a.safetensors", "mahdrl:same.safetensors")):
        done = flmarket("suite", *policies, "--method", "mine", *FEW, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "method 'mine' has 2 submissions that are not of different agents" in done.stderr
        assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("submissions/*"))


@pytest.mark.parametrize("option", [("--html", "nowhere/page.html"), ("--html", "there"), ("--out", "full/mine.json")])
def test_what_cannot_be_written_is_refused_before_anything_is_played(option: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "full").touch()
    done = flmarket("suite", "hqfa", "--markets", "alone", *option, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{option[1].removesuffix('/mine.json')}: cannot be ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "submissions") == ["full", "there"]
    assert not list(tmp_path.glob("submissions/*"))


def test_a_page_may_be_in_the_folder_that_the_command_makes(tmp_path: Path) -> None:
    few = ("--mode", "resident", "--markets", "alone", "--seed", "7101", "--quiet")
    done = flmarket("suite", "random", *few, "--html", "submissions/page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "submissions").iterdir()) == ["page.html", "random.json"]


def test_training_on_a_market_of_the_suite_is_refused(tmp_path: Path) -> None:
    from scenarios.suite.frozen import FOLDER

    done = flmarket("train", str(FOLDER / "markets/starved.toml"), "--out", "agent", "--episodes", "1", cwd=tmp_path)
    assert done.returncode == 2
    assert "is the market 'starved' of the suite, on which agents are compared" in done.stderr


STUCK = """\
import time
from pathlib import Path
import flmarket


@flmarket.policy("stuck")
class Stuck(flmarket.Policy):
    \"\"\"Does not come to an end of its second run.\"\"\"

    def act(self, observation):
        if observation.round == 1:
            with open("begun", "a") as file:
                file.write("a run\\n")
        if Path("begun").read_text().count("a run") == 2:
            time.sleep(120)
        return flmarket.Offer.none()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["Ctrl-C", "SIGTERM", "SIGKILL"])
def test_interrupted_it_keeps_each_run_that_is_over_and_leaves_no_process(how: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    begun, path = tmp_path / "begun", tmp_path / "submissions/stuck.json"
    with subprocess.Popen(
        [*CLI, "suite", "--plugin", "stuck.py", "stuck", "--markets", "alone"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        wait_for(lambda: path.exists() and len(begun.read_text().splitlines()) == 2)
        running.send_signal(how)
        _, said = running.communicate(timeout=60)  # to the end of all processes that have it open
    assert running.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(how, -how)
    assert ("interrupted; the same command plays what is missing" in said) == (how is not signal.SIGKILL)
    assert "Traceback" not in said
    assert json.loads(path.read_text())["results"]["alone/resident/all"].keys() == {"7101"}
