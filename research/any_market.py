"""Policies compared in a market that is changed in one way at a time, on the surrogate: notebook/any-market.md.

python research/any_market.py --out research/results/any-market.csv [--print]
python research/any_market.py --out validation.csv --drawn 20 --agents a.safetensors b.safetensors
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from experiment import SURROGATE, fill, gain, growing, interval_text, markdown, plus_minus, starred

from learning.evaluation import evaluate, lineup
from learning.statistics.intervals import mean_interval
from scenarios.build import market_factory
from scenarios.file.schema import Scenario
from scenarios.loader import load
from scenarios.random_markets import draw

SEEDS, ROUNDS = 10, 40

UNTOLD = " untold"
"""The end of the name of an agent that sees no learning curve."""

DRAWN_SEED, FEW = 999, 3
"""The seed of the markets that ``--drawn`` plays, and their number of market seeds."""


@dataclass(frozen=True)
class Point:
    """A market.

    Attributes:
        services: M.
        cores: K.
        budget: of each service.
        dqi: the parameters of the DQI.
        changes: what else is set.
    """

    services: int = 6
    cores: int = 1
    budget: float = 20.0
    dqi: str = "fitted"
    changes: tuple[str, ...] = ()

    def scenario(self) -> Scenario:
        """Return the market as a scenario."""
        base = load("paper-fitted", [SURROGATE, f"rounds={ROUNDS}", *self.changes])
        found = []
        for index in range(self.services):
            service = base.services[index % len(base.services)]
            found.append(service.model_copy(update={"name": f"{service.name}-{index}", "budget": self.budget}))
        clients = base.clients.model_copy(update={"cores": self.cores})
        return base.model_copy(update={"dqi": self.dqi, "clients": clients, "services": tuple(found)})


@dataclass(frozen=True)
class Drawn:
    """A market drawn at random, to choose between trainings; none was trained in it."""

    index: int

    def scenario(self) -> Scenario:
        """Return the market as a scenario."""
        return draw(DRAWN_SEED, self.index)


POINTS: Mapping[str, Point] = {
    "paper": Point(3, 2, dqi="published"),
    "paper-fitted": Point(3, 2),
    "3 services": Point(3),
    "6 services": Point(),
    "9 services": Point(9),
    "12 services": Point(12),
    "K = 2": Point(cores=2),
    "K = 3": Point(cores=3),
    "budget 5": Point(budget=5.0),
    "budget 10": Point(budget=10.0),
    "budget 40": Point(budget=40.0),
    "published DQI": Point(dqi="published"),
    "noisy costs, own bids": Point(changes=("clients.cost.noise=0.5", "market.bids=own")),
}
"""Markets by name. A name that says one thing is the base market, `6 services`, with that changed."""


@dataclass(frozen=True)
class Player:
    """A policy with its options."""

    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)


PLAYERS: Mapping[str, Player] = {
    "mahdrl": Player("mahdrl"),
    "mahdrl at bids": Player("mahdrl", {"payments": "bid"}),
    f"mahdrl{UNTOLD}": Player("mahdrl", {"curve": False}),
    "mahdrl-single": Player("mahdrl-single"),
    "hqfa": Player("hqfa"),
    "dearest": Player("dearest"),
    "outbid": Player("outbid"),
    "pacing": Player("pacing"),
    "random": Player("random"),
    "lcfa": Player("lcfa"),
    "d-first": Player("d-first"),
    "oracle": Player("oracle"),
}
# `resident`: all services play the policy; the score is the AUC (mean accuracy over the rounds), averaged over
# services. `visitor`: the first service plays it, and all others `hqfa`; the score is that service's AUC. All policies
# meet the same worlds under the same market seeds, so differences are paired. One line of the CSV is one run.
RIVALS = ("hqfa", "dearest", "outbid", "pacing", "random", "lcfa")
"""Candidates for the best unprivileged rival of the learned agents, chosen in each market by its mean."""


GAINS = ("best rival", "`mahdrl` - it", "the same, last round", "`mahdrl` - `random`", "`mahdrl` - itself at bids")


def main() -> None:
    parser = growing(__doc__)
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help="play drawn markets instead")
    parser.add_argument("--agents", nargs="*", default=(), help="with --drawn: trained agents, besides the shipped one")
    parser.add_argument("--untold", action="store_true", help="also play them without telling them any learning curve")
    arguments = parser.parse_args()
    agents = [f"mahdrl:{agent}" for agent in arguments.agents]
    if arguments.untold:
        agents += [f"{agent}{UNTOLD}" for agent in agents]
    if arguments.drawn:
        names = ["mahdrl-single", *RIVALS, *agents]
        tasks = [(f"drawn {index}", "resident", name) for name in names for index in range(arguments.drawn)]
    else:
        tasks = [(market, mode, name) for mode in ("resident", "visitor") for market in POINTS for name in PLAYERS]
        tasks = [it for it in tasks if it[1:] != ("resident", "oracle")]  # it would see no rival's offers
    if not arguments.print:
        columns = ["market", "mode", "policy", "seed", "auc", "served", "spent"]
        columns += [] if arguments.drawn else ["final"]  # nothing is chosen by the last round
        fill(arguments.out, columns, tasks, play, arguments.jobs)
    print(validation(arguments.out, ["mahdrl-single", *agents]) if arguments.drawn else tables(arguments.out))


def play(task: tuple[str, ...], seeds: Sequence[int] | None = None) -> Iterable[tuple[Any, ...]]:
    """Return a line of the CSV for each seed: AUC, clients that served a round, money spent a round, last accuracy.

    Lines of drawn markets are without the last accuracy.

    Args:
        task: market, mode and policy.
        seeds: the market seeds; if not given, those of the file.
    """
    market, mode, name = task
    policy, _, checkpoint = name.removesuffix(UNTOLD).partition(":")
    options = {"checkpoint": checkpoint} | ({"curve": False} if name.endswith(UNTOLD) else {})
    player = Player(policy, options) if checkpoint else PLAYERS[name]
    drawn = market.removeprefix("drawn ")
    scenario = (POINTS[market] if drawn == market else Drawn(int(drawn))).scenario()
    services = [service.name for service in scenario.services]
    seats = services if mode == "resident" else services[:1]
    policies = {service: player.policy if service in seats else "hqfa" for service in services}
    seeds = seeds or range(SEEDS if drawn == market else FEW)
    results = evaluate(
        market_factory(scenario, workers=0),
        {name: lineup(policies, dict.fromkeys(seats, player.options))},
        seeds,
    )
    counted = len(seats)
    auc = results.auc()[0, :, :counted].mean(axis=1)
    served = results.served[0, :, :, :counted].mean(axis=(1, 2))
    spent = results.spent[0, :, :, :counted].mean(axis=(1, 2))
    final = results.reported[0, :, -1, :counted].mean(axis=1)
    rows = zip(seeds, auc, served, spent, final, strict=True)
    lines = [(*task, seed, f"{a:.6f}", f"{n:.4f}", f"{money:.4f}", f"{last:.6f}") for seed, a, n, money, last in rows]
    return lines if drawn == market else [line[:-1] for line in lines]


def validation(path: Path, agents: Sequence[str]) -> str:
    """Return, for each trained agent, how far it is from the best rival of each drawn market: means over the markets.

    Markets are what varies here: the interval is over markets, of means over their seeds.
    """
    wide = pd.read_csv(path).pivot_table("auc", "market", "policy").dropna()
    best, rows = wide[list(RIVALS)].max(axis=1), []
    for name in ["random", "hqfa", *agents]:
        gap = wide[name] - best
        worst = f"{gap.min():+.4f} ({gap.idxmin()})"
        rows.append([name, interval_text(mean_interval(gap.to_numpy())), worst, str((gap < -0.002).sum())])
    heads = ("agent", f"AUC - that of the best rival (n = {len(wide)} markets)", "worst", "behind by more than .002")
    return markdown(heads, rows)


def tables(path: Path) -> str:
    """Return the Markdown tables of a file: the mean AUC of each policy, and what `mahdrl` gains on others."""
    frame = pd.read_csv(path)
    shown = []
    for mode in ("resident", "visitor"):
        wide, last = (
            frame[frame["mode"] == mode].pivot_table(value, ["market", "seed"], "policy") for value in ("auc", "final")
        )
        if not len(wide):
            continue
        names = [name for name in PLAYERS if name in wide]
        means, gains = [], []
        for market in POINTS:
            if market not in wide.index.get_level_values(0) or wide.loc[market][names].isna().any(axis=None):
                continue
            found = wide.loc[market]
            means.append([market, *(f"{found[name].mean():.4f}" for name in names)])
            best = max(RIVALS, key=lambda name: found[name].mean())
            compared = [(found, best), (last.loc[market], best), (found, "random"), (found, "mahdrl at bids")]
            gains.append([market, f"`{best}`", *(plus_minus(gain(runs, "mahdrl", other)) for runs, other in compared)])
        heads = [mode, *(starred(name, PLAYERS[name].policy) for name in names)]
        shown.append(markdown(heads, means))
        shown.append(markdown((mode, *GAINS), gains))
    return "\n\n".join(shown)


if __name__ == "__main__":
    main()
