r"""What Algorithm 1's choices are worth: one is changed at a time, and the agents trained that way are played.

    python benchmarks/algorithm1_ablation.py play --jobs 2      # two hours of one core
    python benchmarks/algorithm1_ablation.py table
    python benchmarks/algorithm1_ablation.py behaviour
    python benchmarks/algorithm1_ablation.py elsewhere
    python benchmarks/algorithm1_ablation.py trial

All on the surrogate, in the scenario `paper`. `play` trains each variant, appends what its agents reach to its file,
and skips what that holds, so an interrupted run continues. `table` prints what each is worth. `behaviour` plays the
unchanged agents once more: what becomes of a run in which `dearest` takes over from them, or they from it, and what
both buy early and late. `elsewhere` plays the agent that comes with flmarket in other markets. `trial` prints
differences between readings of `algorithm1_trial.py`, and the trainings of the one that won.
"""

import argparse
import csv
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from mahdrl_table import matrix

from des.market import Market
from des.records import Observation, Offer
from learning.evaluation import Entrant, Results, evaluate, everywhere
from learning.intervals import mean_interval, paired_interval
from learning.mahdrl.paper import equations
from learning.policy import Policy
from learning.selection import fill_budget
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load
from scenarios.train import plan_training, run

SURROGATE = "training.backend=surrogate"
SERVICES = ("mnist", "fashion-mnist", "emnist")
UNCHANGED = "mahdrl-paper"
TRIAL = Path("docs/results/algorithm1-trial.csv")


@dataclass(frozen=True)
class Variant:
    """A change of Algorithm 1.

    Attributes:
        options: hyper-parameters.
        scenario: changes of the scenario in which it is trained; it is played in the unchanged one.
        skips: whether clients that do not fit into the budget are skipped, instead of ending the selection.
    """

    options: Mapping[str, Any]
    scenario: tuple[str, ...] = ()
    skips: bool = False


VARIANTS: Mapping[str, Variant] = {
    UNCHANGED: Variant({}),
    "discount=0": Variant({"discount": 0.0}),
    "target=advantage": Variant({"target": "advantage", "centred": False}),
    "misfits skipped": Variant({}, skips=True),
    "Omega 1000": Variant({}, tuple(f"services.{name}.reward_base=1000" for name in SERVICES)),
    "discount=0.99": Variant({"discount": 0.99}),
    "replay=16000": Variant({"replay": 16000}),
    "bounded=false": Variant({"bounded": False}),
}
"""Without a discount, the value of the next state does not count at all; 16,000 transitions are the whole training."""

SEEDS = range(3)
MARKETS = range(20)
MEASURES = (("auc", 4), ("final", 4), ("rounds", 1))
"""And the digits that they are told with."""
COLUMNS = ("entrant", "training_seed", "market_seed", "service", "auc", "final", "rounds", "reached")
PAIRS = (
    ("one network for all clients", "shared centred learned", "slots centred learned"),
    ("centred rewards", "shared centred learned", "shared raw learned"),
    ("both", "shared centred learned", "slots raw learned"),
    ("training", "shared centred learned", "shared untrained learned"),
    ("learned payments", "shared centred learned", "shared centred bids"),
    ("a ranking, not a sub-MDP", "slots centred learned", "serial centred learned"),
)
"""Readings of the trial that differ in one thing, or two."""
SPLITS = {
    "`dearest` throughout": ("dearest", "dearest", 1), "`dearest` from round 21": (UNCHANGED, "dearest", 21),
    "`dearest` from round 41": (UNCHANGED, "dearest", 41), "`mahdrl-paper` from round 41": ("dearest", UNCHANGED, 41),
    "`mahdrl-paper` from round 21": ("dearest", UNCHANGED, 21), "`mahdrl-paper` throughout": (UNCHANGED, UNCHANGED, 1),
}  # fmt: skip
"""Who begins, who goes on, and from which round."""


ELSEWHERE = {
    "`paper`": (), "K = 1": ("clients.cores=1",), "40 clients": ("clients.count=40",),
    "budgets of 10": tuple(f"services.{name}.budget=10" for name in SERVICES),
    "EMDs of .2, .8 and 1.2": ("clients.emd=[0.2,0.8,1.2]",), "the fitted DQI": ("dqi=fitted",),
}  # fmt: skip
"""Markets by what is changed."""


@contextmanager
def skipping(*, skips: bool) -> Iterator[None]:
    """Let the serial selection skip clients that do not fit, in training, targets and play."""
    kept = equations.fill_budget, equations.greedy_set
    if skips:
        equations.fill_budget, equations.greedy_set = _fill_skipping, _greedy_skipping
    try:
        yield
    finally:
        equations.fill_budget, equations.greedy_set = kept


def _fill_skipping(*arguments: Any, stop_at_misfit: bool, **options: Any) -> Any:
    return fill_budget(*arguments, **options)


def _greedy_skipping(q: torch.Tensor, prices: torch.Tensor, budget: torch.Tensor, here: torch.Tensor) -> torch.Tensor:
    order = q.argsort(dim=2, descending=True, stable=True)
    costs, there = prices.gather(2, order), here.gather(2, order)
    left, taken = budget.clone(), []
    for n in range(q.shape[2]):
        fits = (there[..., n] > 0) & (costs[..., n] <= left + 1e-4)
        left = left - costs[..., n] * fits
        taken.append(fits.to(q.dtype))
    return torch.zeros_like(q).scatter(2, order, torch.stack(taken, dim=2))


def trained(name: str, seed: int, folder: Path) -> Path:
    """Return the file of an agent; train it if it is not there."""
    variant = VARIANTS[name]
    out = folder / f"{name.replace(' ', '-')}-seed{seed}.safetensors"
    if not out.exists():
        scenario = load("paper", [SURROGATE, *variant.scenario])
        planned = plan_training([scenario], "mahdrl-paper", options=variant.options, command="")
        run(planned, seed, out, Shelf(), resume=True)
    return out


def play(task: tuple[str, int | None], folder: Path) -> list[tuple[Any, ...]]:
    """Return the rows of an entrant, one for each market seed and service."""
    name, seed = task
    with skipping(seed is not None and VARIANTS[name].skips):
        found = (
            everywhere(name)
            if seed is None
            else everywhere(UNCHANGED, {"checkpoint": str(trained(name, seed, folder))})
        )
        results = evaluate(_market(), {name: found}, MARKETS)
    return _rows(results, name, seed)


def _market(*changes: str) -> Any:
    scenario, shelf = load("paper", [SURROGATE, *changes]), Shelf()
    return lambda at: build_market(scenario, at, build_federation(scenario, at, shelf, workers=0))


def _rows(results: Results, name: str, seed: int | None) -> list[tuple[Any, ...]]:
    auc, (rounds, reached) = results.auc()[0], results.rounds_to_target()
    return [
        (name, seed, at, service, f"{auc[i, m]:.6f}", f"{results.reported[0, i, -1, m]:.6f}", rounds[0, i, m],
         int(reached[0, i, m]))
        for (i, at), (m, service) in product(enumerate(MARKETS), enumerate(results.services))
    ]  # fmt: skip


def play_all(path: Path, folder: Path, jobs: int) -> None:
    """Play what the file lacks."""
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    frame = pd.read_csv(path)
    seeds = [None if pd.isna(seed) else int(seed) for seed in frame.training_seed]
    done = set(zip(frame.entrant, seeds, strict=True))
    tasks = [("random", None), ("dearest", None), *product(VARIANTS, SEEDS)]
    with ProcessPoolExecutor(jobs) as pool, path.open("a", newline="") as file:
        for played in as_completed([pool.submit(play, task, folder) for task in tasks if task not in done]):
            csv.writer(file, lineterminator="\n").writerows(played.result())
            file.flush()


def table(path: Path) -> str:
    """Return what each variant reaches, and how far it is from the unchanged one, by the same training seeds."""
    frame = pd.read_csv(path)
    entrants = {str(name): rows for name, rows in frame.groupby("entrant", sort=False)}
    base = entrants[UNCHANGED]
    lines = [
        "| variant | trainings | AUC | minus unchanged | final accuracy | rounds to target |",
        "|---|---|---|---|---|---|",
    ]
    for name, rows in sorted(entrants.items(), key=lambda item: -float(item[1].auc.mean())):
        cells = [name, str(rows.training_seed.nunique() or ""), f"{rows.auc.mean():.4f}"]
        own = base[base.training_seed.isin(rows.training_seed)] if rows.training_seed.notna().any() else base
        cells += ["" if name == UNCHANGED else _signed(rows, own, measure, digits) for measure, digits in MEASURES]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def pairs(path: Path) -> str:
    """Return how far readings of the trial are apart, by their last agents and the training seeds that both have."""
    frame = pd.read_csv(path)
    frame = frame[frame.chosen == "last"]
    lines = ["| what is worth it | AUC | final accuracy | rounds to target |", "|---|---|---|---|"]
    for label, one, other in PAIRS:
        own, others = (frame[(frame.entrant == name) & frame.training_seed.isin(range(5))] for name in (one, other))
        gains = [_signed(own, others, measure, digits) for measure, digits in MEASURES]
        lines.append(f"| {label}: *{one}* minus *{other}* | {' | '.join(gains)} |")
    return "\n".join(lines)


def trainings(path: Path) -> str:
    """Return how far each training of the reading that won is ahead of Random, with an interval over the markets."""
    frame = pd.read_csv(path)
    own, random = frame[(frame.entrant == PAIRS[0][1]) & (frame.chosen == "last")], frame[frame.entrant == "random"]
    lines = ["| training seed | AUC minus random | final accuracy | rounds to target |", "|---|---|---|---|"]
    for seed, rows in own.groupby("training_seed"):
        cells = [_signed(rows, random, measure, digits) for measure, digits in MEASURES]
        lines.append(f"| {seed:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _signed(own: pd.DataFrame, other: pd.DataFrame, measure: str, digits: int) -> str:
    gain = paired_interval(matrix(own, measure), matrix(other, measure))
    ends = f" [{gain.low:+.{digits}f}, {gain.high:+.{digits}f}]" if gain.known else ""
    return f"{gain.estimate:+.{digits}f}{ends}"


class TakenOver(Policy):
    """Plays one policy up to a round and another from it on, and notes what it buys."""

    def __init__(self, first: Policy, then: Policy, start: int, bought: list[tuple[int, int, float]]) -> None:
        super().__init__(first.context)
        self._first, self._then, self._start, self._bought = first, then, start, bought

    def act(self, observation: Observation) -> Offer:
        """Return the offers of whoever plays in this round; neither remembers anything."""
        offer = (self._then if observation.round >= self._start else self._first).act(observation)
        bids = observation.own_bids[offer.clients]
        sizes = np.ceil(bids / 2.5)  # a bid is 2.5 for each 100 images, minus the EMD, which is at most 1
        self._bought += zip([observation.round] * len(bids), 100 * sizes, 2.5 * sizes - bids, strict=True)
        return offer


def elsewhere() -> str:
    """Return how the agent that comes with flmarket does in markets that it was not trained in."""
    lines = ["| market | measure | minus random | minus hqfa | minus dearest |", "|---|---|---|---|---|"]
    for label, changes in ELSEWHERE.items():
        names = ("random", "hqfa", "dearest", UNCHANGED)
        found = {name: _frame(evaluate(_market(*changes), {name: everywhere(name)}, MARKETS)) for name in names}
        for measure, digits in MEASURES:
            gains = [_signed(found[UNCHANGED], found[name], measure, digits) for name in names[:3]]
            lines.append(f"| {label} | {measure} | {' | '.join(gains)} |")
    return "\n".join(lines)


def _frame(results: Results) -> pd.DataFrame:
    return pd.DataFrame(_rows(results, "", None), columns=COLUMNS).astype({"auc": float, "final": float})


def _seated(
    first: Entrant, then: Entrant, start: int, bought: list[tuple[int, int, float]], market: Market
) -> dict[str, Policy]:
    early, late = first(market), then(market)
    return {name: TakenOver(early[name], late[name], start, bought) for name in early}


def behaviour(folder: Path) -> str:
    """Return two tables: what becomes of a run in which one policy takes over, and what both buy early and late."""
    lines = ["| who plays | AUC | final accuracy | rounds to target |", "|---|---|---|---|"]
    bought = {}
    for label, (first, then, start) in SPLITS.items():
        rows, bought[label] = [], []
        for seed in SEEDS:
            own = {"checkpoint": str(trained(UNCHANGED, seed, folder))}
            entrants = [everywhere(name, own if name == UNCHANGED else {}) for name in (first, then)]
            both = partial(_seated, *entrants, start, bought[label])
            rows += _rows(evaluate(_market(), {"": both}, MARKETS), "", seed)
        frame = pd.DataFrame(rows, columns=COLUMNS).astype({"auc": float, "final": float})
        told = [mean_interval(matrix(frame, measure)) for measure, _ in MEASURES]
        cells = [
            f"{it.estimate:.{d}f} ± {(it.high - it.low) / 2:.{d}f}" for it, (_, d) in zip(told, MEASURES, strict=True)
        ]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    lines += ["", "| rounds | policy | images of a client | EMD |", "|---|---|---|---|"]
    for (low, high), name in product(((1, 10), (11, 20), (21, 40), (41, 80)), ("dearest", UNCHANGED)):
        part = np.array([row for row in bought[f"`{name}` throughout"] if low <= row[0] <= high])
        lines.append(f"| {low} to {high} | {name} | {part[:, 1].mean():.0f} | {part[:, 2].mean():.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["play", "table", "behaviour", "elsewhere", "trial"])
    parser.add_argument("--out", type=Path, default=Path("docs/results/algorithm1-ablation.csv"))
    parser.add_argument("--agents", type=Path, default=Path("runs/algorithm1-ablation"), help="folder of the trainings")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    arguments = parser.parse_args()
    match arguments.what:
        case "play":
            play_all(arguments.out, arguments.agents, arguments.jobs)
        case "table":
            print(table(arguments.out))
        case "behaviour":
            print(behaviour(arguments.agents))
        case "elsewhere":
            print(elsewhere())
        case _:
            print(f"{pairs(TRIAL)}\n\n{trainings(TRIAL)}")


if __name__ == "__main__":
    main()
