"""notebook/needs-rl.md shows what its scripts print, which credit what they say."""

from pathlib import Path

import needs_rl
import numpy as np
import pandas as pd
import two_phases as rule
from experiment import gain, interval_text

ROOT = Path(__file__).parents[2]


def test_who_looks_ahead_is_credited_with_what_follows() -> None:
    accuracy = np.repeat(np.linspace(0.1, 0.8, 8), 10)  # eight stretches of ten rounds
    y = -np.log(1 - np.linspace(0.1, 0.8, 8))
    np.testing.assert_allclose(needs_rl.credit_of(accuracy, needs_rl.HORIZONS["myopic"]), y)
    follows = [y[at:].mean() for at in range(8)]
    np.testing.assert_allclose(needs_rl.credit_of(accuracy, needs_rl.HORIZONS["ahead"]), follows)


def test_the_search_moves_each_number_by_its_own_credit() -> None:
    search = needs_rl.Search()
    plans = search.draw(np.random.default_rng(0), 400)
    search.improve(plans, np.concatenate([plans[:, :4], -plans[:, 4:]], axis=1))
    assert (search.mean[:4] > 0.6).all(), "where more is better"
    assert (search.mean[4:] < 0.4).all(), "where less is better"
    assert (search.spread < 0.3).all()


def test_a_run_of_the_rule_that_changes_its_mind_can_be_played_again() -> None:
    rule.register()
    kept = pd.read_csv(ROOT / "research/results/two-phases.csv")
    name = "two phases"
    [(_, _, auc)] = rule.played(name, *rule.ENTRANTS[name], seeds=[7])
    assert float(auc) == kept[(kept.entrant == name) & (kept.seed == 7)].auc.item()


def test_the_page_says_how_far_the_agent_is_ahead_of_the_rule() -> None:
    wide = pd.read_csv(ROOT / "research/results/two-phases.csv").pivot_table("auc", "seed", "entrant")
    page = (ROOT / "research/notebook/needs-rl.md").read_text()
    ahead, level = (interval_text(gain(wide, it, "two phases")) for it in ("mahdrl", "mahdrl, curve = false"))
    assert f"agent is {ahead.replace('+', '').replace('0.', '.')} ahead of the rule" in page
    assert f"level with it ({level.replace(' [+', ' [').replace(', +', ', ').replace('0.', '.')})" in page
