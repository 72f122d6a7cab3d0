"""Tunes the rivals on drawn training markets, and prints the table of docs/decisions/rivals.md.

    python research/tune_rivals.py --out research/results/tune-rivals.csv [--print]

An interrupted search resumes: a setting is written when all its markets are played.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from experiment import fill, growing, markdown, plus_minus

from learning.evaluation import evaluate, lineup
from learning.statistics.intervals import mean_interval
from scenarios.build import market_factory
from scenarios.file.schema import Scenario
from scenarios.random_markets import ROUNDS, draw

SEED = 16
"""Of the drawn markets."""

MARKETS = 40
ROUNDS_PAID = 10
"""Rounds whose budget a budget for the whole run is."""

Options = Mapping[str, Any]

LEARNED = {"steepness": 2.0, "trust": 2.0, "prior": 10.0, "haste": 1.0}
STARTS: dict[str, Options] = {
    "hqfa": {},
    "dearest": {},
    "outbid": {},
    "pacing": {"rate": 0.2, "tolerance": 0.1, "limit": 1.0},
    "resolving": {**LEARNED, "rate": 0.3},
    "mirror": {**LEARNED, "rate": 0.1},
    "bwk": {**LEARNED, "rate": 0.1, "exploration": 0.1},
}
"""The start of the search, and `hqfa` for comparison."""

# One option at a time is moved away from a start that is the same for all, so the search is a star and no grid: its
# score is the AUC less that of the start in the same seats of the same market under the same seed; the score of the
# start is its AUC less that of `hqfa`.
MOVES: dict[str, list[Options]] = {
    "resolving": [
        {"steepness": 1.0}, {"steepness": 4.0}, {"trust": 1.0}, {"trust": 4.0}, {"prior": 3.0}, {"prior": 30.0},
        {"rate": 0.0}, {"rate": 0.1}, {"rate": 1.0},
    ],
    "mirror": [
        {"steepness": 1.0}, {"steepness": 4.0}, {"trust": 1.0}, {"trust": 4.0}, {"prior": 3.0}, {"prior": 30.0},
        {"rate": 0.0}, {"rate": 0.03}, {"rate": 0.3},
    ],
    "bwk": [
        {"steepness": 1.0}, {"steepness": 4.0}, {"trust": 1.0}, {"trust": 4.0}, {"prior": 3.0}, {"prior": 30.0},
        {"rate": 0.03}, {"rate": 0.3}, {"exploration": 0.0}, {"exploration": 0.5},
    ],
    "pacing": [{"rate": 0.1}, {"rate": 0.5}, {"tolerance": 0.0}, {"tolerance": 0.3}, {"limit": 0.2}, {"limit": 0.5}],
    "dearest": [{"k": 3}, {"k": 5}],
}  # fmt: skip
HASTES = (0.0, 0.5, 2.0, 3.0, 5.0)


def main() -> None:
    arguments = growing(__doc__).parse_args()
    if not arguments.print:
        columns = ["policy", "options", "mode", "market", "auc", "seconds"]
        fill(arguments.out, columns, tasks(), play, arguments.jobs)
    print(table(arguments.out))


def tasks() -> list[tuple[str, str, str]]:
    """Return all that is played: policy, options as JSON, and mode."""
    usual = [
        (policy, json.dumps({**start, **move}), mode)
        for policy, start in STARTS.items()
        for move in [{}, *MOVES.get(policy, [])]
        for mode in ("resident", "visitor")
    ]
    hasty = [
        (policy, json.dumps({**start, **move}), "whole run")
        for policy, start in STARTS.items()
        if "haste" in start or policy == "hqfa"
        for move in [{}, *({"haste": haste} for haste in HASTES if "haste" in start)]
    ]
    return usual + hasty


def play(task: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return a line of the CSV for each market: the AUC of the seats that play the setting."""
    policy, text, mode = task
    lines: list[tuple[Any, ...]] = []
    for index in range(MARKETS):
        start, scenario = time.process_time(), _market(index, mode)
        services = [service.name for service in scenario.services]
        names, count = dict.fromkeys(services, policy), len(services)
        if mode == "visitor":
            names |= {service: ("dearest", "hqfa")[m % 2] for m, service in enumerate(services) if m}
            count = 1
        options = {service: json.loads(text) for service in services[:count]}
        results = evaluate(market_factory(scenario, workers=0), {policy: lineup(names, options)}, [index])
        auc = results.auc()[0, 0, :count].mean()
        lines.append((*task, index, f"{auc:.6f}", f"{time.process_time() - start:.2f}"))
    return lines


# `resident`: all services play the setting. `visitor`: the first service does, the others play `hqfa` and `dearest` by
# turns. `whole run`: resident, and every service has a budget for the run of ten times that of a round, a quarter of
# what it could spend.
def _market(index: int, mode: str) -> Scenario:
    scenario = draw(SEED, index)
    if mode != "whole run":
        return scenario
    whole = [it.model_copy(update={"total_budget": round(ROUNDS_PAID * it.budget, 2)}) for it in scenario.services]
    return scenario.model_copy(update={"services": whole})


def table(path: Path) -> str:
    """Return the Markdown table: mean differences of starts from `hqfa`, and of moves from their start."""
    frame = pd.read_csv(path)
    auc = frame.pivot_table("auc", ["policy", "options", "mode"], "market")
    modes = [it for it in ("resident", "visitor", "whole run") if it in set(frame["mode"])]
    rows = []
    for policy, start in STARTS.items():
        if policy == "hqfa":
            continue
        first = (policy, json.dumps(start))
        begun = f"start: {_shown(start)}" if start else "none"
        rows.append([policy, begun, "`hqfa`", *_differences(auc, first, ("hqfa", "{}"), modes)])
        for move in [*MOVES.get(policy, []), *({"haste": it} for it in HASTES if "haste" in start)]:
            moved = (policy, json.dumps({**start, **move}))
            if any((*moved, mode) in auc.index for mode in modes):
                rows.append([policy, _shown(move), "its start", *_differences(auc, moved, first, modes)])
    hours = frame.seconds.sum() / 3600
    shown = markdown(("policy", "options", "minus", *modes), rows)
    runs = f"{len(frame)} runs of {ROUNDS} rounds in {frame.market.nunique()} markets, {hours:.2f} CPU hours."
    return f"{shown}\n\n{runs}"


def _differences(auc: pd.DataFrame, setting: tuple[str, str], base: tuple[str, str], modes: Sequence[str]) -> list[str]:
    """Return the mean difference of a setting from another one in each mode that both were played in."""
    return [
        plus_minus(mean_interval((auc.loc[(*setting, mode)] - auc.loc[(*base, mode)]).to_numpy()))
        if {(*setting, mode), (*base, mode)} <= set(auc.index)
        else ""
        for mode in modes
    ]


def _shown(options: Options) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in options.items())


if __name__ == "__main__":
    main()
