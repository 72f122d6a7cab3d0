r"""What Algorithm 1's choices are worth, why it meets targets late, and how it does in other markets.

    python benchmarks/algorithm1_ablation.py play --jobs 2      # two and a half hours of one core
    python benchmarks/algorithm1_ablation.py table
    python benchmarks/algorithm1_ablation.py trial

All on the surrogate. `play` trains with one change at a time and plays these agents in the scenario `paper`, lets
`dearest` take over from the unchanged agents in mid-run and the reverse, and plays the agent that comes with flmarket
in other markets. It appends to its two files, results and what was bought, and skips what they hold, so an interrupted
run continues. `table` prints what is in them. `trial` prints differences in the results of `algorithm1_trial.py`.
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
from learning.intervals import paired_interval
from learning.mahdrl.paper import equations
from learning.policy import Policy
from learning.selection import fill_budget
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load
from scenarios.train import plan_training, run

SURROGATE = "training.backend=surrogate"
SERVICES = ("mnist", "fashion-mnist", "emnist")
POLICY = "mahdrl-paper"
UNCHANGED = "unchanged"
CREDITED = "target=advantage"
TRIAL = {
    "surrogate": Path("docs/results/algorithm1-trial.csv"), "images": Path("docs/results/algorithm1-trial-images.csv")
}  # fmt: skip


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
    CREDITED: Variant({"target": "advantage", "centred": False}),
    "bounded=false": Variant({"bounded": False}),
    "misfits skipped": Variant({}, skips=True),
    "Omega 1000": Variant({}, tuple(f"services.{name}.reward_base=1000" for name in SERVICES)),
    "discount=0.99": Variant({"discount": 0.99}),
    "replay=16000": Variant({"replay": 16000}),
}
"""Without a discount, the value of the next state does not count at all; 16,000 transitions are the whole training."""

SEEDS = range(3)
SEEDS_OF_PAIRS = range(5)
MARKETS = range(20)
MEASURES = (("auc", 4), ("final", 4), ("rounds", 1))
"""And the digits that they are told with."""
COLUMNS = ("part", "entrant", "training_seed", "market_seed", "service", "auc", "final", "rounds", "reached")
BOUGHT = ("entrant", "training_seed", "first", "last", "service_rounds", "clients", "images", "emd")
"""Sums over the rounds from the first to the last: each round of each service counts once, `emd` is that of clients."""
READING = "shared centred learned"
PAIRS = (
    ("one network for all clients", READING, "slots centred learned"),
    ("centred rewards", READING, "shared raw learned"),
    ("both", READING, "slots raw learned"),
    ("training", READING, "shared untrained learned"),
    ("learned payments", READING, "shared centred bids"),
    ("a ranking, not a sub-MDP", "slots centred learned", "serial centred learned"),
    ("the same without learned payments", "slots centred bids", "serial centred bids"),
)
"""Readings of the trial that differ in one thing, or two."""
RULES = ("random", "hqfa", "lcfa", "dearest", "mahdrl")

ABLATION, SPLIT, ELSEWHERE = "ablation", "split", "elsewhere"
SPLITS = {
    "`dearest` throughout": ("dearest", "dearest", 1), "`dearest` from round 21": (POLICY, "dearest", 21),
    "`dearest` from round 41": (POLICY, "dearest", 41), f"`{POLICY}` from round 41": ("dearest", POLICY, 41),
    f"`{POLICY}` from round 21": ("dearest", POLICY, 21), f"`{POLICY}` throughout": (POLICY, POLICY, 1),
}  # fmt: skip
"""Who begins, who goes on, and from which round."""
STRETCHES = ((1, 10), (11, 20), (21, 40), (41, 80))
CHANGES = {
    "`paper`": (), "K = 1": ("clients.cores=1",), "40 clients": ("clients.count=40",),
    "budgets of 10": tuple(f"services.{name}.budget=10" for name in SERVICES),
    "EMDs of .2, .8 and 1.2": ("clients.emd=[0.2,0.8,1.2]",), "the fitted DQI": ("dqi=fitted",),
}  # fmt: skip
"""Markets by what is changed."""

Task = tuple[str, str, int | None]
"""A part, an entrant (elsewhere: a market and a policy), and a training seed."""


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
        planned = plan_training([scenario], POLICY, options=variant.options, command="")
        run(planned, seed, out, Shelf(), resume=True)
    return out


def play(task: Task, folder: Path) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the results of a task, one row for each market seed and service, and what was bought if it is a split."""
    part, name, seed = task
    bought = dict.fromkeys(STRETCHES, np.zeros(4)) if part == SPLIT else {}
    changes: tuple[str, ...] = ()
    with skipping(skips=part == ABLATION and seed is not None and VARIANTS[name].skips):  # in training, too
        if part == ELSEWHERE:
            market, policy = name.rsplit(", ", 1)
            changes, entrant = CHANGES[market], everywhere(policy)
        elif part == SPLIT:
            first, then, start = SPLITS[name]
            own = {"checkpoint": str(trained(UNCHANGED, seed or 0, folder))}
            early, late = (everywhere(policy, own if policy == POLICY else {}) for policy in (first, then))
            entrant = partial(_seated, early, late, start, bought)
        elif seed is None:
            entrant = everywhere(name)
        else:
            entrant = everywhere(POLICY, {"checkpoint": str(trained(name, seed, folder))})
        results = evaluate(_market(*changes), {name: entrant}, MARKETS)
    sums = [(name, seed, *stretch, *(f"{value:.6g}" for value in found)) for stretch, found in bought.items()]
    return _rows(results, task), sums


def _market(*changes: str) -> Any:
    scenario, shelf = load("paper", [SURROGATE, *changes]), Shelf()
    return lambda at: build_market(scenario, at, build_federation(scenario, at, shelf, workers=0))


def _rows(results: Results, task: Task) -> list[tuple[Any, ...]]:
    auc, (rounds, reached) = results.auc()[0], results.rounds_to_target()
    return [
        (*task, at, service, f"{auc[i, m]:.6f}", f"{results.reported[0, i, -1, m]:.6f}", rounds[0, i, m],
         int(reached[0, i, m]))
        for (i, at), (m, service) in product(enumerate(MARKETS), enumerate(results.services))
    ]  # fmt: skip


def tasks() -> list[Task]:
    """Return all that is played, the changes last, as each of them is trained first."""
    return [
        *((ELSEWHERE, f"{market}, {name}", None) for market, name in product(CHANGES, (*RULES[:2], "dearest", POLICY))),
        *product([SPLIT], SPLITS, SEEDS),
        *((ABLATION, name, None) for name in ("random", "dearest")),
        *product([ABLATION], VARIANTS, SEEDS),
    ]


def play_all(path: Path, bought: Path, folder: Path, jobs: int) -> None:
    """Play what the files lack."""
    for kept, columns in ((path, COLUMNS), (bought, BOUGHT)):
        if not kept.exists():
            kept.write_text(",".join(columns) + "\n", encoding="utf-8")
    frame = pd.read_csv(path)
    seeds = [None if pd.isna(seed) else int(seed) for seed in frame.training_seed]
    done = set(zip(frame.part, frame.entrant, seeds, strict=True))
    with ProcessPoolExecutor(jobs) as pool, path.open("a", newline="") as file, bought.open("a", newline="") as sums:
        for played in as_completed([pool.submit(play, task, folder) for task in tasks() if task not in done]):
            results, offers = played.result()
            csv.writer(file, lineterminator="\n").writerows(results)
            csv.writer(sums, lineterminator="\n").writerows(offers)
            file.flush()
            sums.flush()


def ablation(frame: pd.DataFrame) -> str:
    """Return what each change reaches, and how far it is from the unchanged agents of the same training seeds."""
    entrants = {str(name): rows for name, rows in frame.groupby("entrant", sort=False)}
    base = entrants[UNCHANGED]
    lines = [
        "| change | trainings | AUC | minus unchanged | final accuracy | rounds to target |",
        "|---|---|---|---|---|---|",
    ]
    for name, rows in sorted(entrants.items(), key=lambda item: -float(item[1].auc.mean())):
        cells = [name, str(rows.training_seed.nunique() or ""), f"{rows.auc.mean():.4f}"]
        own = base[base.training_seed.isin(rows.training_seed)] if rows.training_seed.notna().any() else base
        cells += ["" if name == UNCHANGED else _signed(rows, own, measure, digits) for measure, digits in MEASURES]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def beside(frame: pd.DataFrame) -> str:
    """Return how far the unchanged agents, and those with later rounds in their target, are from two policies."""
    entrants = {str(name): rows for name, rows in frame.groupby("entrant", sort=False)}
    lines = ["| agents | minus | AUC | final accuracy | rounds to target |", "|---|---|---|---|---|"]
    for name, other in product((UNCHANGED, CREDITED), ("random", "dearest")):
        gains = [_signed(entrants[name], entrants[other], *measure) for measure in MEASURES]
        lines.append(f"| {name} | {other} | {' | '.join(gains)} |")
    return "\n".join(lines)


def splits(frame: pd.DataFrame) -> str:
    """Return what becomes of a run in which one policy takes over from another, minus `dearest` throughout."""
    entrants = {str(name): rows for name, rows in frame.groupby("entrant", sort=False)}
    base = next(iter(SPLITS))
    lines = ["| who plays | AUC | minus `dearest` | final accuracy | rounds to target |", "|---|---|---|---|---|"]
    for name in SPLITS:
        gains = ["" if name == base else _signed(entrants[name], entrants[base], *measure) for measure in MEASURES]
        lines.append(f"| {name} | {entrants[name].auc.mean():.4f} | {' | '.join(gains)} |")
    return "\n".join(lines)


def purchases(frame: pd.DataFrame) -> str:
    """Return what `dearest` and the unchanged agents offered to buy, stretch by stretch."""
    lines = [
        "| rounds | policy | clients a round | images a round | images of a client | EMD |",
        "|---|---|---|---|---|---|",
    ]
    for (first, last), name in product(STRETCHES, ("dearest", POLICY)):
        rows = frame[(frame.entrant == f"`{name}` throughout") & (frame["first"] == first)]
        rounds, clients, images, emd = rows[["service_rounds", "clients", "images", "emd"]].sum()
        cells = [f"{clients / rounds:.1f}", f"{images / rounds:.0f}", f"{images / clients:.0f}", f"{emd / clients:.2f}"]
        lines.append(f"| {first} to {last} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def elsewhere(frame: pd.DataFrame) -> str:
    """Return how the agent that comes with flmarket does in markets that it was not trained in."""
    entrants = {str(name): rows for name, rows in frame.groupby("entrant", sort=False)}
    lines = ["| market | measure | minus random | minus hqfa | minus dearest |", "|---|---|---|---|---|"]
    for market, (measure, digits) in product(CHANGES, MEASURES):
        own, others = entrants[f"{market}, {POLICY}"], (*RULES[:2], "dearest")
        gains = [_signed(own, entrants[f"{market}, {name}"], measure, digits) for name in others]
        lines.append(f"| {market} | {measure} | {' | '.join(gains)} |")
    return "\n".join(lines)


def pairs(frame: pd.DataFrame) -> str:
    """Return how far readings of the trial are apart, by the training seeds that all of them have."""
    lines = ["| difference | AUC | final accuracy | rounds to target |", "|---|---|---|---|"]
    for label, one, other in PAIRS:
        own, others = (
            frame[(frame.entrant == name) & frame.training_seed.isin(SEEDS_OF_PAIRS)] for name in (one, other)
        )
        gains = [_signed(own, others, measure, digits) for measure, digits in MEASURES]
        lines.append(f"| {label}: *{one}* minus *{other}* | {' | '.join(gains)} |")
    return "\n".join(lines)


def rules(frames: Mapping[str, pd.DataFrame]) -> str:
    """Return how far all trainings of the primary reading are from policies that are not Algorithm 1."""
    lines = [f"| *{READING}* minus | where | AUC | final accuracy | rounds to target |", "|---|---|---|---|---|"]
    for name, (where, frame) in product(RULES, frames.items()):
        own, other = frame[frame.entrant == READING], frame[frame.entrant == name]
        gains = [_signed(own, other, measure, digits) for measure, digits in MEASURES]
        lines.append(f"| {name} | {where} | {' | '.join(gains)} |")
    return "\n".join(lines)


def trainings(frame: pd.DataFrame) -> str:
    """Return how far each training of the primary reading is ahead of Random, with an interval over the markets."""
    own, random = frame[frame.entrant == READING], frame[frame.entrant == "random"]
    lines = ["| training seed | AUC minus random | final accuracy | rounds to target |", "|---|---|---|---|"]
    for seed, rows in own.groupby("training_seed"):
        cells = [_signed(rows, random, measure, digits) for measure, digits in MEASURES]
        lines.append(f"| {seed:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _signed(own: pd.DataFrame, other: pd.DataFrame, measure: str, digits: int) -> str:
    gain = paired_interval(matrix(own, measure), matrix(other, measure))
    ends = f" [{gain.low:+.{digits}f}, {gain.high:+.{digits}f}]" if gain.known else ""
    return f"{gain.estimate:+.{digits}f}{ends}"


Bought = dict[tuple[int, int], Any]
"""Sums as in the file of what was bought, by stretches of rounds."""


class TakenOver(Policy):
    """Plays one policy up to a round and another from it on, and adds up what it offers to buy."""

    def __init__(self, first: Policy, then: Policy, start: int, bought: Bought) -> None:
        super().__init__(first.context)
        self._first, self._then, self._start, self._bought = first, then, start, bought

    def act(self, observation: Observation) -> Offer:
        """Return the offers of the policy whose turn it is; neither remembers anything."""
        offer = (self._then if observation.round >= self._start else self._first).act(observation)
        bids = observation.own_bids[offer.clients]
        sizes = np.ceil(bids / 2.5)  # a bid is 2.5 for each 100 images, minus the EMD, which is at most 1
        [at] = [stretch for stretch in STRETCHES if stretch[0] <= observation.round <= stretch[1]]
        found = np.array([1.0, len(bids), 100 * sizes.sum(), (2.5 * sizes - bids).sum()])
        self._bought[at] = self._bought[at] + found
        return offer


def _seated(first: Entrant, then: Entrant, start: int, bought: Bought, market: Market) -> dict[str, Policy]:
    early, late = first(market), then(market)
    return {name: TakenOver(early[name], late[name], start, bought) for name in early}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["play", "table", "trial"])
    parser.add_argument("--out", type=Path, default=Path("docs/results/algorithm1-ablation.csv"))
    parser.add_argument("--bought", type=Path, default=Path("docs/results/algorithm1-bought.csv"))
    parser.add_argument("--agents", type=Path, default=Path("runs/algorithm1-ablation"), help="folder of the trainings")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    arguments = parser.parse_args()
    match arguments.what:
        case "play":
            play_all(arguments.out, arguments.bought, arguments.agents, arguments.jobs)
        case "table":
            parts = dict(list(pd.read_csv(arguments.out).groupby("part")))
            changed = parts[ABLATION]
            print(f"{ablation(changed)}\n\n{beside(changed)}\n")
            print(
                f"{purchases(pd.read_csv(arguments.bought))}\n\n{splits(parts[SPLIT])}\n\n{elsewhere(parts[ELSEWHERE])}"
            )
        case _:
            read = {where: pd.read_csv(path) for where, path in TRIAL.items()}
            last = {where: frame[frame.chosen.isna() | (frame.chosen == "last")] for where, frame in read.items()}
            frame = last["surrogate"]
            print(f"{rules(last)}\n\n{trainings(frame)}\n\n{pairs(frame)}")


if __name__ == "__main__":
    main()
