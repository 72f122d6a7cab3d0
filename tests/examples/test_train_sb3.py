"""The example that trains a service with stable-baselines3."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

from scenarios.loader import dumps, load

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_sb3.py"


def test_it_trains_and_plays(tmp_path):
    small = ["training.local_epochs=1", "training.eval_samples=50", "clients.data_size=[30, 40]", "rounds=3"]
    scenario = tmp_path / "small.toml"
    scenario.write_text(dumps(load("quickstart", small)))
    command = [sys.executable, str(EXAMPLE), "--scenario", str(scenario), "--steps", "8"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\w+: return on a held-out market \d+\.\d before, \d+\.\d after 8 rounds\n", done.stdout)
