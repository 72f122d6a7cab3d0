"""The benchmarks that compare flmarket with other frameworks report what they leave out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from scenarios.loader import load
from support.benchmarks import benchmark

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_peers_that_are_missing_or_fail_are_reported(tmp_path: Path) -> None:
    """From any directory: a table without them, and without a word, looked as if nobody had been asked."""
    for name, program in (("fedlab", 'echo \'{"seconds": 4, "cpu": 4}\''), ("pfl", "echo out of luck >&2; exit 3")):
        python = tmp_path / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\n{program}\n")
        python.chmod(0o755)
    command = [sys.executable, str(ROOT / "benchmarks" / "engine.py"), "--only", "peers", "--no-save"]
    done = subprocess.run(
        [*command, "--repeat", "1", "--rounds", "1"],
        cwd=tmp_path,
        env={**os.environ, "FLMARKET_PEERS": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    missing = tmp_path / "flower" / "bin" / "python"
    assert f"flower: skipped, there is no {missing} (`make bench-peers`, FLMARKET_PEERS)\n" in done.stdout
    assert "pfl: left out, it failed\nout of luck\n" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("|") and "against FedLab" in line]
    assert done.stdout.count("| the reference workload, against") == 1


@pytest.mark.slow
def test_a_missing_gpu_is_one_sentence_and_any_device_can_be_measured() -> None:
    def measured(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "benchmarks/gpu.py", "--only", "cnn", "--clients", "1", "--repeat", "1", "--no-save"]
        return subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, check=False)

    if not torch.cuda.is_available():
        assert measured().stderr == "training.device = 'cuda': torch finds no CUDA device here; use 'cpu'\n"
    done = measured("--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert "`cnn`, 1 clients on cpu, against one by one there" in done.stdout


@pytest.mark.slow
def test_flmarket_and_the_others_play_the_same_job(tmp_path: Path) -> None:
    """Of the published jobs: here logistic regression on the embedded digits, played by flmarket and the plain loop."""
    scenario = tmp_path / "job.toml"
    text = (ROOT / "benchmarks/peers/lr_mnist.toml").read_text()
    for old, new in (
        ("mnist", "digits"),
        ("count = 1000", "count = 20"),
        ("budget = 60", "budget = 64"),
        ("100", "30"),
    ):
        text = text.replace(old, new)
    scenario.write_text(text)  # every client owns 64 images and costs 6.4
    jobs, contest = benchmark("jobs"), benchmark("contest")
    assert jobs.write(tmp_path, load(str(scenario)))
    ours, whole = jobs.play_flmarket(scenario, tmp_path, 0, real=True)
    theirs, _ = contest.play("plain", contest.plain(), tmp_path)
    for accuracies in (ours["accuracies"], theirs["accuracies"]):
        assert len(accuracies) == 30
        assert accuracies[-1] > 0.7
    assert 0 < ours["seconds"] < whole.seconds
    assert whole.memory > 50
