"""docs/needs-rl.md and two pages of decisions show what their benchmarks print, which credit what they say."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support.benchmarks import benchmark, printed

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("docs/needs-rl.md", ["benchmarks/needs_rl.py", "--out", "docs/results/needs-rl.csv", "--print"]),
        ("docs/needs-rl.md", ["benchmarks/foresight.py", "--out", "docs/results/foresight.csv", "--print"]),
        ("docs/needs-rl.md", ["benchmarks/two_phases.py", "--out", "docs/results/two-phases.csv", "--print"]),
        ("docs/decisions/rivals.md", ["benchmarks/tune_rivals.py", "--out", "docs/results/tune-rivals.csv", "--print"]),
        ("docs/decisions/algorithm1.md", ["benchmarks/algorithm1_trial.py", "table"]),
        ("docs/decisions/algorithm1.md", ["benchmarks/algorithm1_trial.py", "table", "--images"]),
        ("docs/decisions/algorithm1.md", ["benchmarks/algorithm1_ablation.py", "trial"]),
        ("docs/decisions/algorithm1.md", ["benchmarks/algorithm1_ablation.py", "table"]),
    ],
)
def test_the_tables_of_the_page_are_what_its_command_prints(page: str, command: list[str]) -> None:
    """If this fails: print them again, and put them into the page."""
    rows = [line for line in printed(*command).splitlines() if line.startswith("|")]
    assert len(rows) > 5
    shown = (ROOT / page).read_text().splitlines()
    assert [row for row in rows if row not in shown] == []


def test_who_looks_ahead_is_credited_with_what_follows() -> None:
    page = benchmark("needs_rl")
    accuracy = np.repeat(np.linspace(0.1, 0.8, 8), 10)  # eight stretches of ten rounds
    y = -np.log(1 - np.linspace(0.1, 0.8, 8))
    np.testing.assert_allclose(page.credit_of(accuracy, page.HORIZONS["myopic"]), y)
    follows = [y[at:].mean() for at in range(8)]
    np.testing.assert_allclose(page.credit_of(accuracy, page.HORIZONS["ahead"]), follows)


def test_the_search_moves_each_number_by_its_own_credit() -> None:
    search = benchmark("needs_rl").Search()
    plans = search.draw(np.random.default_rng(0), 400)
    search.improve(plans, np.concatenate([plans[:, :4], -plans[:, 4:]], axis=1))
    assert (search.mean[:4] > 0.6).all(), "where more is better"
    assert (search.mean[4:] < 0.4).all(), "where less is better"
    assert (search.spread < 0.3).all()


def test_a_run_of_the_rule_that_changes_its_mind_can_be_played_again() -> None:
    rule = benchmark("two_phases")
    rule.register()
    kept = pd.read_csv(ROOT / "docs/results/two-phases.csv")
    name = "two phases"
    [(_, _, auc)] = rule.played(name, *rule.ENTRANTS[name], seeds=[7])
    assert float(auc) == kept[(kept.entrant == name) & (kept.seed == 7)].auc.item()
