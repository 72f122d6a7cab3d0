"""`flmarket train`: what it refuses. What it learns is tested in tests/scenarios/test_train.py."""

import signal
import subprocess
from pathlib import Path

import pytest

from support.shell import CLI, flmarket
from support.terminal import wait_for


@pytest.mark.slow
def test_it_says_when_there_is_nothing_to_resume(tmp_path: Path) -> None:
    brief = ("train", "paper", "--backend", "surrogate", "--set", "rounds=2", "--evaluate-every", "1", "--resume")
    nothing = "agent.training: has no state to resume from; the training starts from the beginning\n"
    first = flmarket(*brief, "--episodes", "1", "--out", "agent", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stderr.startswith(nothing)
    again = flmarket(*brief, "--episodes", "2", "--out", "agent", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert nothing not in again.stderr
    assert "episode 2/2, evaluate" in again.stderr
    assert "episode 1/2" not in again.stderr
    quiet = flmarket(*brief, "--episodes", "1", "--out", "other", "--quiet", cwd=tmp_path)
    assert (quiet.returncode, quiet.stderr) == (0, "")


@pytest.mark.slow
def test_a_training_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    brief = ("train", "paper", "--backend", "surrogate", "--set", "rounds=2", "--episodes", "1", "--jobs", "2")
    for seed in (0, 2):
        (tmp_path / f"agent-seed{seed}.csv").touch()
    done = flmarket(*brief, "--seeds", "3", "--out", "agent", "--quiet", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "agent-seed0.csv: already exists; continue with the option resume, or choose another file\n"
        "agent-seed2.csv: already exists; continue with the option resume, or choose another file\n"
    )
    assert [path.name for path in tmp_path.glob("*.safetensors")] == ["agent-seed1.safetensors"]


@pytest.mark.slow
def test_what_is_wrong_with_all_trainings_is_told_once(tmp_path: Path) -> None:
    brief = ("train", "paper", "--backend", "surrogate", "--set", "rounds=2", "--episodes", "1", "--jobs", "2")
    done = flmarket(*brief, "--rivals", "hqfa", "--seeds", "3", "--out", "agent", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "all services learn, so there are no rivals; add the option rotate\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("every", "said"),
    [
        (
            1,
            "interrupted; the same command with --resume continues from the last evaluation, whose state is kept in\n"
            "  mine.training\n",
        ),
        (400, "interrupted; nothing is kept: the first state is saved after episode 400 (--evaluate-every)\n"),
    ],
)
def test_ctrl_c_is_answered_with_what_is_kept_and_how_to_continue(every: int, said: str, tmp_path: Path) -> None:
    words = ["train", "quickstart", "--backend", "surrogate", "--episodes", "500", "--evaluate-every", str(every)]
    log, states = tmp_path / "mine.csv", tmp_path / "mine.training"
    with subprocess.Popen(
        [*CLI, *words, "--out", "mine.safetensors", "--quiet"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as training:
        wait_for(log.exists)
        wait_for(lambda: len(log.read_text().splitlines()) > 2 and (every > 1 or any(states.glob("*.json"))))
        training.send_signal(signal.SIGINT)
        _, told = training.communicate(timeout=60)
    assert training.returncode == 130
    assert told == said


@pytest.mark.slow
def test_a_training_in_several_markets_says_what_it_lacks(tmp_path: Path) -> None:
    """Without a context, one agent for several markets cannot tell them apart."""
    words = ["train", "--draw", "2", "--episodes", "1", "-q", "--rotate", "--backend", "noiseless"]
    blind = flmarket(*words, "--out", "blind", cwd=tmp_path)
    assert "the agent does not see which one it plays: add --option context=true" in blind.stderr
    seeing = flmarket(*words, "--option", "context=true", "--out", "seeing", cwd=tmp_path)
    assert seeing.returncode == 0, seeing.stderr
    assert "which one it plays" not in seeing.stderr
