"""The example that plays all services in TorchRL, where that is installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torchrl", reason="needs torchrl")

EXAMPLE = Path(__file__).parents[2] / "examples" / "torchrl_group.py"


@pytest.mark.slow
def test_all_services_play_an_episode_as_one_group() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^3 services after \d+ rounds: accuracies (0\.\d{3}(, )?){3}$", done.stdout, re.M)
