"""results/any-market.csv is whole, lines of it can be played again, and the model card says what others say."""

from pathlib import Path

import any_market as markets
import pandas as pd
import pytest
from experiment import gain, interval_text, plus_minus

from learning.statistics.intervals import mean_interval

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "research/results/any-market.csv"
PAGE = ROOT / "research/notebook/any-market.md"


def test_every_policy_has_all_seeds_in_every_market() -> None:
    frame = pd.read_csv(RESULTS)
    found = {task: rows.seed.tolist() for task, rows in frame.groupby(["market", "mode", "policy"])}
    wanted = [(market, mode, name) for mode in ("resident", "visitor") for market in markets.POINTS
              for name in markets.PLAYERS if (mode, name) != ("resident", "oracle")]  # fmt: skip
    assert found == {task: list(range(markets.SEEDS)) for task in wanted}


@pytest.mark.parametrize(
    "task", [("3 services", "visitor", "mahdrl"), ("budget 5", "resident", "mahdrl"), ("K = 3", "visitor", "oracle")]
)
def test_a_line_of_the_file_can_be_played_again(task: tuple[str, str, str]) -> None:
    frame = pd.read_csv(RESULTS, dtype=str)
    mine = frame[(frame.market == task[0]) & (frame["mode"] == task[1]) & (frame.policy == task[2])]
    [line] = markets.play(task, [3])
    assert [str(value) for value in line] == mine[mine.seed == "3"].iloc[0].tolist()


TRIED = {
    "`gain`, seed 0": "gain-seed0", "`gain`, seed 1": "gain-seed1", "`gain`, seed 2": "gain-seed2",
    "`gain`, seed 3": "gain-seed3", "`gain`, seed 4": "gain-seed4", "`members=12`, seed 1": "critics-12-seed1",
    "`replay=4000`, `average=0.0002`, seed 1": "memory-4000-seed1",
    "the same with 2,560 episodes, seed 1": "longer-2560-seed1",
    "`replay=16000`, `average=0.0001`, seed 1": "memory-16000-seed1",
    "`replay=4000`, `average=0.0002`, seed 4": "memory-4000-seed4",
}  # fmt: skip
"""Agents of the model card that are not kept, by what the card calls them."""


def test_the_model_card_says_what_the_drawn_markets_say() -> None:
    page = [" ".join(line.replace("**", "").split()) for line in PAGE.read_text().splitlines()]

    def measured(file: str, agents: list[str]) -> dict[str, list[str]]:
        rows = markets.validation(ROOT / "research/results" / file, agents).splitlines()[2:]
        cells = {row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:-1]] for row in rows}
        return {name: [gap, worst.partition(" ")[0], behind] for name, (gap, worst, behind) in cells.items()}

    seeds = [f"mahdrl:research/results/suite/agents/mahdrl-seed{seed}.safetensors" for seed in range(5)]
    told = measured("any-market-validation.csv", ["mahdrl-single", *seeds, *(f"{one} untold" for one in seeds)])
    for seed, name in enumerate(seeds):
        gap, _, behind = told[f"{name} untold"]
        assert " | ".join([f"| training seed {seed}", *told[name], gap, f"{behind} |"]) in page
    for name in ("random", "hqfa", "mahdrl-single"):
        assert " | ".join([f"| {name}", *told[name], "| |"]) in page
    tried = measured("any-market-tried.csv", [f"mahdrl:tried/{name}.safetensors" for name in TRIED.values()])
    for shown, name in TRIED.items():
        assert " | ".join([f"| {shown}", *tried[f"mahdrl:tried/{name}.safetensors"]]) + " |" in page


def test_the_tables_on_real_images_say_what_the_kept_reports_say() -> None:
    page = PAGE.read_text().splitlines()
    for file in ("any-market-real", "any-market-real-scarce"):
        frame = pd.read_csv(ROOT / f"research/results/{file}.csv")
        frame = frame[(frame.service == "market") & (frame.measure == "AUC")]
        for market, rows in frame.groupby(frame.scenario.str.rpartition("-")[0]):
            own = rows.set_index("policy").loc["mahdrl"]
            cells = [f"{own['mean']:.2f} [{own.low:.2f}, {own.high:.2f}]"]
            for it in rows[rows.policy != "mahdrl"].itertuples():
                cells.append(f"{it.difference:+.2f} [{it.difference_low:+.2f}, {it.difference_high:+.2f}]")
            assert f"| {market} | {' | '.join(cells)} |" in page


def test_what_it_gains_on_earlier_trainings_is_what_the_drawn_markets_say() -> None:
    validation, tried = (
        pd.read_csv(ROOT / f"research/results/any-market-{name}.csv").pivot_table("auc", "market", "policy").dropna()
        for name in ("validation", "tried")
    )
    before = tried.filter(like="gain-seed").mean(axis=1)
    prose = " ".join(PAGE.read_text().split())
    for kind, words in (
        ("", "by {} on average over the markets"),
        (" untold", "by {} where they are told no learning"),
    ):
        gains = validation.filter(regex=rf"seed\d\.safetensors{kind}$").mean(axis=1) - before
        assert words.format(text(interval_text(mean_interval(gains.to_numpy())))) in prose


def test_what_it_loses_without_a_curve_is_what_the_file_says() -> None:
    frame = pd.read_csv(RESULTS)
    prose = " ".join(PAGE.read_text().split())

    def lost(mode: str, market: str) -> str:
        wide = frame[(frame["mode"] == mode) & (frame.market == market)].pivot_table("auc", "seed", "policy")
        return text(plus_minus(gain(wide, "mahdrl", "mahdrl untold")))

    assert f"as a resident it loses {lost('resident', 'budget 10')} with a budget of 10" in prose
    assert f"{lost('resident', '12 services')} with twelve services" in prose
    assert f"As a visitor it loses {lost('visitor', '6 services')} with six services" in prose
    assert f"gains {lost('visitor', 'budget 5').lstrip('-')} with a budget of 5" in prose


def text(found: str) -> str:
    """Return numbers as sentences have them: without plus signs and the zeros in front of points."""
    return found.replace("+", "").replace("0.", ".")
