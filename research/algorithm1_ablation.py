"""Plays what Algorithm 1's choices are worth, takeovers in mid-run, and the shipped agent in other markets.

    python research/algorithm1_ablation.py --jobs 2      # two and a half hours of one core

All on the surrogate. What the files have is not played again. `algorithm1.py ablation` prints the tables.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from algorithm1 import ABLATION, BOUGHT, CREDITED, POLICY, SPLITS, STRETCHES, UNCHANGED
from algorithm1_readings import Reading, train_reading
from experiment import SURROGATE, command_line, fill, surrogate_market

from des.market import Market
from des.observation import Observation, Offer
from learning.client_selection.selection import fill_budget
from learning.evaluation import Entrant, evaluate, everywhere
from learning.mahdrl import paper
from learning.policy import Policy
from learning.training.loop import Plan
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.running.run_options import TrainOptions
from scenarios.train import plan_training, run

SERVICES = ("mnist", "fashion-mnist", "emnist")


@dataclass(frozen=True)
class Variant:
    """A change of Algorithm 1."""

    options: Mapping[str, Any]  # hyper-parameters
    scenario: tuple[str, ...] = ()  # changes of the scenario in which it is trained; it is played in the unchanged one
    skips: bool = False  # whether clients that do not fit into the budget are skipped, instead of ending the selection


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

SEEDS, MARKETS = range(3), range(20)
COLUMNS = ("part", "entrant", "training_seed", "market_seed", "service", "auc", "final", "rounds", "reached")
BOUGHT_COLUMNS = ("entrant", "training_seed", "first", "last", "service_rounds", "clients", "images", "emd")
"""Sums over the rounds from the first to the last: each round of each service counts once, `emd` is that of clients."""

BUYERS = ("`dearest` throughout", f"`{POLICY}` throughout")
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
    kept = paper.fill_budget, paper.greedy_set
    if skips:
        paper.fill_budget, paper.greedy_set = _fill_skipping, _greedy_skipping
    try:
        yield
    finally:
        paper.fill_budget, paper.greedy_set = kept


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
            train_reading(Reading("shared", "advantage"), Plan(seed=seed), out, scenario=scenario)
        else:
            planned = plan_training([scenario], TrainOptions(policy=POLICY), variant.options)
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
        if part == "split":
            entrant = taking_over(name, int(seed), folder, {})
        elif seed:
            entrant = everywhere(POLICY, {"checkpoint": str(trained(name, int(seed), folder))})
        else:
            changes, entrant = CHANGES.get(part, ()), everywhere(name)
        results = evaluate(surrogate_market("paper", *changes), {name: entrant}, MARKETS)
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
    evaluate(surrogate_market("paper"), {name: taking_over(name, int(seed), folder, bought)}, MARKETS)
    return [(*task, *stretch, *(f"{value:.6g}" for value in sums)) for stretch, sums in sorted(bought.items())]


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
    parser = command_line(__doc__)
    parser.add_argument("--out", type=Path, default=ABLATION)
    parser.add_argument("--bought", type=Path, default=BOUGHT)
    parser.add_argument("--agents", type=Path, default=Path("runs/algorithm1-ablation"), help="folder of the trainings")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    arguments = parser.parse_args()
    seeds = [str(seed) for seed in SEEDS]
    tasks = [
        *((market, name, "") for market, name in product(CHANGES, PLAY_ELSEWHERE)),
        *product(["split"], SPLITS, seeds),
        *(("ablation", name, "") for name in ("random", "dearest")),
        *product(["ablation"], VARIANTS, seeds),
    ]
    buys, plays = (partial(do, folder=arguments.agents) for do in (buy, play))
    fill(arguments.bought, BOUGHT_COLUMNS, product(BUYERS, seeds), buys, arguments.jobs)
    fill(arguments.out, COLUMNS, tasks, plays, arguments.jobs)


if __name__ == "__main__":
    main()
