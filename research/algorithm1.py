"""The tables of notebook/algorithm1.md: the trial of Algorithm 1, and what its choices are worth.

python research/algorithm1.py trial [--images]    all entrants, the last and the best agents
python research/algorithm1.py readings            differences between readings of the trial
python research/algorithm1.py ablation            one change at a time, takeovers, other markets
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pandas as pd
from experiment import by_entrant, command_line, interval_text, markdown, matrix, plus_minus

from learning.statistics.intervals import holm, paired_interval

RESULTS = Path("research/results")
TRIAL = {"surrogate": RESULTS / "algorithm1-trial.csv", "images": RESULTS / "algorithm1-trial-images.csv"}
ABLATION, BOUGHT = RESULTS / "algorithm1-ablation.csv", RESULTS / "algorithm1-bought.csv"

PRIMARY = "shared centred learned"
"""The reading whose AUC against Random is the one primary comparison."""
MEASURES = {"auc": 4, "final": 4, "rounds": 1}
"""And the digits that they are shown with."""
TITLES = ("AUC", "final accuracy", "rounds to target")
POLICY, UNCHANGED, CREDITED = "mahdrl-paper", "unchanged", "target=advantage"
DEAREST = "`dearest` throughout"
SPLITS = {
    DEAREST: ("dearest", "dearest", 1), "`dearest` from round 21": (POLICY, "dearest", 21),
    "`dearest` from round 41": (POLICY, "dearest", 41), f"`{POLICY}` from round 41": ("dearest", POLICY, 41),
    f"`{POLICY}` from round 21": ("dearest", POLICY, 21), f"`{POLICY}` throughout": (POLICY, POLICY, 1),
}  # fmt: skip
"""Takeovers: who begins, who continues, and from which round."""
STRETCHES = ((1, 10), (11, 20), (21, 40), (41, 80))
SEEDS_OF_PAIRS = range(5)
PAIRS = (
    ("one network for all clients", PRIMARY, "slots centred learned"),
    ("centred rewards", PRIMARY, "shared raw learned"),
    ("both", PRIMARY, "slots raw learned"),
    ("training", PRIMARY, "shared untrained learned"),
    ("learned payments", PRIMARY, "shared centred bids"),
    ("a ranking, not a sub-MDP", "slots centred learned", "serial centred learned"),
    ("the same without learned payments", "slots centred bids", "serial centred bids"),
)
"""Readings of the trial that differ in one thing, or two."""


def main() -> None:
    command = command_line(__doc__)
    command.add_argument("what", choices=["trial", "readings", "ablation"])
    command.add_argument("--images", action="store_true", help="with trial: on images instead of the surrogate")
    arguments = command.parse_args()
    match arguments.what:
        case "trial":
            where = "images" if arguments.images else "surrogate"
            for chosen in ("last", "best"):
                print(f"{chosen} agents, {where}:\n\n{trial(TRIAL[where], chosen)}\n")
        case "readings":
            last = {where: agents(path, "last") for where, path in TRIAL.items()}
            print(f"{rules(last)}\n\n{trainings(last['surrogate'])}\n\n{pairs(last['surrogate'])}")
        case _:
            frame = pd.read_csv(ABLATION)
            changed, split = (by_entrant(frame[frame.part == part]) for part in ("ablation", "split"))
            print(f"{changes(changed)}\n\n{comparisons(changed)}\n")
            print(f"{purchases(pd.read_csv(BOUGHT))}\n\n{takeovers(split)}\n\n{elsewhere(frame)}")


def agents(path: Path, chosen: str) -> pd.DataFrame:
    """Return a trial's rows of policies, and of trainings by one rule of choice."""
    frame = pd.read_csv(path)
    return frame[frame.chosen.isna() | (frame.chosen == chosen)]


def trial(path: Path, chosen: str) -> str:
    """Return the table of one rule of choice: every measure, and what it is above Random."""
    entrants = by_entrant(agents(path, chosen))
    digits = MEASURES | {"reward": 4}
    random = entrants["random"]
    above = {
        name: {it: paired_interval(matrix(rows, it), matrix(random, it)) for it in digits}
        for name, rows in entrants.items()
        if name != "random"
    }
    secondary = [name for name in above if name != PRIMARY]
    adjusted = dict(zip(secondary, holm([above[name]["auc"].p for name in secondary]), strict=True))
    table = []
    for name, rows in sorted(entrants.items(), key=lambda item: -float(item[1].auc.mean())):
        gains = [plus_minus(above[name][it], digits[it]) if name in above else "" for it in digits]
        p = "primary" if name == PRIMARY else f"{adjusted[name]:.1g}" if name in adjusted else ""
        trained = str(rows.training_seed.nunique() or "")
        reached = f"{100 * rows.reached.mean():.0f} %"
        table.append([name, trained, f"{rows.auc.mean():.4f}", gains[0], p, *gains[1:], reached])
    heads = ("entrant", "trainings", "AUC", "minus random", "Holm p", *TITLES[1:], "reward", "reached")
    return markdown(heads, table)


def gains(own: pd.DataFrame, other: pd.DataFrame) -> list[str]:
    """Return how far an entrant is from another in each measure, with its interval."""
    return [
        interval_text(paired_interval(matrix(own, it), matrix(other, it)), digits) for it, digits in MEASURES.items()
    ]


def rules(frames: Mapping[str, pd.DataFrame]) -> str:
    """Return how far all trainings of the primary reading are from policies that are not Algorithm 1."""
    rows = []
    for name, (where, frame) in product(("random", "hqfa", "lcfa", "dearest", "mahdrl"), frames.items()):
        entrants = by_entrant(frame)
        rows.append([name, where, *gains(entrants[PRIMARY], entrants[name])])
    return markdown((f"*{PRIMARY}* minus", "where", *TITLES), rows)


def trainings(frame: pd.DataFrame) -> str:
    """Return how far each training of the primary reading is ahead of Random, with an interval over the markets."""
    entrants = by_entrant(frame)
    rows = [
        [f"{seed:.0f}", *gains(own, entrants["random"])] for seed, own in entrants[PRIMARY].groupby("training_seed")
    ]
    return markdown(("training seed", "AUC minus random", *TITLES[1:]), rows)


def pairs(frame: pd.DataFrame) -> str:
    """Return how far readings of the trial are apart, by the training seeds that all of them have."""
    entrants = by_entrant(frame[frame.training_seed.isin(SEEDS_OF_PAIRS)])
    rows = [
        [f"{label}: *{one}* minus *{other}*", *gains(entrants[one], entrants[other])] for label, one, other in PAIRS
    ]
    return markdown(("difference", *TITLES), rows)


def changes(entrants: Mapping[str, pd.DataFrame]) -> str:
    """Return what each change reaches, and how far it is from the unchanged agents of the same training seeds."""
    base, table = entrants[UNCHANGED], []
    for name, rows in sorted(entrants.items(), key=lambda item: -float(item[1].auc.mean())):
        trained = rows.training_seed.notna().any()
        own = base[base.training_seed.isin(rows.training_seed)] if trained else base
        compared = [""] * len(MEASURES) if name == UNCHANGED else gains(rows, own)
        table.append([name, str(rows.training_seed.nunique() or ""), f"{rows.auc.mean():.4f}", *compared])
    return markdown(("change", "trainings", "AUC", "minus unchanged", *TITLES[1:]), table)


def comparisons(entrants: Mapping[str, pd.DataFrame]) -> str:
    """Return how far the unchanged agents, and those with later rounds in their target, are from two policies."""
    compared = product((UNCHANGED, CREDITED), ("random", "dearest"))
    rows = [[name, other, *gains(entrants[name], entrants[other])] for name, other in compared]
    return markdown(("agents", "minus", *TITLES), rows)


def takeovers(entrants: Mapping[str, pd.DataFrame]) -> str:
    """Return what becomes of a run in which one policy takes over from another, minus `dearest` throughout."""
    rows = []
    for name in SPLITS:
        compared = [""] * len(MEASURES) if name == DEAREST else gains(entrants[name], entrants[DEAREST])
        rows.append([name, f"{entrants[name].auc.mean():.4f}", *compared])
    return markdown(("who plays", "AUC", "minus `dearest`", *TITLES[1:]), rows)


def purchases(frame: pd.DataFrame) -> str:
    """Return what `dearest` and the unchanged agents offered to buy, stretch by stretch."""
    rows = []
    for (first, last), name in product(STRETCHES, ("dearest", POLICY)):
        own = frame[(frame.entrant == f"`{name}` throughout") & (frame["first"] == first)]
        rounds, clients, images, emd = own[["service_rounds", "clients", "images", "emd"]].sum()
        cells = [f"{clients / rounds:.1f}", f"{images / rounds:.0f}", f"{images / clients:.0f}", f"{emd / clients:.2f}"]
        rows.append([f"{first} to {last}", name, *cells])
    return markdown(("rounds", "policy", "clients a round", "images a round", "images of a client", "EMD"), rows)


def elsewhere(frame: pd.DataFrame) -> str:
    """Return how the agent that comes with flmarket does in markets that it was not trained in."""
    others, rows = ("random", "hqfa", "dearest"), []
    for market in frame.part[~frame.part.isin(["ablation", "split"])].unique():
        entrants = by_entrant(frame[frame.part == market])
        against = zip(*(gains(entrants[POLICY], entrants[name]) for name in others), strict=True)
        rows += [[market, it, *cells] for it, cells in zip(MEASURES, against, strict=True)]
    return markdown(("market", "measure", *(f"minus {name}" for name in others)), rows)


if __name__ == "__main__":
    main()
