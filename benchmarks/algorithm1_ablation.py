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
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from growing import fill
from mahdrl_table import by_entrant, matrix, told

from des.market import Market
from des.records import Observation, Offer
from learning.evaluation import Entrant, evaluate, everywhere
from learning.intervals import paired_interval
from learning.mahdrl.paper import equations
from learning.mahdrl.training import Plan
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
    CREDITED: Variant({}),
    "misfits skipped": Variant({}, skips=True),
    "Omega 1000": Variant({}, tuple(f"services.{name}.reward_base=1000" for name in SERVICES)),
    "discount=0.99": Variant({"discount": 0.99}),
    "replay=16000": Variant({"replay": 16000}),
}
"""Without a discount, the value of the next state does not count at all; 16,000 transitions are the whole training.
`bounded=false` of the results is what `mahdrl-paper` does now; with bounds it was played in revision 6d820f31."""

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

ABLATION, SPLIT = "ablation", "split"
THROUGHOUT = "`{}` throughout"
BUYERS = ("dearest", POLICY)
SPLITS = {
    THROUGHOUT.format("dearest"): ("dearest", "dearest", 1), "`dearest` from round 21": (POLICY, "dearest", 21),
    "`dearest` from round 41": (POLICY, "dearest", 41), f"`{POLICY}` from round 41": ("dearest", POLICY, 41),
    f"`{POLICY}` from round 21": ("dearest", POLICY, 21), THROUGHOUT.format(POLICY): (POLICY, POLICY, 1),
}  # fmt: skip
"""Who begins, who goes on, and from which round."""
STRETCHES = ((1, 10), (11, 20), (21, 40), (41, 80))
CHANGES = {
    "`paper`": (), "K = 1": ("clients.cores=1",), "40 clients": ("clients.count=40",),
    "budgets of 10": tuple(f"services.{name}.budget=10" for name in SERVICES),
    "EMDs of .2, .8 and 1.2": ("clients.emd=[0.2,0.8,1.2]",), "the fitted DQI": ("dqi=fitted",),
}  # fmt: skip
"""Markets by what is changed."""
PLAY_ELSEWHERE = ("random", "hqfa", "dearest", POLICY)


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
        if name == CREDITED:
            sys.path.insert(0, str(Path(__file__).parents[1] / "research"))
            from algorithm1_readings import Reading, train_reading

            train_reading(Reading("shared", "advantage"), Plan(seed=seed), out, scenario=scenario)
            return out
        planned = plan_training([scenario], POLICY, options=variant.options, command="")
        run(planned, seed, out, Shelf(), resume=True)
    return out


def play(task: tuple[str, ...], folder: Path) -> list[tuple[Any, ...]]:
    """Return the results of a task, one row for each market seed and service.

    Args:
        task: a part (the ablation, the takeovers, or a market of ``CHANGES``), an entrant, and its training seed if it
            has one.
        folder: of the trainings.
    """
    part, name, seed = task
    changes: tuple[str, ...] = ()
    with skipping(skips=name in VARIANTS and VARIANTS[name].skips):  # in training, too
        if part == SPLIT:
            entrant = taking_over(name, int(seed), folder, {})
        elif seed:
            entrant = everywhere(POLICY, {"checkpoint": str(trained(name, int(seed), folder))})
        else:
            changes, entrant = CHANGES.get(part, ()), everywhere(name)
        results = evaluate(_market(*changes), {name: entrant}, MARKETS)
    auc, (rounds, reached) = results.auc()[0], results.rounds_to_target()
    return [
        (*task, at, service, f"{auc[i, m]:.6f}", f"{results.reported[0, i, -1, m]:.6f}", rounds[0, i, m],
         int(reached[0, i, m]))
        for (i, at), (m, service) in product(enumerate(MARKETS), enumerate(results.services))
    ]  # fmt: skip


def buy(task: tuple[str, ...], folder: Path) -> list[tuple[Any, ...]]:
    """Return what an entrant of ``SPLITS`` offered to buy with agents of a training seed, one row for each stretch."""
    name, seed = task
    bought: Bought = {}
    evaluate(_market(), {name: taking_over(name, int(seed), folder, bought)}, MARKETS)
    return [(*task, *stretch, *(f"{value:.6g}" for value in sums)) for stretch, sums in sorted(bought.items())]


def _market(*changes: str) -> Any:
    scenario, shelf = load("paper", [SURROGATE, *changes]), Shelf()
    return lambda at: build_market(scenario, at, build_federation(scenario, at, shelf, workers=0))


def play_all(path: Path, bought: Path, folder: Path, jobs: int) -> None:
    """Play what the files lack, the changes last, as each of them is trained first."""
    seeds = [str(seed) for seed in SEEDS]
    tasks = [
        *((market, name, "") for market, name in product(CHANGES, PLAY_ELSEWHERE)),
        *product([SPLIT], SPLITS, seeds),
        *((ABLATION, name, "") for name in ("random", "dearest")),
        *product([ABLATION], VARIANTS, seeds),
    ]
    fill(bought, BOUGHT, product(map(THROUGHOUT.format, BUYERS), seeds), partial(buy, folder=folder), jobs)
    fill(path, COLUMNS, tasks, partial(play, folder=folder), jobs)


def ablation(frame: pd.DataFrame) -> str:
    """Return what each change reaches, and how far it is from the unchanged agents of the same training seeds."""
    entrants = by_entrant(frame)
    base = entrants[UNCHANGED]
    lines = [
        "| change | trainings | AUC | minus unchanged | final accuracy | rounds to target |",
        "|---|---|---|---|---|---|",
    ]
    for name, rows in sorted(entrants.items(), key=lambda item: -float(item[1].auc.mean())):
        cells = [name, str(rows.training_seed.nunique() or ""), f"{rows.auc.mean():.4f}"]
        own = base[base.training_seed.isin(rows.training_seed)] if rows.training_seed.notna().any() else base
        cells += [""] * len(MEASURES) if name == UNCHANGED else gains(rows, own)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def beside(frame: pd.DataFrame) -> str:
    """Return how far the unchanged agents, and those with later rounds in their target, are from two policies."""
    entrants = by_entrant(frame)
    lines = ["| agents | minus | AUC | final accuracy | rounds to target |", "|---|---|---|---|---|"]
    for name, other in product((UNCHANGED, CREDITED), ("random", "dearest")):
        lines.append(f"| {name} | {other} | {' | '.join(gains(entrants[name], entrants[other]))} |")
    return "\n".join(lines)


def splits(frame: pd.DataFrame) -> str:
    """Return what becomes of a run in which one policy takes over from another, minus `dearest` throughout."""
    entrants = by_entrant(frame)
    base = next(iter(SPLITS))
    lines = ["| who plays | AUC | minus `dearest` | final accuracy | rounds to target |", "|---|---|---|---|---|"]
    for name in SPLITS:
        cells = [""] * len(MEASURES) if name == base else gains(entrants[name], entrants[base])
        lines.append(f"| {name} | {entrants[name].auc.mean():.4f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def purchases(frame: pd.DataFrame) -> str:
    """Return what `dearest` and the unchanged agents offered to buy, stretch by stretch."""
    lines = [
        "| rounds | policy | clients a round | images a round | images of a client | EMD |",
        "|---|---|---|---|---|---|",
    ]
    for (first, last), name in product(STRETCHES, BUYERS):
        rows = frame[(frame.entrant == THROUGHOUT.format(name)) & (frame["first"] == first)]
        rounds, clients, images, emd = rows[["service_rounds", "clients", "images", "emd"]].sum()
        cells = [f"{clients / rounds:.1f}", f"{images / rounds:.0f}", f"{images / clients:.0f}", f"{emd / clients:.2f}"]
        lines.append(f"| {first} to {last} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def elsewhere(frame: pd.DataFrame) -> str:
    """Return how the agent that comes with flmarket does in markets that it was not trained in."""
    *others, own = PLAY_ELSEWHERE
    lines = [f"| market | measure | {' | '.join(f'minus {name}' for name in others)} |", "|---" * 5 + "|"]
    for market in CHANGES:
        entrants = by_entrant(frame[frame.part == market])
        against = zip(*(gains(entrants[own], entrants[name]) for name in others), strict=True)
        for (measure, _), cells in zip(MEASURES, against, strict=True):
            lines.append(f"| {market} | {measure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def pairs(frame: pd.DataFrame) -> str:
    """Return how far readings of the trial are apart, by the training seeds that all of them have."""
    lines = ["| difference | AUC | final accuracy | rounds to target |", "|---|---|---|---|"]
    for label, one, other in PAIRS:
        own, others = (
            frame[(frame.entrant == name) & frame.training_seed.isin(SEEDS_OF_PAIRS)] for name in (one, other)
        )
        lines.append(f"| {label}: *{one}* minus *{other}* | {' | '.join(gains(own, others))} |")
    return "\n".join(lines)


def rules(frames: Mapping[str, pd.DataFrame]) -> str:
    """Return how far all trainings of the primary reading are from policies that are not Algorithm 1."""
    lines = [f"| *{READING}* minus | where | AUC | final accuracy | rounds to target |", "|---|---|---|---|---|"]
    for name, (where, frame) in product(RULES, frames.items()):
        own, other = frame[frame.entrant == READING], frame[frame.entrant == name]
        lines.append(f"| {name} | {where} | {' | '.join(gains(own, other))} |")
    return "\n".join(lines)


def trainings(frame: pd.DataFrame) -> str:
    """Return how far each training of the primary reading is ahead of Random, with an interval over the markets."""
    own, random = frame[frame.entrant == READING], frame[frame.entrant == "random"]
    lines = ["| training seed | AUC minus random | final accuracy | rounds to target |", "|---|---|---|---|"]
    for seed, rows in own.groupby("training_seed"):
        lines.append(f"| {seed:.0f} | {' | '.join(gains(rows, random))} |")
    return "\n".join(lines)


def gains(own: pd.DataFrame, other: pd.DataFrame) -> list[str]:
    """Return how far an entrant is from another in each measure, with its interval."""
    return [told(paired_interval(matrix(own, name), matrix(other, name)), digits) for name, digits in MEASURES]


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
        self._bought[at] = self._bought.get(at, 0.0) + found
        return offer


def taking_over(name: str, seed: int, folder: Path, bought: Bought) -> Entrant:
    """Return an entrant of ``SPLITS`` with the unchanged agents of a training seed; what it buys is added up."""
    *names, start = SPLITS[name]
    own = {"checkpoint": str(trained(UNCHANGED, seed, folder))}
    first, then = (everywhere(policy, own if policy == POLICY else {}) for policy in names)

    def seated(market: Market) -> dict[str, Policy]:
        early, late = first(market), then(market)
        return {service: TakenOver(early[service], late[service], start, bought) for service in early}

    return seated


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
            frame = pd.read_csv(arguments.out)
            changed, split = (frame[frame.part == part] for part in (ABLATION, SPLIT))
            print(f"{ablation(changed)}\n\n{beside(changed)}\n")
            print(f"{purchases(pd.read_csv(arguments.bought))}\n\n{splits(split)}\n\n{elsewhere(frame)}")
        case _:
            read = {where: pd.read_csv(path) for where, path in TRIAL.items()}
            last = {where: frame[frame.chosen.isna() | (frame.chosen == "last")] for where, frame in read.items()}
            frame = last["surrogate"]
            print(f"{rules(last)}\n\n{trainings(frame)}\n\n{pairs(frame)}")


if __name__ == "__main__":
    main()
