"""`flmarket train`: what it refuses. What it learns is tested in tests/scenarios/test_train.py."""

import subprocess
from collections.abc import Callable


def test_learning_together_needs_turns(flmarket: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = flmarket("train", "paper", "--out", "agent", "--together", "2")
    assert done.returncode == 2
    assert "--together is the number of services that learn in the same turn; add --rotate" in done.stderr
