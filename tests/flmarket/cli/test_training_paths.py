"""Notes and refusals where training cannot take the fast path, or trains a custom model."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from fl.training import fused
from scenarios.loader import load
from scenarios.running.batch import play_batch
from scenarios.running.run_options import RunOptions
from support.shell import Command, Done, flmarket, process

SMALL = ["--rounds", "2", "--set", "clients.count=6", "--set", "training.eval_samples=100"]
NOTE = "the fused kernel was not built"


TINY = """
from torch import nn


class Tiny(nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.pool, self.out = nn.AvgPool2d(4), nn.Linear(49, labels)

    def forward(self, x):
        return self.out(self.pool(x).flatten(1))
"""


def run(*arguments: str, out: Path, shell: Command = flmarket) -> Done:
    return shell("run", "quickstart", *SMALL, *arguments, "--out", str(out))


@pytest.fixture
def package(install_package: Callable[..., None]) -> None:
    """An installed distribution that registers the model ``tiny``."""
    install_package("tinynets", TINY, "flmarket.models", tiny="tinynets:Tiny")


@pytest.mark.slow
@pytest.mark.usefixtures("package")
def test_a_model_of_an_installed_package_trains_on_the_reference_path(tmp_path: Path) -> None:
    done = run("--set", "training.model=tiny", out=tmp_path, shell=process)
    assert done.returncode == 0, done.stderr
    meta = json.loads(next(tmp_path.rglob("meta.json")).read_text())
    assert set(meta["kernel"].values()) == {"reference"}
    rounds = pd.read_csv(next(tmp_path.rglob("rounds.csv")))
    assert rounds["accuracy"].between(0, 1).all()
    assert rounds["served"].sum() > 0


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "notes"), [("auto", 1), ("reference", 0)])
def test_a_missing_extension_is_noted_once_in_a_batch(
    kernel: str, notes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fused, "_kernels", {})
    settings = ["rounds=1", "clients.count=4", "training.eval_samples=50", f'training.kernel="{kernel}"']
    scenario = load("quickstart", settings)
    other = load("quickstart", [*settings, "name=other"])
    result = play_batch([scenario, other], [], [0, 1], RunOptions(out=tmp_path, workers=0))
    assert len(result.complete) == 4
    assert capsys.readouterr().err.count(NOTE) == notes
