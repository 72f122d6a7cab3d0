"""Plays the field's methods in five markets on the surrogate, and prints research/notebook/field.md's tables.

    python research/field.py --out research/results/field.csv [--print]

An interrupted benchmark resumes: a method is written when all its seeds are played.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from experiment import fill, gain, growing, markdown, plus_minus, starred, surrogate_market

from learning.evaluation import evaluate, lineup

BASELINE = "hqfa"
SEEDS = 20

MARKETS = {
    "paper": ("paper", ()),
    "scarce": ("scarce", ()),
    "adaptive": ("paper-fitted", ("clients.behaviour.kind=adaptive",)),
    "rich": ("paper-fitted", tuple(f"services.{name}.budget=60" for name in ("mnist", "fashion-mnist", "emnist"))),
    "big": ("scarce", ("clients.count=100", "rounds=40")),
}
"""Markets: a built-in scenario, and what is set in it."""

TOO_SLOW = {("big", "mahdrl-single"), ("scarce", "mahdrl-single")}
"""Not played: eight agents that plan take most of the benchmark's time, and this one is not made for these markets."""


@dataclass(frozen=True)
class Method:
    """A method of the table.

    Attributes:
        policy: the policy that plays.
        options: its options.
        mechanism: how rounds are cleared, if not by the scenario's mechanism.
    """

    policy: str
    options: tuple[tuple[str, Any], ...] = ()
    mechanism: str | None = None


METHODS = {
    "d-first": Method("d-first"),
    "dearest": Method("dearest"),
    "dearest, k = 3": Method("dearest", (("k", 3),)),
    "pacing": Method("pacing"),
    "mahdrl": Method("mahdrl"),
    "mahdrl, curve = false": Method("mahdrl", (("curve", False),)),
    "mahdrl-single": Method("mahdrl-single"),
    "resolving": Method("resolving"),
    "mirror": Method("mirror"),
    "bwk": Method("bwk"),
    "outbid": Method("outbid"),
    "hqfa": Method("hqfa"),
    "hqfa under fair-queue": Method("hqfa", mechanism="fair-queue"),
    "oort": Method("oort"),
    "ucb": Method("ucb"),
    "random": Method("random"),
    "contribution": Method("contribution"),
    "fmore": Method("fmore"),
    "fmore, weight = 4": Method("fmore", (("weight", 4.0),)),
    "fmore, second-score": Method("fmore", (("payment", "second-score"),)),
    "stackelberg": Method("stackelberg"),
    "lcfa": Method("lcfa"),
}


def main() -> None:
    arguments = growing(__doc__).parse_args()
    if not arguments.print:
        columns = ["market", "mode", "method", "seed", "auc", "served", "spent"]
        fill(arguments.out, columns, tasks(), _play, arguments.jobs)
    print(tables(arguments.out))


def tasks() -> list[tuple[str, str, str]]:
    """Return all that is played: market, mode and method."""
    return [
        (market, mode, name)
        for mode in ("resident", "visitor")
        for market in MARKETS
        for name, method in METHODS.items()
        if (market, name) not in TOO_SLOW and not (mode == "visitor" and method.mechanism)
    ]


def _play(task: tuple[str, str, str]) -> list[tuple[Any, ...]]:
    return list(play(*task, range(SEEDS)))


# `resident`: all services play the method; the score is the AUC (mean accuracy over the rounds), averaged over the
# services. `visitor`: one service plays it, and the others `hqfa` and `lcfa` by turns; the score is that service's AUC.
# The seat moves by one with each seed. All methods meet the same worlds, so differences from `hqfa` are paired by seed.
def play(market: str, mode: str, name: str, seeds: Iterable[int]) -> Iterable[tuple[Any, ...]]:
    """Yield a line of the CSV for each seed: AUC, share of the offers that were served, and money spent a round."""
    base, changes = MARKETS[market]
    method = METHODS[name]
    cleared = (f"market.mechanism={method.mechanism}",) if method.mechanism else ()
    make = surrogate_market(base, *changes, *cleared)
    services = [spec.name for spec in make(0).services]
    for seed in seeds:
        seat = seed % len(services)
        if mode == "resident":
            policies, counted = dict.fromkeys(services, method.policy), slice(None)
        else:
            policies, counted = {s: ("hqfa", "lcfa")[m % 2] for m, s in enumerate(services)}, slice(seat, seat + 1)
            policies[services[seat]] = method.policy
        options = {s: dict(method.options) for m, s in enumerate(services) if mode == "resident" or m == seat}
        results = evaluate(make, {name: lineup(policies, options)}, [seed])
        auc = results.auc()[0, 0, counted].mean()
        served, wanted = results.served[0, 0, :, counted].sum(), results.wanted[0, 0, :, counted].sum()
        spent = results.spent[0, 0, :, counted].mean()
        yield market, mode, name, seed, f"{auc:.6f}", f"{served / max(1, wanted):.4f}", f"{spent:.4f}"


def tables(path: Path) -> str:
    """Return the Markdown tables of a file: a method's mean AUC, and what it gains on the baseline, in each market."""
    frame = pd.read_csv(path)
    shown = []
    for mode in ("resident", "visitor"):
        rows = frame[frame["mode"] == mode]
        if not len(rows):
            continue
        wide = rows.pivot_table("auc", ["market", "seed"], "method")
        markets = [market for market in MARKETS if market in set(rows.market)]
        table = [
            [starred(name, method.policy), *(cell(wide.loc[market], name) for market in markets)]
            for name, method in METHODS.items()
            if name in wide
        ]
        shown.append(markdown((mode, *markets), table))
    return "\n\n".join(shown)


def cell(runs: pd.DataFrame, name: str) -> str:
    """Return a mean, and the mean paired difference from the baseline with its 95 % t interval."""
    if runs[name].isna().any():
        return ""
    mean = f"{runs[name].mean():.4f}"
    return mean if name == BASELINE else f"{mean}, {plus_minus(gain(runs, name, BASELINE))}"


if __name__ == "__main__":
    main()
