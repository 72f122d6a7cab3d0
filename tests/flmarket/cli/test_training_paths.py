"""What a user meets when training cannot take the fast path, or trains a custom model."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch

from fl.training import fused
from scenarios.loader import load
from scenarios.running.batch import play_batch
from scenarios.running.options import RunOptions
from support.shell import Done, flmarket, process

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


def run(*arguments: str, out: Path, shell: Callable[..., Done] = flmarket) -> Done:
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
@pytest.mark.usefixtures("package")
def test_the_fused_kernel_is_refused_for_it(tmp_path: Path) -> None:
    done = run("--set", "training.model=tiny", "--set", "training.kernel=fused", out=tmp_path)
    assert done.returncode == 2
    assert 'the fused kernel trains the models cnn and mlp, not \'tiny\'; use "auto" or "reference"' in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("package")
def test_a_model_that_is_not_installed_is_a_problem_of_the_scenario(tmp_path: Path) -> None:
    done = run("--set", "training.model=tinny", out=tmp_path)
    assert done.returncode == 2
    assert "unknown model 'tinny'; did you mean 'tiny'?" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    done = run("--set", "training.device=cuda", out=tmp_path)
    assert done.returncode == 2
    assert "torch finds no CUDA device here" in done.stderr
    assert "Traceback" not in done.stderr


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


@pytest.mark.skipif(not fused.available(), reason="fl._fused is not built")
def test_nothing_is_noted_where_it_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = load("quickstart", ["rounds=1", "clients.count=4", "training.eval_samples=50"])
    play_batch([scenario], [], [0], RunOptions(out=tmp_path, workers=0))
    assert NOTE not in capsys.readouterr().err
