"""``--policy NAME:CHECKPOINT`` from a user's shell: two agents of one policy, side by side."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import flmarket
from support import shell


@pytest.fixture
def folder(one_service: str, write_agent: Callable[..., Path], tmp_path: Path) -> Path:
    """A scenario, the agent that comes with flmarket as mine.safetensors, and a different one as other.safetensors."""
    (tmp_path / "market.toml").write_text(one_service)
    write_agent(tmp_path / "mine.safetensors")
    write_agent(tmp_path / "other.safetensors", another=True)
    return tmp_path


@pytest.mark.slow
def test_the_agent_that_was_asked_for_plays(folder: Path) -> None:
    choices = ["mahdrl", "mahdrl:mine.safetensors", "mahdrl:other.safetensors"]
    policies = [word for choice in choices for word in ("--policy", choice)]
    done = shell.flmarket("run", "market.toml", *policies, "--workers", "0", cwd=folder)
    assert done.returncode == 0, done.stderr
    runs = {path.parent.parent.name: path for path in folder.rglob("offers.csv")}
    offers = {name.partition("-")[0]: pd.read_csv(path) for name, path in runs.items()}
    assert offers["mahdrl"].equals(offers["mahdrl@mine"])
    assert not offers["mahdrl"].equals(offers["mahdrl@other"])

    done = shell.flmarket("report", "runs", "--baseline", "mahdrl:other.safetensors", cwd=folder)
    assert done.returncode == 0, done.stderr
    labels = sorted(runs)
    assert all(f"| {label} |" in done.stdout for label in labels)

    # The same wish, said with --set: an earlier flmarket played the agent that it comes with, without a word.
    setting = ["--policy", "mahdrl", "--set", "services.alpha.checkpoint=other.safetensors"]
    done = shell.flmarket("run", "market.toml", *setting, "--out", "again", "--workers", "0", cwd=folder)
    assert done.returncode == 0, done.stderr
    (again,) = (folder / "again").rglob("offers.csv")
    assert pd.read_csv(again).equals(offers["mahdrl@other"])


def test_a_policy_that_nobody_would_play_ends_with_2(folder: Path) -> None:
    wishes = ["--policy", "mahdrl:mine.safetensors", "--set", "services.alpha.checkpoint=other.safetensors"]
    done = shell.flmarket("run", "market.toml", *wishes, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "policy 'mahdrl:mine.safetensors': no service would play it, as overrides come after it; leave one of them "
        "out\n"
    )


def test_a_run_of_which_one_service_keeps_its_policy_is_found_again_and_forked(
    two_services: str, tmp_path: Path
) -> None:
    (tmp_path / "market.toml").write_text(two_services)
    chosen = flmarket.load(tmp_path / "market.toml", {"services.alpha.policy": "hqfa"})
    options = {"policies": "random", "out": tmp_path / "runs", "progress": False}
    [run] = flmarket.run(chosen, **options).runs
    assert [service.policy for service in run.setting.scenario.services] == ["hqfa", "random"]
    assert run.policy == "random+as-configured"
    assert flmarket.run(chosen, **options).paths == [run.directory.path]  # not played again
    [fork] = flmarket.fork(run.directory.path, 2, {"clients.cores": 3}, progress=False)
    assert [service.policy for service in fork.run.scenario.services] == ["hqfa", "random"]
