"""Trains MAHDRL's agents, and plays them and heuristics in the same worlds on the surrogate: notebook/mahdrl.md.

python research/mahdrl.py play paper --seeds 5 --markets 20 --out research/results/mahdrl-surrogate.csv
python research/mahdrl.py table research/results/mahdrl-trainings.csv --by-service
"""

import argparse
import csv
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from experiment import SURROGATE, by_entrant, command_line, interval_text, markdown, matrix

from flmarket.core.installation import command
from learning.evaluation import evaluate, lineup
from learning.statistics.intervals import paired_interval
from scenarios.build import market_factory
from scenarios.file.schema import Scenario
from scenarios.loader import load

HEURISTICS = ("random", "lcfa", "hqfa", "greedy", "ucb", "oort", "pacing", "dearest", "d-first", "oracle")

AGENT = "mahdrl"
"""The entrant with which the others are compared."""

MEASURES = {
    "auc": ("AUC", 4),
    "final": ("accuracy after the last round", 4),
    "rounds_to_target": ("rounds to target", 1),
}
"""Their titles, and the digits that they are shown with."""


@dataclass(frozen=True)
class Agent:
    """An agent, as its name describes it: ``POLICY OPTION=VALUE ... | OPTION=VALUE ...``."""

    policy: str
    trained: tuple[str, ...]  # hyper-parameters of the training
    played: Mapping[str, Any]  # options of the policy when it plays

    @classmethod
    def parse(cls, name: str) -> "Agent":
        before, _, after = name.partition("|")
        policy, *options = before.split()
        return cls(policy, tuple(options), dict(option.split("=") for option in after.split()))

    def file(self, folder: Path, scenario: str, seed: int) -> Path:
        return folder / f"{'-'.join((scenario, self.policy, *self.trained))}-seed{seed}.safetensors"

    def train(self, scenario: str, seed: int, out: Path, *manner: str) -> None:
        """Train it on the surrogate with ``flmarket train``, if its file is not there."""
        if not out.exists():
            options = [word for option in self.trained for word in ("--option", option)]
            backend = ("--backend", "surrogate", "--evaluate-every", "50", "--seed", str(seed), "--out", str(out))
            train = command(
                "flmarket.cli.main", "train", scenario, "--policy", self.policy, *backend, *options, *manner
            )
            subprocess.run([*train, "--resume", "--quiet"], check=True)


def main() -> None:
    parser = command_line(__doc__)
    parts = parser.add_subparsers(required=True)
    shown = parts.add_parser("table", help="print the tables of a file")
    shown.set_defaults(do=print_tables)
    shown.add_argument("results", type=Path)
    shown.add_argument("--by-service", action="store_true", help="also print a table for each service")
    played = parts.add_parser("play", help="train and play")
    played.set_defaults(do=play_all)
    played.add_argument("scenario")
    played.add_argument("--out", type=Path, required=True)
    played.add_argument("--agents", type=Path, default=Path("runs/agents"))
    played.add_argument("--agents-of", nargs="*", default=["mahdrl", "mahdrl-paper"], help="agents to train")
    played.add_argument("--heuristics", nargs="*", default=list(HEURISTICS))
    played.add_argument(
        "--trained", nargs="*", type=Path, default=[], help="agents that are there already, by training seed from 0"
    )
    played.add_argument("--seeds", type=int, default=5, help="number of training seeds (default: 5)")
    played.add_argument("--markets", type=int, default=10, help="number of market seeds (default: 10)")
    played.add_argument("--rotate", action="store_true", help="services take turns to learn; play in every seat")
    played.add_argument("--rivals", nargs="*", default=[], help="policies of the others; the first when it is played")
    played.add_argument("--played-on", nargs="*", default=[], help="KEY=VALUE in the scenario that is played")
    arguments = parser.parse_args()
    arguments.do(arguments)


def play_all(arguments: argparse.Namespace) -> None:
    """Train what is not there, play all entrants, and write their rows."""
    if arguments.trained and AGENT in arguments.agents_of:
        raise SystemExit("--trained agents play as mahdrl; leave mahdrl out of --agents-of")
    scenario = load(arguments.scenario, [SURROGATE, *arguments.played_on])
    manner = ["--rotate"] * arguments.rotate + [word for rival in arguments.rivals for word in ("--rivals", rival)]
    entrants: list[tuple[str, Any, str, dict[str, Any]]] = [(name, "", name, {}) for name in arguments.heuristics]
    entrants += [(AGENT, seed, AGENT, {"checkpoint": str(file)}) for seed, file in enumerate(arguments.trained)]
    for name in arguments.agents_of:
        agent = Agent.parse(name)
        for seed in range(arguments.seeds):
            out = agent.file(arguments.agents, arguments.scenario, seed)
            agent.train(arguments.scenario, seed, out, *manner)
            entrants.append((name, seed, agent.policy, {"checkpoint": str(out), **agent.played}))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["entrant", "training_seed", "market_seed", "service", *MEASURES, "reached"])
        for name, seed, policy, options in entrants:
            rival = arguments.rivals[0] if arguments.rivals else "random"
            rows = play(scenario, policy, options, range(arguments.markets), rival if arguments.rotate else None)
            writer.writerows((name, seed, *row) for row in rows)
            file.flush()
    print(summary(pd.read_csv(arguments.out)))


def play(
    scenario: Scenario, policy: str, options: Mapping[str, Any], seeds: Sequence[int], rival: str | None = None
) -> list[tuple[Any, ...]]:
    """Return (market seed, service, measures, reached) of all services that play a policy: all, or one among rivals."""
    services = [service.name for service in scenario.services]
    rows: list[tuple[Any, ...]] = []
    for seats in [services] if rival is None else [[name] for name in services]:
        policies = {name: policy if name in seats else str(rival) for name in services}
        entrant = lineup(policies, dict.fromkeys(seats, options))
        results = evaluate(market_factory(scenario, workers=1), {policy: entrant}, seeds)
        auc, (rounds, reached) = results.auc()[0], results.rounds_to_target()
        for at, seed in enumerate(seeds):
            for name in seats:
                m = results.services.index(name)
                final = results.reported[0, at, -1, m]
                rows.append((seed, name, f"{auc[at, m]:.6f}", f"{final:.6f}", rounds[0, at, m], int(reached[0, at, m])))
    return rows


def print_tables(arguments: argparse.Namespace) -> None:
    """Print the table of a file, and those of its services."""
    frame = pd.read_csv(arguments.results)
    print(summary(frame))
    if arguments.by_service:
        for service, rows in frame.groupby("service", sort=False):
            print(summary(rows, f"policy, {service}"))


def summary(frame: pd.DataFrame, title: str = "policy") -> str:
    """Return a table of what each entrant reaches, and of `mahdrl` minus it in all measures that the file has."""
    entrants, table = by_entrant(frame), []
    measures = [measure for measure in MEASURES if measure in frame]
    for name, rows in sorted(entrants.items(), key=lambda item: -float(item[1].auc.mean())):
        values = matrix(rows)
        worst = f"{values.mean(axis=1).min():.4f} of {len(values)}" if len(values) > 1 else ""
        gains = [_minus(entrants, name, measure) for measure in measures]
        table.append([name.replace("|", "\\|"), f"{values.mean():.4f}", worst, *gains])
    heads = (title, "AUC", "worst training seed", *(f"minus, {MEASURES[measure][0]}" for measure in measures))
    return markdown(heads, table) + "\n"


# Differences are paired: an agent and a policy play the same markets (with --rotate in the same seat). Both kinds of
# seeds are random; with fewer than three of either there is no interval.
def _minus(entrants: Mapping[str, pd.DataFrame], name: str, measure: str) -> str:
    """Return `mahdrl` minus an entrant, with its interval; nothing where they cannot be paired."""
    if AGENT not in entrants or name == AGENT:
        return ""
    own, other = matrix(entrants[AGENT], measure), matrix(entrants[name], measure)
    if len(other) not in (1, len(own)):
        return ""
    return interval_text(paired_interval(own, other), MEASURES[measure][1])


if __name__ == "__main__":
    main()
