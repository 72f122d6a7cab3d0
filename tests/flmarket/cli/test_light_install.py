"""The light install, without torch: what works, and what says which extra it needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fl.training import fused
from flmarket.core.installation import install_command
from support.tiers import slow

ROOT = Path(__file__).parents[3]
WITHOUT_TORCH = """\
import sys
sys.modules["torch"] = sys.modules["torchvision"] = None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that makes every process which has it on its path one without torch."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TORCH, encoding="utf-8")
    return tmp_path


def flmarket(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "FLMARKET_DATA": str(folder / "data")}
    command = [sys.executable, "-m", "flmarket.cli.main", *arguments]
    return subprocess.run(command, cwd=folder, env=os.environ | paths, capture_output=True, text=True, check=False)


@pytest.mark.slow  # tests/des/test_imports.py trains a market without torch in the fast tier
@pytest.mark.skipif(not fused.available(), reason="fl._fused is not built")
def test_the_first_market_is_trained_and_verified(folder: Path) -> None:
    played = flmarket(folder, "run", "quickstart", "--rounds", "1", "--policy", "mahdrl")
    assert played.returncode == 0, played.stderr
    verified = flmarket(folder, "verify", "runs", "--rerun")
    assert verified.returncode == 0, verified.stdout + verified.stderr


WITHOUT_KERNEL = "training model {!r} without the compiled kernel needs PyTorch"


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        (["train", "paper", "--out", "agent"], "flmarket train needs PyTorch"),
        *slow(
            (["run", "quickstart", "--set", "training.model=resnet8"], WITHOUT_KERNEL.format("resnet8")),
            (["run", "quickstart", "--set", "training.kernel=reference"], WITHOUT_KERNEL.format("cnn")),
            (["run", "quickstart", "--set", "training.device=cuda"], "training.device = 'cuda' needs PyTorch"),
            (["run", "paper", "--rounds", "1"], "a download needs torchvision"),
        ),
    ],
    ids=["training an agent", "another network", "plain torch", "a GPU", "a download"],
)
def test_what_needs_torch_says_what_to_install(
    arguments: list[str], needs: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = flmarket(folder, *arguments)
    assert done.returncode == 2
    monkeypatch.chdir(folder)
    assert f"{needs}: {install_command('flmarket[torch]')}" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_counts_it_as_a_note(folder: Path) -> None:
    done = flmarket(folder, "doctor")
    assert done.returncode == 0, done.stdout
    assert "problem" not in done.stdout
