r"""A fair trial for Algorithm 1: both readings of serial selection, searched alike, the best checkpoint by validation.

    python benchmarks/algorithm1.py search --out docs/results/algorithm1-search.csv
    python benchmarks/algorithm1.py final --search docs/results/algorithm1-search.csv --out docs/results/algorithm1.csv
    python benchmarks/algorithm1.py table --out docs/results/algorithm1.csv

`search` trains every configuration of noise and learning rates for a few episodes on training markets and rates it by
its best evaluation on the validation markets. `final` trains the best configuration of each reading for as long as
`mahdrl`, with fresh training seeds, keeps the checkpoint that is the best on the validation markets, and plays it in
markets that neither has seen. Both append to their file and skip what it holds, so that an interrupted benchmark
continues. `table` prints what is on the page.
"""

import argparse
import csv
import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mahdrl_table import matrix

from fl.streams import stream
from learning.evaluation import evaluate as play
from learning.evaluation import everywhere
from learning.intervals import holm, paired_interval
from learning.mahdrl.plan import Plan
from learning.mahdrl.training import Learner
from learning.mahdrl.training import train as train_agent
from learning.mahdrl.training_log import Row
from scenarios.build import Shelf, build_federation, build_market
from scenarios.file.schema import Scenario
from scenarios.hyper_parameters import parse_options
from scenarios.loader import load
from scenarios.train import new_learner
from scenarios.training import Training, open_table

READINGS = ("ranking", "serial")
GRID: Mapping[str, tuple[Any, ...]] = {
    "noise": (0.02, 0.05, 0.1, 0.2),
    "fading": (False, True),
    "actor_rate": (1e-5, 1e-4, 1e-3),
    "critic_rate": (3e-4, 1e-3, 3e-3),
}
"""What is searched; the paper prints all else. The defaults of `mahdrl-paper` are the first configuration."""

VALIDATION = (900_001, 900_002, 900_003, 900_004)
"""Market seeds by which configurations and checkpoints are chosen; no training and no final market has them."""

SEARCH_SEED = 100
"""The training seed of the search; the final trainings have others."""

EVERY = 10
"""Episodes between two evaluations, of which the best is kept."""

HEURISTICS = ("random", "lcfa", "hqfa", "dearest")
SHIPPED = "mahdrl-paper, shipped"
TARGETS = {"mnist": 40, "emnist": 40, "fashion-mnist": 70}
"""The rounds around which Fig. 2a of the paper converges."""


PAIRS = (
    ("serial", "ranking"),
    ("ranking", "ranking untrained"),
    ("serial", "serial untrained"),
    ("ranking", "ranking discount=0"),
    ("ranking network=passes", "ranking"),
)
"""Entrants that differ in one thing."""


class KeepsBest:
    """A learner whose trained agent is the one of its best evaluation, not of its last episode."""

    def __init__(self, learner: Learner, episodes: int) -> None:
        self._learner, self._episodes = learner, episodes
        self._best: Mapping[str, Any] = {}
        self._over = False
        self.auc, self.last, self.episode = -1.0, -1.0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def report(self, row: Row) -> None:
        """Take in a row of the training log."""
        if row.phase != "evaluate":
            return
        self._over, self.last = row.episode == self._episodes, row.auc
        if row.auc > self.auc:
            self.auc, self.episode = row.auc, row.episode
            self._best = {name: np.array(values) for name, values in self._learner.agent().items()}

    def agent(self) -> Mapping[str, Any]:
        """Return what learns, and after the last evaluation the best."""
        return self._best if self._over else self._learner.agent()


def configurations(number: int) -> list[dict[str, Any]]:
    """Return the defaults and other configurations of the grid, drawn without replacement."""
    defaults = {"noise": 0.2, "fading": False, "actor_rate": 1e-4, "critic_rate": 1e-3}
    shape = [len(values) for values in GRID.values()]
    drawn = stream(0, "algorithm1", "search").permutation(int(np.prod(shape)))
    found = [defaults]
    for index in drawn.tolist():
        at = np.unravel_index(index, shape)
        one = {name: values[int(i)] for (name, values), i in zip(GRID.items(), at, strict=True)}
        if one != defaults and len(found) < number:
            found.append(one)
    return found


def train(
    scenario: Scenario, shelf: Shelf, options: Mapping[str, Any], seed: int, episodes: int, every: int, out: Path
) -> KeepsBest:
    """Train one agent, and write its best checkpoint to ``out``."""
    plan = Plan(
        episodes=episodes, seed=seed, epsilon_episodes=min(100, episodes // 2), evaluate_every=every,
        evaluation_seeds=VALIDATION,
    )  # fmt: skip
    training = Training((scenario,), "mahdrl-paper", options, plan)
    (names,) = training.learners
    learner, settings = new_learner(training, seed)
    kept = KeepsBest(learner, episodes)
    provenance = {"policy": "mahdrl-paper", "agents": list(names), "settings": asdict(settings)}
    opened: Any = partial(_open, training, shelf)
    start = time.perf_counter()
    train_agent(kept, opened, plan, out, provenance, {"chosen": "best evaluation"}, report=kept.report)
    print(f"{out.stem}: best {kept.auc:.4f} at {kept.episode}, {time.perf_counter() - start:.0f} s", flush=True)
    return kept


def _open(training: Training, shelf: Shelf, market: int, episode: int, seed: int, seats: Any) -> Any:
    return open_table(training, market, seats, episode, seed, shelf, 0)


def search(scenario: Scenario, arguments: Any) -> None:
    """Rate every configuration of each reading that the file lacks."""
    path, shelf = arguments.out, Shelf()
    done = set(pd.read_csv(path)[["reading", "config"]].itertuples(index=False, name=None)) if path.exists() else set()
    columns = ["reading", "config", *GRID, "episodes", "best_auc", "best_episode", "last_auc", "seconds"]
    with _appended(path, columns) as file:
        for number, one in enumerate(configurations(arguments.configs)):
            for reading in READINGS:
                if (reading, number) in done:
                    continue
                start = time.perf_counter()
                out = arguments.agents / f"search-{reading}-{number:02d}.safetensors"
                _forget(out)
                options = {"selection": reading, **one}
                kept = train(scenario, shelf, options, SEARCH_SEED, arguments.episodes, EVERY, out)
                took = f"{time.perf_counter() - start:.0f}"
                measured = (arguments.episodes, f"{kept.auc:.6f}", kept.episode, f"{kept.last:.6f}", took)
                csv.writer(file, lineterminator="\n").writerow([reading, number, *one.values(), *measured])
                file.flush()


def chosen(path: Path, reading: str) -> dict[str, Any]:
    """Return the configuration of a reading with the best evaluation in the search."""
    rows = pd.read_csv(path)
    best = rows[rows.reading == reading].sort_values("best_auc", ascending=False).iloc[0]
    return {name: type(values[0])(best[name]) for name, values in GRID.items()}


def final(scenario: Scenario, arguments: Any) -> None:
    """Train and play what the file lacks."""
    path, shelf = arguments.out, Shelf()
    done = set()
    if path.exists():
        kept = pd.read_csv(path)
        seeds = ["" if pd.isna(seed) else str(int(seed)) for seed in kept.training_seed]
        done = set(zip(kept.entrant, seeds, strict=True))
    columns = ["entrant", "training_seed", "market_seed", "service", "auc", "rounds_to_target", "reached"]
    with _appended(path, columns) as file:
        writer = csv.writer(file, lineterminator="\n")
        for name in (*HEURISTICS, SHIPPED):
            if (name, "") not in done:
                _play(writer, scenario, shelf, name, "", name.partition(",")[0], {}, arguments)
        for seed in range(arguments.first, arguments.seeds):
            for name in arguments.entrants:
                reading, *more = name.split()
                if (name, str(seed)) in done:
                    continue
                if unknown := [word for word in more if "=" not in word and word != "untrained"]:
                    raise SystemExit(f"{name}: unknown word {unknown[0]!r}; give `untrained`, or KEY=VALUE")
                options = {"selection": reading, **chosen(arguments.search, reading)}
                options |= parse_options([word for word in more if "=" in word])
                out = arguments.agents / f"final-{name.replace(' ', '-')}-seed{seed}.safetensors"
                if not out.exists():
                    _forget(out)
                    train(scenario, shelf, options, seed, 0 if "untrained" in more else arguments.episodes, EVERY, out)
                _play(writer, scenario, shelf, name, str(seed), "mahdrl-paper", {"checkpoint": str(out)}, arguments)
                file.flush()


def _play(
    writer: Any, scenario: Scenario, shelf: Shelf, name: str, seed: str, policy: str, options: Any, arguments: Any
) -> None:
    def market(at: int) -> Any:
        return build_market(scenario, at, build_federation(scenario, at, shelf, workers=0))

    results = play(market, {name: everywhere(policy, options)}, range(arguments.markets))
    auc, (rounds, reached) = results.auc()[0], results.rounds_to_target()
    for at in range(arguments.markets):
        for m, service in enumerate(results.services):
            writer.writerow([name, seed, at, service, f"{auc[at, m]:.6f}", rounds[0, at, m], int(reached[0, at, m])])


def table(path: Path, others: Path) -> str:
    """Return the table of the page: AUC, minus Random, and how far from the paper's rounds each entrant is."""
    frame = pd.read_csv(path)
    frame = pd.concat([frame, pd.read_csv(others).query("entrant == 'mahdrl'")])
    scores = {str(name): matrix(rows) for name, rows in frame.groupby("entrant", sort=False)}
    tested = [name for name in scores if name != "random"]
    gains = {name: paired_interval(scores[name], scores["random"]) for name in tested}
    adjusted = dict(zip(tested, holm([gains[name].p for name in tested]), strict=True))
    lines = [
        "| entrant | training seeds | AUC | minus random | Holm p | " + " | ".join(TARGETS) + " | reached |",
        "|---|---|---|---|---|" + "---|" * (len(TARGETS) + 1),
    ]
    for name, values in sorted(scores.items(), key=lambda item: -item[1].mean()):
        rows = frame[frame.entrant == name]
        rounds = [f"{rows[rows.service == service].rounds_to_target.mean():.1f}" for service in TARGETS]
        cells = [str(len(values)) if rows.training_seed.notna().any() else "", f"{values.mean():.4f}"]
        if name in gains:
            known = gains[name].known
            half = f" ± {(gains[name].high - gains[name].low) / 2:.4f}" if known else ""
            cells += [f"{gains[name].estimate:+.4f}{half}", f"{adjusted[name]:.1g}" if known else ""]
        else:
            cells += ["", ""]
        lines.append("| " + " | ".join([name, *cells, *rounds, f"{100 * rows.reached.mean():.0f} %"]) + " |")
    lines += ["", "| pair | seeds | AUC |", "|---|---|---|"]
    for first, second in PAIRS:
        if first in scores and second in scores:
            shared = min(len(scores[first]), len(scores[second]))
            found = paired_interval(scores[first][:shared], scores[second][:shared])
            interval = f" [{found.low:+.4f}, {found.high:+.4f}]" if found.known else ""
            lines.append(f"| {first} minus {second} | {shared} | {found.estimate:+.4f}{interval} |")
    return "\n".join(lines)


def searched(path: Path) -> str:
    """Return the table of the search."""
    frame = pd.read_csv(path).pivot_table("best_auc", ["config", *GRID], "reading", sort=False).reset_index()
    lines = ["| " + " | ".join([*GRID, *READINGS]) + " |", "|---" * (len(GRID) + len(READINGS)) + "|"]
    for row in frame.to_dict("records"):
        fades = "yes" if row["fading"] else "no"
        cells = [f"{row['noise']:g}", fades, f"{row['actor_rate']:g}", f"{row['critic_rate']:g}"]
        lines.append("| " + " | ".join([*cells, *(f"{row[reading]:.4f}" for reading in READINGS)]) + " |")
    return "\n".join(lines)


def _appended(path: Path, columns: list[str]) -> Any:
    """Open a CSV file to append to; a new one gets its header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    file = path.open("a", newline="")
    if fresh:
        csv.writer(file, lineterminator="\n").writerow(columns)
    return file


def _forget(out: Path) -> None:
    """Delete what an interrupted training left: its log would be continued otherwise."""
    for suffix in (".csv", ".json", ".safetensors"):
        out.with_suffix(suffix).unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["search", "final", "table"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--search", type=Path, default=Path("docs/results/algorithm1-search.csv"))
    parser.add_argument("--others", type=Path, default=Path("docs/results/mahdrl-surrogate.csv"))
    parser.add_argument("--agents", type=Path, default=Path("runs/algorithm1"))
    parser.add_argument("--configs", type=int, default=10)
    parser.add_argument("--episodes", type=int, help="of each training; by default 30 for search, 200 for final")
    parser.add_argument(
        "--entrants", nargs="*", default=[*READINGS, *(f"{reading} untrained" for reading in READINGS)],
        help="readings, with `untrained` or hyper-parameters such as `discount=0` behind them",
    )  # fmt: skip
    parser.add_argument("--first", type=int, default=0, help="the first training seed")
    parser.add_argument("--seeds", type=int, default=5, help="training seeds end before this")
    parser.add_argument("--markets", type=int, default=20)
    arguments = parser.parse_args()
    scenario = load("paper", ["training.backend=surrogate"])
    if arguments.what == "search":
        arguments.episodes = arguments.episodes or 30
        search(scenario, arguments)
    elif arguments.what == "final":
        arguments.episodes = arguments.episodes or 200
        final(scenario, arguments)
    else:
        print(searched(arguments.search) + "\n\n" + table(arguments.out, arguments.others))


if __name__ == "__main__":
    main()
