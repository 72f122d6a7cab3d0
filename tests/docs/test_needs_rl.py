"""docs/needs-rl.md and decisions/algorithm1.md show what their benchmarks print, which credit what they say."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("needs_rl")


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("docs/needs-rl.md", ["benchmarks/needs_rl.py", "--out", "docs/results/needs-rl.csv", "--print"]),
        ("docs/needs-rl.md", ["benchmarks/foresight.py", "--out", "docs/results/foresight.csv", "--print"]),
        ("docs/decisions/algorithm1.md", ["benchmarks/algorithm1.py", "table", "--out", "docs/results/algorithm1.csv"]),
    ],
)
def test_the_tables_of_the_page_are_what_its_command_prints(page: str, command: list[str]) -> None:
    """If this fails: print them again, and put them into the page."""
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(rows) > 5
    shown = (ROOT / page).read_text().splitlines()
    assert [row for row in rows if row not in shown] == []


def test_who_looks_ahead_is_credited_with_what_follows(benchmark: ModuleType) -> None:
    accuracy = np.repeat(np.linspace(0.1, 0.8, 8), 10)  # eight stretches of ten rounds
    y = -np.log(1 - np.linspace(0.1, 0.8, 8))
    np.testing.assert_allclose(benchmark.credit_of(accuracy, benchmark.HORIZONS["myopic"]), y)
    follows = [y[at:].mean() for at in range(8)]
    np.testing.assert_allclose(benchmark.credit_of(accuracy, benchmark.HORIZONS["ahead"]), follows)


def test_the_search_moves_each_number_by_its_own_credit(benchmark: ModuleType) -> None:
    search = benchmark.Search()
    plans = search.draw(np.random.default_rng(0), 400)
    search.improve(plans, np.concatenate([plans[:, :4], -plans[:, 4:]], axis=1))
    assert (search.mean[:4] > 0.6).all(), "where more is better"
    assert (search.mean[4:] < 0.4).all(), "where less is better"
    assert (search.spread < 0.3).all()
