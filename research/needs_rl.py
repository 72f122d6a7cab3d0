"""Does the market need reinforcement learning? What looking ahead earns, against one-line rules: notebook/needs-rl.md.

python research/needs_rl.py --out research/results/needs-rl.csv        # trains and plays what the file lacks
python research/needs_rl.py --out research/results/needs-rl.csv --print
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import spending
from experiment import SURROGATE, fill, growing, interval_text, markdown, matrix
from mahdrl import Agent

from fl.arithmetic.streams import stream
from fl.arrays import FloatArray
from learning.evaluation import EvaluationResults, evaluate, lineup
from learning.mahdrl.advantages import progress
from learning.statistics.intervals import holm, paired_interval
from scenarios.build import market_factory
from scenarios.file.schema import Scenario
from scenarios.loader import load

STRETCHES = 8
"""Numbers of a plan."""

GENERATION, GENERATIONS, ELITES = 20, 10, 0.25
"""Episodes in a generation, generations, and the part of a generation's plans that the next is drawn around."""

# Each number of a plan is credited with the accuracy of its own stretch of the run alone (myopic), or of all that
# follow, too (ahead): the same learner with gamma = 0 and gamma = 1.
HORIZONS = {"myopic": 1, "ahead": STRETCHES}
MARKET_SEEDS = range(20)


@dataclass(frozen=True)
class Market:
    """A market of the experiment."""

    scenario: str  # a built-in one
    changes: tuple[str, ...]  # what is set in it
    rules: Mapping[str, tuple[str, Mapping[str, Any]]]  # entrants that are not trained: policies with their options
    baseline: str  # the rule that all are compared with
    learned: str | None = None  # what of a plan is learned there: ``parts`` or ``markups``; None if no plan is
    agents: tuple[str, ...] = ()  # trained agents, as ``mahdrl.Agent`` names them
    kept: tuple[str, ...] = ()  # those of them whose runs are taken from ``KEPT``, with their AUC alone
    rival: str | None = None  # what the others play; if given, an entrant plays one seat at a time

    def load(self) -> Scenario:
        """Return the scenario, on the surrogate."""
        return load(self.scenario, [SURROGATE, *self.changes])


TUNED: Mapping[str, Any] = {"parts": None}
"""Options of a plan with a single part, which is tuned on the validation markets."""

PARTS = (0.3, 0.4, 0.5, 0.6, 0.75, 1.0)
VALIDATION = range(900_001, 900_011)
KEPT = Path("research/results/mahdrl-surrogate.csv")
SHIPPED: Mapping[str, tuple[str, Mapping[str, Any]]] = {"mahdrl-single": ("mahdrl-single", {})}


def _plain(*names: str) -> dict[str, tuple[str, Mapping[str, Any]]]:
    return {name: (name, {}) for name in names}


def _totals(total: int) -> tuple[str, ...]:
    return tuple(f"services.{name}.total_budget={total}" for name in ("mnist", "fashion-mnist", "emnist"))


SPENDING = {
    "all at once": ("dearest", {}),
    "one client a round": ("dearest", {"k": 1}),
    "the same part each round": ("spend-plan", TUNED),
    "an even share of what is left": ("spend-even", {}),
    "every n-th round": ("spend-nth", {}),
    "at the end": ("spend-last", {}),
}
ANSWERING = {
    "pays the bid": ("dearest", {}),
    "pays 10 % more": ("spend-plan", {"markups": (0.1,)}),
    "pays 25 % more": ("spend-plan", {"markups": (0.25,)}),
    "pays 50 % more": ("spend-plan", {"markups": (0.5,)}),
    **_plain("pacing", "outbid"),
}

# `mahdrl schedule=false` was played with revision fceba31e, the last one that can train it.
MARKETS = {
    "paper": Market(
        "paper", (), _plain("dearest", "pacing", "hqfa", "random"), "dearest",
        agents=("mahdrl", "mahdrl horizon=1"), kept=("mahdrl",),
    ),
    "money": Market("paper", _totals(400), {**SPENDING, **SHIPPED}, "the same part each round", "parts"),
    "lasting": Market(
        "paper", ("clients.lasting.persistence=0.9", "clients.lasting.drift=0.02"),
        {**_plain("dearest", "pacing", "hqfa", "contribution", "oort", "ucb", "random"), **SHIPPED}, "dearest",
    ),
    "changing": Market("changing", (), SPENDING, "the same part each round"),
    "answering": Market("paper", ("clients.cores=1",), ANSWERING, "pays the bid", "markups", rival="pacing"),
}  # fmt: skip


@dataclass
class Search:
    """The cross-entropy method over the numbers of a plan, each with its own credit.

    Attributes:
        mean, spread: [STRETCHES] of the normal distribution that plans are drawn from, cut to [0, 1].
    """

    mean: FloatArray = field(default_factory=lambda: np.full(STRETCHES, 0.5))
    spread: FloatArray = field(default_factory=lambda: np.full(STRETCHES, 0.3))

    def draw(self, rng: np.random.Generator, number: int) -> FloatArray:
        """Return plans, [number, STRETCHES]."""
        return np.clip(rng.normal(self.mean, self.spread, size=(number, STRETCHES)), 0.0, 1.0)

    def improve(self, plans: FloatArray, credit: FloatArray) -> None:
        """Move towards the best numbers of each stretch; both arguments are [plans, STRETCHES]."""
        kept = max(2, round(ELITES * len(plans)))
        elites = np.take_along_axis(plans, np.argsort(-credit, axis=0)[:kept], axis=0)
        self.mean = 0.3 * self.mean + 0.7 * elites.mean(axis=0)
        self.spread = np.maximum(0.3 * self.spread + 0.7 * elites.std(axis=0), 0.02)


def credit_of(accuracy: FloatArray, horizon: int) -> FloatArray:
    """Return what each stretch of a run is credited with: the mean of -log(1 - accuracy) over it and those that follow.

    Args:
        accuracy: [N] of one service.
        horizon: how many stretches count, its own included.
    """
    y, stretch = progress(accuracy), np.array(spending.stretch_of(len(accuracy), STRETCHES))
    return np.array([y[(stretch >= s) & (stretch < s + horizon)].mean() for s in range(STRETCHES)])


def learn_plan(market: Market, kind: str, seed: int) -> tuple[float, ...]:
    """Learn the numbers of a plan, from ``GENERATION * GENERATIONS`` markets that no table plays."""
    scenario, search = market.load(), Search()
    names = [service.name for service in scenario.services]
    for generation in range(GENERATIONS):
        plans, credit = [], []
        for episode in range(GENERATION):
            at = int(stream(seed, "episode", generation, episode).integers(2**31, 2**62))
            mine = names if market.rival is None else [names[episode % len(names)]]
            drawn = search.draw(stream(seed, "plans", generation, episode), len(mine))
            entries = {
                name: ("spend-plan", {market.learned: row.tolist()}) for name, row in zip(mine, drawn, strict=True)
            }
            results = play(scenario, entries, market.rival, [at])
            plans.append(drawn)
            at_of = results.services.index
            scored = [credit_of(results.accuracy[0, 0, :, at_of(name)], HORIZONS[kind]) for name in mine]
            credit.append((mine, np.array(scored)))
        search.improve(np.concatenate(plans), _centred(credit))
    return tuple(round(float(number), 4) for number in search.mean)


def _centred(credit: Sequence[tuple[Sequence[str], FloatArray]]) -> FloatArray:
    """Return credits less the mean of their service's, so that services can be compared."""
    names = np.concatenate([mine for mine, _ in credit])
    values = np.concatenate([scored for _, scored in credit])
    for name in set(names.tolist()):
        values[names == name] -= values[names == name].mean(axis=0)
    return values


def play(
    scenario: Scenario, entries: Mapping[str, tuple[str, Any]], rival: str | None, seeds: Sequence[int]
) -> EvaluationResults:
    """Play markets in which services have a policy with options each, and the others the rival."""
    names = [service.name for service in scenario.services]
    policies = {name: entries[name][0] if name in entries else str(rival) for name in names}
    options = {name: entries[name][1] if name in entries else {} for name in names}
    return evaluate(market_factory(scenario, workers=0), {"entrant": lineup(policies, options)}, seeds)


def rows(market: Market, policy: str, options: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return (market seed, service, AUC, last accuracy, spent) of every service that plays the policy."""
    scenario, found = market.load(), []
    if options is TUNED:
        options = {"parts": (tuned(market),)}
    names = [service.name for service in scenario.services]
    for seats in [names] if market.rival is None else [[name] for name in names]:
        results = play(scenario, dict.fromkeys(seats, (policy, options)), market.rival, list(MARKET_SEEDS))
        auc, last, spent = results.auc()[0], results.reported[0, :, -1], results.spent[0].sum(axis=1)
        for at, seed in enumerate(MARKET_SEEDS):
            for name in seats:
                m = results.services.index(name)
                found.append((seed, name, f"{auc[at, m]:.6f}", f"{last[at, m]:.6f}", f"{spent[at, m]:.2f}"))
    return found


def tuned(market: Market) -> float:
    """Return the part of the budget with the highest mean AUC on the validation markets."""
    scenario, means = market.load(), {}
    for part in PARTS:
        entries = {service.name: ("spend-plan", {"parts": (part,)}) for service in scenario.services}
        means[part] = float(play(scenario, entries, None, list(VALIDATION)).auc().mean())
    best = max(means, key=lambda part: means[part])
    print(f"{market.scenario}: {best} of {means}", flush=True)
    return best


def kept_rows(entrant: str, seed: int) -> list[tuple[Any, ...]]:
    """Return the runs of a trained agent that another experiment has; what was not kept is empty."""
    frame = pd.read_csv(KEPT)
    frame = frame[(frame.entrant == entrant) & (frame.training_seed == seed) & frame.market_seed.isin(MARKET_SEEDS)]
    return [(row.market_seed, row.service, f"{row.auc:.6f}", "", "") for row in frame.itertuples()]


def tasks(seeds: int) -> list[tuple[str, str, str]]:
    """Return all that is played: market, entrant, and training seed if it is trained."""
    found = []
    for name, market in MARKETS.items():
        plans = [f"plan, {kind}" for kind in HORIZONS if market.learned]
        found += [(name, rule, "") for rule in market.rules]
        found += [(name, entrant, str(seed)) for seed in range(seeds) for entrant in (*market.agents, *plans)]
    return found


def play_task(task: tuple[str, ...], agents: Path) -> list[tuple[Any, ...]]:
    """Return the rows of a task, whose entrant is trained first if it is not there."""
    spending.register()
    name, entrant, seed = task
    market = MARKETS[name]
    if entrant in market.rules:
        found = rows(market, *market.rules[entrant])
    elif entrant in market.kept:
        found = kept_rows(entrant, int(seed))
    elif entrant in market.agents:
        agent = Agent.parse(entrant)
        file = agent.file(agents, market.scenario, int(seed))
        agent.train(market.scenario, int(seed), file)
        found = rows(market, agent.policy, {"checkpoint": str(file)})
    else:
        kind = entrant.partition(", ")[2]
        file = agents / f"{name}-{kind}-seed{seed}.json"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(learn_plan(market, kind, int(seed))) + "\n")
        found = rows(market, "spend-plan", {str(market.learned): json.loads(file.read_text())})
    return [(*task, *row) for row in found]


def tables(path: Path) -> str:
    """Return a Markdown table of each market: AUC and last accuracy, and their differences from the baseline."""
    frame = pd.read_csv(path)
    return "\n\n".join(table(name, frame[frame.market == name]) for name in MARKETS if name in set(frame.market))


def table(name: str, frame: pd.DataFrame) -> str:
    """Return one market's table; † marks what holds at 5 % for the table as a whole (Holm)."""
    base = MARKETS[name].baseline
    measures = {"auc": "AUC"} if frame["last"].isna().any() else {"auc": "AUC", "last": "last round"}
    by = {
        (measure, str(who)): matrix(rows.assign(auc=rows[measure]))
        for measure in measures
        for who, rows in frame.groupby("entrant", sort=False)
    }
    gains = {key: paired_interval(runs, by[key[0], base]) for key, runs in by.items() if key[1] != base}
    adjusted = dict(zip(gains, holm([gain.p for gain in gains.values()]), strict=True))
    header = [name, "training seeds", *(text for shown in measures.values() for text in (shown, f"minus {base}"))]
    shown = []
    for who in sorted(frame.entrant.unique(), key=lambda one: -by["auc", one].mean()):
        trained = frame[frame.entrant == who].training_seed.notna().any()
        cells = [str(who), str(len(by["auc", who])) if trained else ""]
        for measure in measures:
            cells.append(f"{by[measure, who].mean():.4f}")
            key = (measure, str(who))
            cells.append(interval_text(gains[key]) + (" †" if adjusted[key] <= 0.05 else "") if key in gains else "")
        shown.append(cells)
    pairs = [pair for pair in PAIRS if {("auc", one) for one in pair} <= by.keys()]
    table_of_pairs = []
    for first, second in pairs:
        shared = min(len(by["auc", first]), len(by["auc", second]))
        cells = [interval_text(paired_interval(by[m, first][:shared], by[m, second][:shared])) for m in measures]
        table_of_pairs.append([f"{first} minus {second}", str(shared), *cells])
    compared = markdown(("pair", "seeds", *measures.values()), table_of_pairs) if pairs else ""
    return f"{markdown(header, shown)}\n\n{compared}".rstrip()


PAIRS = (
    ("plan, ahead", "plan, myopic"),
    ("mahdrl", "mahdrl horizon=1"),
    ("mahdrl", "mahdrl schedule=false"),
)
"""Learned entrants that differ in one thing."""


def main() -> None:
    parser = growing(__doc__)
    parser.add_argument("--agents", type=Path, default=Path("runs/agents"))
    parser.add_argument("--seeds", type=int, default=5, help="training seeds")
    arguments = parser.parse_args()
    if not arguments.print:
        columns = ["market", "entrant", "training_seed", "market_seed", "service", "auc", "last", "spent"]
        fill(
            arguments.out, columns, tasks(arguments.seeds), partial(play_task, agents=arguments.agents), arguments.jobs
        )
    print(tables(arguments.out))


if __name__ == "__main__":
    main()
