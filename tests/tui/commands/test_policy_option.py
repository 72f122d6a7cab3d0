"""``--policy NAME:CHECKPOINT`` from a user's shell: two agents of one policy, side by side."""

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tui.cli import main


@pytest.fixture
def folder(one_service: str, write_agent: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario, the agent that comes with flmarket as mine.safetensors, and a different one as other.safetensors."""
    (tmp_path / "market.toml").write_text(one_service)
    write_agent(tmp_path / "mine.safetensors")
    write_agent(tmp_path / "other.safetensors", another=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def flmarket(
    *arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["flmarket", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), *capsys.readouterr()


def test_the_agent_that_was_asked_for_plays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = {"monkeypatch": monkeypatch, "capsys": capsys}
    choices = ["mahdrl", "mahdrl:mine.safetensors", "mahdrl:other.safetensors"]
    policies = [word for choice in choices for word in ("--policy", choice)]
    status, _, err = flmarket("run", "market.toml", *policies, "--workers", "0", **shell)
    assert status == 0, err
    runs = {path.parent.parent.name: path for path in folder.rglob("offers.csv")}
    offers = {name.partition("-")[0]: pd.read_csv(path) for name, path in runs.items()}
    assert offers["mahdrl"].equals(offers["mahdrl@mine"])
    assert not offers["mahdrl"].equals(offers["mahdrl@other"])

    status, out, err = flmarket("report", "runs", "--baseline", "mahdrl:other.safetensors", **shell)
    assert status == 0, err
    labels = sorted(runs)
    assert all(f"| {label} |" in out for label in labels)

    # The same wish, said with --set: an earlier flmarket played the agent that it comes with, without a word.
    setting = ["--policy", "mahdrl", "--set", "services.alpha.checkpoint=other.safetensors"]
    status, _, err = flmarket("run", "market.toml", *setting, "--out", "again", "--workers", "0", **shell)
    assert status == 0, err
    (again,) = (folder / "again").rglob("offers.csv")
    assert pd.read_csv(again).equals(offers["mahdrl@other"])


def test_wishes_that_conflict_end_with_2(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wishes = ["--policy", "mahdrl:mine.safetensors", "--set", "services.alpha.checkpoint=other.safetensors"]
    status, out, err = flmarket("run", "market.toml", *wishes, monkeypatch=monkeypatch, capsys=capsys)
    assert (status, out) == (2, "")
    assert err == (
        "--policy mahdrl:mine.safetensors: services.alpha.checkpoint: --set "
        "services.alpha.checkpoint=other.safetensors asks for another checkpoint; leave one of them out\n"
    )
