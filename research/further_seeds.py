"""Plays policies in the suite's markets with ten further market seeds, which no table of the suite shows.

    python research/further_seeds.py --out further --jobs 2 --policies resolving

Prints the leaderboard, and the markets in which `mahdrl` is further behind the best reference than was asked of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from experiment import command_line

from flmarket.benchmark.suite.board import leaderboard
from flmarket.benchmark.suite.scoring import SuiteStanding, standings
from flmarket.benchmark.suite.submission import continued, entry, keep, play, read_all
from flmarket.core.text_table import TextTable
from scenarios.suite.frozen import FLOOR, MODES, PRIVILEGED, RESIDENT, Suite
from scenarios.suite.frozen import read as frozen

SEEDS = tuple(range(7201, 7211))
METHOD = "mahdrl"
WITHIN, EACH_WITHIN = 0.002, 0.004


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the submissions")
    parser.add_argument("--policies", nargs="*", default=[], help="besides the references")
    parser.add_argument("--trained", nargs="*", type=Path, default=[], help=f"agents of {METHOD}")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--print", action="store_true", help="play nothing")
    arguments = parser.parse_args()
    suite = further(frozen())
    if not arguments.print:
        for policy in (*references(suite), *arguments.policies):
            fill(policy, policy, suite, arguments.out, arguments.jobs)
        for agent in arguments.trained:
            fill(f"{METHOD}:{agent}", f"{METHOD}@{agent.stem}", suite, arguments.out, arguments.jobs)
    print(tables(suite, arguments.out))


def further(suite: Suite, seeds: tuple[int, ...] = SEEDS) -> Suite:
    """Return the suite with other market seeds, for which it has no references yet."""
    return replace(suite, seeds=seeds, references={})


def references(suite: Suite) -> tuple[str, ...]:
    """Return the policies that others are measured by."""
    return (FLOOR, *PRIVILEGED, *suite.rivals)


def fill(policy: str, name: str, suite: Suite, folder: Path, jobs: int) -> None:
    """Play what a submission, ``folder/name.json``, lacks. Agents are trainings of one method."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    begun = continued(path, entry(policy, suite, name.partition("@")[0]), suite)
    play(policy, suite, begun=begun, jobs=jobs, keep=lambda so_far: keep(path, so_far, suite))


def standings_of(suite: Suite, folder: Path) -> list[SuiteStanding]:
    """Return what the submissions of a folder reached, measured by the references among them."""
    found = read_all([folder], suite)
    played = {it.policy: it.results for it in found if it.agent is None}
    measured = {cell: {policy: played[policy][cell] for policy in references(suite)} for cell in suite.cells()}
    return standings(found, replace(suite, references=measured))


def tables(suite: Suite, folder: Path) -> str:
    """Return the leaderboard, and where the method falls short, as Markdown."""
    found = standings_of(suite, folder)
    short = [behind(it).markdown() for it in found if it.method == METHOD]
    return "\n\n".join([leaderboard(found).markdown(), *short])


# .002 AUC as a resident, and .004 for each training.
def behind(standing: SuiteStanding) -> TextTable:
    """Return the markets in which a method is further behind than it may be, and its means over all markets."""
    trainings = [f"training {place}" for place in range(standing.trainings)]
    rows = []
    for it in standing.chosen(RESIDENT):
        each = it.differences.mean(axis=1)
        if each.mean() < -WITHIN or each.min() < -EACH_WITHIN:
            rows.append([it.market.name, it.mode, *_signed([each.mean(), *each])])
    for mode in MODES:
        if chosen := standing.chosen(mode):
            each = np.mean([it.differences.mean(axis=1) for it in chosen], axis=0)
            rows.append(["mean of all markets", mode, *_signed([each.mean(), *each])])
    return TextTable("Behind", ["market", "mode", "AUC - best rival", *trainings], rows)


def _signed(values: Iterable[float]) -> Sequence[str]:
    return [f"{value:+.4f}" for value in values]


if __name__ == "__main__":
    main()
