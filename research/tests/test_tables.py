"""Tables of the notebook and of decisions are what their scripts print from the kept results."""

import re
from pathlib import Path

import pandas as pd
import pytest

from support.benchmarks import printed

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "research/results"


@pytest.mark.parametrize(
    ("page", "command"),
    [
        *(
            (page, [f"{name}.py", "--out", f"research/results/{name.replace('_', '-')}.csv", "--print"])
            for page, name in (
                ("any-market", "any_market"),
                ("dishonest", "dishonest"),
                ("everywhere", "everywhere"),
                ("field", "field"),
                ("needs-rl", "needs_rl"),
                ("needs-rl", "foresight"),
                ("needs-rl", "two_phases"),
                ("rivals", "tune_rivals"),
            )
        ),
        *(
            ("algorithm1", ["algorithm1.py", *what])
            for what in (["trial"], ["trial", "--images"], ["readings"], ["ablation"])
        ),
        ("reproduction", ["reproduction.py", "table"]),
        *(
            ("mahdrl", ["mahdrl.py", "table", f"research/results/{name}.csv"])
            for name in ("mahdrl-trainings", "mahdrl-surrogate", "scarce-seats", "mahdrl-parts", "mahdrl-budget-10")
        ),
    ],
)
def test_the_tables_of_the_page_are_what_its_command_prints(page: str, command: list[str]) -> None:
    """If this fails: print them again, and put them into the page."""
    lines = printed(f"research/{command[0]}", *command[1:]).splitlines()
    rows = [line for line in lines if line.startswith("|") and set(line) - set("|-")]
    assert len(rows) > 5
    shown = (ROOT / f"research/notebook/{page}.md").read_text().splitlines()
    assert [row for row in rows if row not in shown] == []


def test_other_frameworks_are_as_fast_as_the_readme_says() -> None:
    """Where that is measured, tests/docs/test_figures.py says."""
    pages = (ROOT / "research/notebook/peers.md", ROOT / "README.md")
    notebook, readme = (re.findall(r"^\| (\S+) \|.*\| ([\d.]+)x \|$", page.read_text(), re.M) for page in pages)
    assert notebook == readme


def test_the_curves_of_the_reproduction_are_those_of_its_tables() -> None:
    """If this fails: python research/reproduction.py figures fig2 fig3-paper"""
    keys = ["sweep", "value", "entrant", "training_seed", "market_seed", "service"]
    curves, table = (
        pd.read_csv(RESULTS / f"{name}.csv", keep_default_na=False, dtype={"80": str, "training_seed": str})
        for name in ("reproduction-curves", "reproduction")
    )
    table = table.set_index(keys)
    curves = curves.set_index(keys).astype(float)
    assert (curves.index.get_level_values("sweep") == "").sum() == 6 * 10 * 3
    assert (curves.index.get_level_values("sweep") != "").sum() == 6 * 3 * 10
    assert (curves.mean(axis=1) - table.auc[curves.index]).abs().max() < 1e-4
    assert (curves["80"] == table.final[curves.index]).all()
