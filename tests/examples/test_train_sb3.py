"""The example that trains a service with stable-baselines3, and the plug-in file that plays what it has trained."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.shell import flmarket

pytest.importorskip("stable_baselines3")

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_it_trains_and_its_agent_plays(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "train_sb3.py"), "--steps", "8"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"mnist: AUC in a held-out market 0\.\d{4} before, 0\.\d{4} after 8 rounds\n", done.stdout)

    plugin = ["--plugin", str(EXAMPLES / "sb3_agent.py")]
    quick = ["--set", "training.backend=surrogate", "--rounds", "2", "--quiet"]
    played = flmarket("run", "paper", *plugin, "--policy", "sb3", *quick, "--seeds", "2", "--jobs", "2", cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    first, second = (json.loads(path.read_text()) for path in tmp_path.glob("runs/*/sb3/*/meta.json"))
    assert first["agents"] == second["agents"]  # the same digests in two processes
    assert set(first["agents"]) == {"agent/mnist", "agent/fashion-mnist", "agent/emnist"}
    assert first["plugins"]["policy sb3"]["file"] == "sb3_agent.py"
    scored = flmarket(
        "suite", "sb3", *plugin, "--markets", "starved", "--mode", "resident", "--seed", "7101", cwd=tmp_path
    )
    assert scored.returncode == 0, scored.stderr
    assert "| starved | resident |" in scored.stdout

    other = flmarket("run", "paper", *plugin, "--policy", "sb3", *quick, "--set", "clients.count=6", cwd=tmp_path)
    assert other.returncode == 1
    assert "policy 'sb3' of service 'mnist' failed to act in round 1: ValueError: Error: Unexpected" in other.stderr
    assert re.search(r"sb3_agent\.py:\d+, in act\)", other.stderr)
