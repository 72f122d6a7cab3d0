"""Lines of the trial of Algorithm 1, and of what its choices are worth, can be played again."""

from pathlib import Path

import algorithm1_ablation as ablation
import algorithm1_trial as trial
import pandas as pd
import pytest
from algorithm1 import ABLATION, TRIAL

ROOT = Path(__file__).parents[2]


def texts(rows: pd.DataFrame) -> list[list[str]]:
    return rows.astype(str).to_numpy().tolist()


def test_a_policy_of_the_trial_plays_as_it_did() -> None:
    kept = pd.read_csv(ROOT / TRIAL["surrogate"], dtype=str, keep_default_na=False)
    played = trial.play(("hqfa", ""), "surrogate", Path())
    assert texts(pd.DataFrame(played)) == texts(kept[kept.entrant == "hqfa"])


@pytest.mark.parametrize("market", ["K = 1", "budgets of 10"])
def test_a_policy_in_another_market_plays_as_it_did(market: str) -> None:
    kept = pd.read_csv(ROOT / ABLATION, dtype=str, keep_default_na=False)
    played = ablation.play((market, "dearest", ""), Path())
    assert texts(pd.DataFrame(played)) == texts(kept[(kept.part == market) & (kept.entrant == "dearest")])
