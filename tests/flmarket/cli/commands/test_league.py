"""`flmarket league`."""

import re
import signal
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from flmarket.benchmark.league import record
from support.shell import CLI, Command, flmarket, process
from support.terminal import wait_for

SURROGATE = ["--set", "training.backend=surrogate", "--rounds", "6"]
PAIR = ["--policy", "hqfa", "--policy", "lcfa"]


def test_a_league_and_what_it_leaves(command: Command, tmp_path: Path) -> None:
    arguments = ["league", "paper", *SURROGATE, *PAIR, "--policy", "d-first", "--seeds", "3", "--out", "mine"]
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("paper (surrogate): 3 policies, 3 seats, 3 seeds\n")
    assert games_in(tmp_path / "mine") == 63
    assert "* sees what the paper hides from services" in done.stdout
    assert re.search(r"d-first\* ", done.stdout)
    cross = pd.read_csv(tmp_path / "mine" / "cross-play.csv")
    assert list(cross.groupby("resident").size()) == [3, 3, 3]
    assert cross.loc[cross.visitor == "d-first", "visitor_privileged"].all()
    assert (cross.gain_low <= cross.gain)[cross.visitor != cross.resident].all()
    ratings = pd.read_csv(tmp_path / "mine" / "ratings.csv")
    assert ratings.share.sum() == pytest.approx(1)
    assert ratings.rating.max() == pytest.approx(0, abs=1e-6)
    before = {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()}
    again = command(*arguments, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stderr == ""
    assert again.stdout == done.stdout
    assert {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()} == before


@pytest.mark.slow
def test_a_policy_of_your_own_on_real_training(tmp_path: Path, two_services: str) -> None:
    (tmp_path / "market.toml").write_text(two_services)
    (tmp_path / "mine.py").write_text(OWN.replace("DEED", "pass"))
    policies = ["--plugin", "mine.py", "--policy", "own", "--policy", "lcfa"]
    done = flmarket("league", "market.toml", *policies, "--seeds", "1", "--rounds", "2", "--jobs", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith('6 games with real training; --set training.backend="surrogate" takes minutes')
    ratings = pd.read_csv(tmp_path / "league" / "ratings.csv")
    assert ratings.rating.tolist() == [0, 0]
    assert ratings.share.tolist() == [0.5, 0.5]
    assert ratings.rating_low.isna().all()


def test_a_finished_league_is_drawn_without_playing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["league", "paper", *SURROGATE, *PAIR, "--seeds", "1"]
    assert flmarket(*arguments, cwd=tmp_path).returncode == 0
    monkeypatch.setattr(record, "_play", lambda *_: pytest.fail("a game was played again"))
    done = flmarket(*arguments, "--figures", "figs", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-3:] == [f"figs/paper-cross-play.{suffix}" for suffix in ("svg", "png", "pdf")]
    text = (tmp_path / "figs/paper-cross-play.svg").read_text()
    assert "<!-- hqfa -->" in text
    assert "<!-- lcfa -->" in text


@pytest.mark.parametrize("option", ["--figures", "--out"])
def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_played(option: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = flmarket("league", "paper", *SURROGATE, *PAIR, option, "taken/it", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "taken/it: cannot be made: Not a directory\n")
    assert not (tmp_path / "league").exists()


OWN = """import os
import time
from pathlib import Path
import flmarket
from learning.policies.lcfa import LowCostFirst


@flmarket.policy("own")
class Own(LowCostFirst):
    def act(self, observation: flmarket.Observation) -> flmarket.Offer:
        DEED
        return super().act(observation)
"""
OWN_LEAGUE = ["league", "paper", *SURROGATE, "--plugin", "mine.py", "--policy", "own", "--policy", "lcfa"]


def games_in(league: Path) -> int:
    """Count the games that a league has kept; one that all seats share has a line for each."""
    text = (league / "games.csv").read_text() if (league / "games.csv").exists() else ""
    games = (row.split(",") for row in text.rpartition("\n")[0].splitlines()[1:])  # the last may be half there
    return len(
        {(visitor, "" if visitor == resident else seat, resident, seed) for visitor, resident, seat, seed, _ in games}
    )


@pytest.mark.slow
def test_killed_it_has_kept_each_game_that_is_over_and_resumed_it_leaves_the_same_bytes(tmp_path: Path) -> None:
    stuck_in_the_first_game = """try:
            Path("begun").touch(exist_ok=False)
            time.sleep(300)
        except FileExistsError:
            pass"""
    (tmp_path / "mine.py").write_text(OWN.replace("DEED", stuck_in_the_first_game))
    league = [*CLI, *OWN_LEAGUE, "--set", "market.mechanism=iterated", "--seeds", "2"]
    with subprocess.Popen(
        [*league, "--jobs", "2", "--out", "mine"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as running:
        wait_for(lambda: games_in(tmp_path / "mine") >= 15)  # in spite of the one that does not end
        running.kill()
        running.communicate(timeout=60)  # to the end of all processes that have it open
    assert running.returncode == -signal.SIGKILL
    again = subprocess.run([*league, "--out", "mine"], cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    whole = subprocess.run([*league, "--out", "whole"], cwd=tmp_path, capture_output=True, text=True)
    assert again.stdout == whole.stdout.replace("whole/", "mine/")
    files = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()} == files


@pytest.mark.slow
def test_a_policy_that_ends_its_process_ends_no_league_with_0(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN.replace("DEED", "os._exit(0)"))
    done = process(*OWN_LEAGUE, "--seeds", "1", cwd=tmp_path)
    assert done.returncode == 1
    assert "a process that played games ended: a plug-in or the system ended it; the same command" in done.stderr
