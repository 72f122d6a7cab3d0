"""docs/suite.md shows what the suite says, and its program runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from flmarket.benchmark.suite.board import contents
from scenarios.suite.frozen import Suite, read
from support.pages import ROOT

PAGE = ROOT / "docs/suite.md"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return read()


def test_the_page_lists_the_markets(suite: Suite) -> None:
    assert f"<!-- markets: begin -->\n\n{contents(suite).markdown()}\n\n<!-- markets: end -->" in PAGE.read_text()


def test_the_page_counts_right(suite: Suite) -> None:
    runs, seeds = len(suite.cells()), len(suite.seeds)
    page = " ".join(PAGE.read_text().split())
    assert f"{len(suite.markets)} markets of 30 to 60 rounds and {seeds} market seeds" in page
    assert f"{runs // seeds} runs for each seed, {runs} in all" in page


@pytest.mark.slow
def test_the_program_of_the_page_runs_as_a_script(tmp_path: Path) -> None:
    """As it is copied: with several jobs, whose processes read it again."""
    [program] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    (tmp_path / "mine.py").write_text(program)
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Interval(")
