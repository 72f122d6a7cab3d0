"""The cost of free riders and of wrong labels under three rules of aggregation, and the pay that free riders get.

    python research/dishonest.py --out research/results/dishonest.csv [--print]

Models are really trained, on the images that come with flmarket. Twenty clients serve two services of three at once;
some of them are free riders, which send back the model that they were given, or have 80 % wrong labels.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from experiment import fill, growing, markdown, plus_minus

import flmarket
from des.mechanism import MECHANISMS as KNOWN
from learning.statistics.intervals import mean_interval, paired_interval
from scenarios.plugin_files import load_plugin

SEEDS = 10
CLIENTS = 20
SERVICES = ("digits", "strokes", "scribbles")
POLICY = "hqfa"
MARKET: Mapping[str, Any] = {"clients.count": CLIENTS, "clients.cores": 2, "rounds": 20} | {
    f"services.{name}.{key}": value
    for name in SERVICES
    for key, value in (("budget", 40.0), ("target_accuracy", 0.999))  # nobody leaves before the end
}
RULES: Mapping[str, Mapping[str, Any]] = {
    "fedavg": {"kind": "fedavg"},
    "median": {"kind": "median"},
    "krum": {"kind": "krum", "options": {"share": 0.4, "keep": 3}},
}
GROUPS: Mapping[str, Mapping[str, Any]] = {"riders": {"free_ride": "old"}, "careless": {"label_noise": 0.8}}
WORDS = {"riders": "free riders", "careless": "with wrong labels"}
SHARES = (20, 40)  # % of the clients
AS_OFFERED = "pay-as-offered"
MECHANISMS = (AS_OFFERED, "pay-for-gain", "audit")
PLUGIN = Path(__file__).parents[1] / "examples/ex_post.py"  # has the last two
COLUMNS = ("rule", "group", "share", "mechanism", "seed", "auc", "last", "paid", "paid_group", "work", "work_group")


def main() -> None:
    arguments = growing(__doc__).parse_args()
    if not arguments.print:
        fill(arguments.out, COLUMNS, tasks(), _play, arguments.jobs)
    print(learned(arguments.out), paid(arguments.out), sep="\n\n")


def tasks() -> list[tuple[str, str, str, str, str]]:
    """Return all runs: rule, who is not honest, which share of the clients that is (%), mechanism, and seed."""
    shares = [("none", "0"), *((group, str(share)) for group in GROUPS for share in SHARES)]
    cells = [(rule, *share, AS_OFFERED) for rule in RULES for share in shares]
    cells += [("fedavg", *share, mechanism) for share in shares[:3] for mechanism in MECHANISMS[1:]]
    return [(*cell, str(seed)) for seed in range(SEEDS) for cell in cells]


def _play(task: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [(*task, *play(*task))]


def play(rule: str, group: str, share: str, mechanism: str, seed: str) -> Iterable[str]:
    """Return what came of a run: mean and last test accuracy, what was paid, and how many updates arrived."""
    groups = [{"name": group, "count": CLIENTS * int(share) // 100, **GROUPS[group]}] if group in GROUPS else []
    changes = {"clients.groups": groups, "training.aggregation": RULES[rule], "market.mechanism": mechanism}
    if mechanism != AS_OFFERED and mechanism not in KNOWN.registered:
        load_plugin(PLUGIN)
    with TemporaryDirectory() as out:
        results = flmarket.run(
            flmarket.load("quickstart", {**MARKET, **changes}), [POLICY], [int(seed)], out=out, progress=False
        )
        rounds, offers = results.rounds, results.offers[results.offers.outcome == "served"]
    last = rounds[rounds["round"] == rounds["round"].max()]
    mine = offers[offers.group == group] if groups else offers[:0]
    yield from (f"{frame.test_accuracy.mean():.6f}" for frame in (rounds, last))
    yield from (f"{frame.paid.sum():.6f}" for frame in (offers, mine))
    yield from (str(len(frame)) for frame in (offers, mine))


# The score is the mean test accuracy over all rounds and services of a run; runs of one seed meet the same data, so
# differences are paired by seed.
def learned(path: Path) -> str:
    """Return the Markdown table of what models learn: honest clients, and the difference that others make."""
    runs = results(path)
    runs = runs[runs.mechanism == AS_OFFERED]
    rows = []
    for rule in RULES:
        auc = runs[runs.rule == rule].pivot_table("auc", "seed", ["group", "share"])
        honest = auc["none", 0].to_numpy()
        others = [(group, share) for group in GROUPS for share in SHARES]
        gains = [plus_minus(paired_interval(auc[other].to_numpy(), honest), 3) for other in others]
        rows.append([f"`{rule}`", plus_minus(mean_interval(honest), 3).removeprefix("+"), *gains])
    heads = [f"{share} % {WORDS[group]}" for group in GROUPS for share in SHARES]
    return markdown(("rule", "all honest", *heads), rows)


def paid(path: Path) -> str:
    """Return the Markdown table of what mechanisms pay, in all and to free riders, and of what models learn."""
    runs = results(path)
    runs = runs[(runs.rule == "fedavg") & runs.group.isin(["none", "riders"])]
    rows = []
    for share in (0, *SHARES):
        for mechanism in MECHANISMS:
            mine = runs[(runs.share == share) & (runs.mechanism == mechanism)]
            pay = [(mine.paid, 0), (mine.paid_group, 0), (100 * mine.paid_group / mine.paid, 1)]
            cells = [*pay, (mine.auc, 3), (mine["last"], 3)]
            found = [plus_minus(mean_interval(values.to_numpy()), digits).removeprefix("+") for values, digits in cells]
            if not share:
                found[1:3] = "", ""
            rows.append([f"{share} %", f"`{mechanism}`", *found])
    return markdown(
        ("free riders", "mechanism", "paid in all", "to free riders", "that is, %", "accuracy", "last"), rows
    )


def results(path: Path) -> pd.DataFrame:
    """Return the runs of the seeds of which all are there."""
    runs = pd.read_csv(path)
    return runs[runs.groupby("seed").rule.transform("size") == len(tasks()) // SEEDS]


if __name__ == "__main__":
    main()
