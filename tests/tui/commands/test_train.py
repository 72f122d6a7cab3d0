"""`flmarket train`: what it refuses. What it learns is tested in tests/scenarios/test_train.py."""

import subprocess
from collections.abc import Callable

import pytest


def test_learning_together_needs_turns(flmarket: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = flmarket("train", "paper", "--out", "agent", "--together", "2")
    assert done.returncode == 2
    assert "--together is the number of services that learn in the same turn; add --rotate" in done.stderr


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("gamma=" + "[" * 5000, "the value is not valid TOML"),
        ("gamma=" + "[" * 40 + "]" * 40, "holds lists and tables more than 32 deep"),
        ("gamma=" + "9" * 5000, "--option gamma: "),
        ("x" * 5000, "must be KEY=VALUE"),
    ],
)
def test_endless_options_are_named_in_short(
    option: str, message: str, flmarket: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = flmarket("train", "quickstart", "--out", "agent", "--option", option)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr) < 300


def test_endless_values_are_named_in_short(flmarket: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    for value in ("[" * 5000, "9" * 5000, "{a=" * 5000):
        done = flmarket("validate", "quickstart", "--set", f"rounds={value}")
        assert done.returncode == 2
        assert "defect" not in done.stderr
