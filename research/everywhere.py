"""Where does the agent stand in markets that nobody tuned on, and against the rules of display advertising?

python research/everywhere.py --out research/results/everywhere.csv [--print]

The tables of notebook/everywhere.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from everywhere_markets import (
    AMONG,
    DRAWN,
    FEW,
    crowding,
    described,
    found,
    lineups,
    scenario_of,
    seeds_of,
    suite,
    tight,
    trains_fast,
)
from experiment import fill, growing, interval_text, markdown
from lockstep_play import evaluate as in_lockstep

from des.market import Market
from flmarket.benchmark.suite.submission import read_all
from learning.evaluation import EvaluationResults, evaluate
from learning.lockstep.market_kinds import LockstepError
from learning.policy import Policy, agent_digest
from learning.seats import context, seat
from learning.statistics.intervals import mean_interval
from scenarios.build import market_factory
from scenarios.file.schema import Scenario
from scenarios.loader import with_values
from scenarios.suite.frozen import MODES

WITHIN = 0.002
"""The goal is never to be behind by more than this, AUC."""

SUITE = Path("research/results/suite")
COLUMNS = ("market", "mode", "policy", "seed", "auc", "final", "factor")

FOUR = ("hqfa", "dearest", "outbid", "pacing")
RULES = (*FOUR, "resolving", "mirror", "bwk", "random", "fmore", "ucb", "oort", "contribution", "greedy", "lcfa",
         "stackelberg", "worth")  # fmt: skip
"""The unprivileged rules but for those of display advertising; the first four are the references of the suite."""

OPTIONS: Mapping[str, Mapping[str, Any]] = {"": {}, "far": {"payments": "far"}, "at bids": {"payments": "bid"}}
"""What the agent is told, by what stands behind its name."""

TUNED = ("rtb-const", "rtb-rand", "rtb-mcpc", "rtb-lin", "rtb-ortb")
DISPLAY = (*TUNED, "rtb-rlb")
"""The rules of display advertising: those with a level, and the one that learns prices."""

FACTORS, TUNING = (0.75, 1.0, 1.5, 2.0), (1000,)
"""Bids for a client of average utility that rules with a level are tuned among, in half-way costs; each
in each market and mode, with this market seed."""


def tasks() -> list[tuple[str, str, str]]:
    """Return all that is played: market, mode and policy."""
    fresh, blind = ([f"{kind}-{index}" for index in range(count)] for kind, count in (("fresh", 50), ("blind", 30)))
    both = ("mahdrl", "mahdrl far")
    each: list[tuple[Sequence[str], Sequence[str]]] = [(("mahdrl", *RULES, *DISPLAY, "mahdrl at bids"), fresh)]
    each += [(both, found("choice", 10, tight, 0))]
    each += [((*both, *AMONG), markets) for markets in (found("tight", 20, tight), blind)]
    each += [(DISPLAY, list(suite().markets))]
    due = [(market, mode, name) for names, markets in each for name in names for mode in MODES for market in markets]
    trained = found("trained", 10, trains_fast)
    return due + [(it, mode, name) for mode in MODES for it in trained for name in ("mahdrl", *AMONG)]


def level(rule: str, market: Market, service: str, factor: float) -> float:
    """Return the level at which a rule bids so many half-way costs for a client of average utility."""
    data = context(market, service).data
    if rule == "rtb-mcpc":
        return factor * data.middle_cost / max(data.middle_quality, 1e-6)
    if rule == "rtb-ortb":
        usual, bid = 1.5 * data.middle_cost, factor * data.middle_cost
        return bid * (bid + 2 * usual) / usual
    return (2.0 if rule == "rtb-rand" else 1.0) * factor * data.middle_cost


def seated(names: Mapping[str, str], seats: Sequence[str], options: Mapping[str, Any], factor: float | None) -> Any:
    """Return the entrant of a line-up."""

    def take_seats(market: Market) -> Mapping[str, Policy]:
        own = {it: options if factor is None else {"level": level(names[it], market, it, factor)} for it in seats}
        return seat(market, names, own)

    return take_seats


def played(scenario: Scenario, entrants: Mapping[str, Any], seeds: Iterable[int]) -> EvaluationResults:
    """Play entrants in lockstep, or one after another where a market refuses that."""
    make = market_factory(scenario, workers=0)
    try:
        return in_lockstep(make, entrants, seeds)
    except LockstepError:
        return evaluate(make, entrants, seeds)


def play(task: tuple[str, ...], seeds: Sequence[int] | None = None) -> list[tuple[Any, ...]]:
    """Return a line of the CSV for each seed: the AUC and the last accuracy, means over the seats, and the factor.

    Args:
        task: market, mode and policy.
        seeds: the market seeds; if not given, those of the file.
    """
    market, mode, name = task
    policy, _, option = name.partition(" ")
    options = OPTIONS[option]
    scenario, cast = scenario_of(market), lineups(market, mode, policy)
    seeds = seeds or seeds_of(market)
    factor = None
    if policy in TUNED and cast:
        cheap = with_values(scenario, {"training.backend": "surrogate"})
        entrants = {str(one): seated(*cast[0], options, one) for one in FACTORS}
        tuned = played(cheap, entrants, TUNING)
        of = [tuned.services.index(one) for one in cast[0][1]]
        factor = FACTORS[int(tuned.auc()[:, :, of].mean(axis=(1, 2)).argmax())]
    aucs, finals = [], []
    for names, seats in cast:
        results = played(scenario, {name: seated(names, seats, options, factor)}, seeds)
        of = [results.services.index(one) for one in seats]
        aucs.append(results.auc()[0, :, of].mean(axis=0))
        finals.append(results.reported[0, :, -1][:, of].mean(axis=1))
    if not cast:
        return []
    rows = zip(seeds, np.mean(aucs, axis=0), np.mean(finals, axis=0), strict=True)
    return [(*task, seed, f"{auc:.6f}", f"{last:.6f}", factor or "") for seed, auc, last in rows]


# ---- tables


def suite_frame() -> pd.DataFrame:
    """Return the AUC of each run of the suite that is kept, means over the seats: the agent's and the rules'."""
    rows: list[tuple[Any, ...]] = []
    for it in read_all([SUITE], suite()):
        if it.policy in RULES or (it.policy, it.agent) == ("mahdrl", agent_digest("mahdrl", None)):
            rows += [
                (run.market, run.mode, it.policy, run.seed, auc)
                for run, auc in it.results.items()
                if run.seed in seeds_of(run.market)
            ]
    return pd.DataFrame(rows, columns=["market", "mode", "policy", "seed", "auc"])


def means(path: Path) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the mean AUC of each policy in each market, by the kind of markets and the mode."""
    frame = pd.concat([pd.read_csv(path), suite_frame()])
    kind = frame.market.str.partition("-")[0]
    frame["kind"] = kind.where(kind.isin(DRAWN), "suite")
    return {
        (kind, mode): rows.pivot_table("auc", "market", "policy")
        for kind in ("fresh", "suite", "choice", "blind", "tight", "trained")
        for mode in MODES
        if len(rows := frame[(frame.kind == kind) & (frame["mode"] == mode)])
    }


def tables(path: Path) -> str:
    """Return the Markdown tables: leads over the best rule of each market, where the agent is behind, how it does by
    the number of cores, and each rule's distance to it.
    """
    wide, leads, behind = means(path), [], []
    sets = {"the four references": FOUR, f"all {len(RULES)} rules": RULES, "display advertising": DISPLAY,
            f"all {len(RULES + DISPLAY)}": RULES + DISPLAY, "seven rules": AMONG}  # fmt: skip
    for (kind, mode), rows in wide.items():
        for agent in ("mahdrl", "mahdrl far"):
            for name, rules in sets.items():
                if {agent, *rules} <= set(rows) and (rules is not AMONG or kind not in ("fresh", "suite")):
                    leads.append([kind, mode, f"`{agent}`", name, *standing(lead(rows, agent, rules))])
        rules = [name for name in RULES + DISPLAY if name in rows]
        for market, gap in lead(rows, "mahdrl", rules).sort_values().items():
            if gap < -WITHIN:
                cells = (kind, mode, str(market), described(str(market)), f"{gap:+.4f}")
                behind.append([*cells, f"`{rows.loc[market, rules].idxmax()}`"])
    shown = [markdown(("markets", "mode", "agent", "against the best of", *STANDING), leads)]
    shown += [by_cores(wide), against_itself(wide)]
    shown.append(markdown(("markets", "mode", "market", "services x clients x cores", "lead", "best rule"), behind))
    kinds = {key: rows for key, rows in wide.items() if set(AMONG) <= set(rows)}
    gaps = [
        [f"`{it}`", *(ends(rows[it] - rows["mahdrl"]) if it in rows else "" for rows in kinds.values())]
        for it in RULES + DISPLAY
    ]
    shown.append(markdown(("less `mahdrl`, AUC", *(f"{kind}, {mode}" for kind, mode in kinds)), gaps))
    return "\n\n".join(shown)


STANDING = ("mean, AUC", "median", "behind by more than .002", "worst")


def standing(lead: pd.Series) -> list[str]:
    """Return the cells of ``STANDING``. The interval is over markets."""
    count = f"{(lead < -WITHIN).sum()} of {len(lead)}"
    return [ends(lead), f"{lead.median():+.4f}", count, f"{lead.min():+.4f} ({lead.idxmin()})"]


def lead(rows: pd.DataFrame, agent: str, rules: Sequence[str]) -> pd.Series:
    """Return how far an agent is ahead of the best of some rules in each market, AUC."""
    whole = rows[[agent, *rules]].dropna()
    return whole[agent] - whole[list(rules)].max(axis=1)


def ends(values: pd.Series) -> str:
    """Return a mean over markets with its interval."""
    return interval_text(mean_interval(values.dropna().to_numpy()))


def by_cores(wide: Mapping[tuple[str, str], pd.DataFrame]) -> str:
    """Return the table of the lead in fresh markets, by how many cores there are for a service."""
    lines = []
    for name, few in ((f"at most {FEW}", True), ("more", False)):
        for mode in MODES:
            rows = wide["fresh", mode]
            rows = rows[[(crowding(scenario_of(str(market))) <= FEW) == few for market in rows.index]]
            bids = ends(rows["mahdrl at bids"] - rows["mahdrl"])
            lines.append([name, mode, *standing(lead(rows, "mahdrl", RULES + DISPLAY)), bids])
    return markdown(("cores for each service", "mode", *STANDING, "at bids less `mahdrl`"), lines)


def against_itself(wide: Mapping[tuple[str, str], pd.DataFrame]) -> str:
    """Return the table of what ``far`` gains on the agent as it is shipped."""
    gains = {key: (rows["mahdrl far"] - rows["mahdrl"]).dropna() for key, rows in wide.items() if "mahdrl far" in rows}
    return markdown(("`far` less `mahdrl`", "mode", *STANDING), [[*key, *standing(it)] for key, it in gains.items()])


def main() -> None:
    arguments = growing(__doc__).parse_args()
    if not arguments.print:
        fill(arguments.out, COLUMNS, tasks(), play, arguments.jobs)
    print(tables(arguments.out))


if __name__ == "__main__":
    main()
