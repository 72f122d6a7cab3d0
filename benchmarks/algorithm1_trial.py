r"""The trial of Algorithm 1 that docs/decisions/algorithm1.md describes, and described before it was run.

    python benchmarks/algorithm1_trial.py play --jobs 2                      # on the surrogate; hours
    python benchmarks/algorithm1_trial.py play --images --jobs 1             # on the images in FLMARKET_DATA
    python benchmarks/algorithm1_trial.py table

`play` trains each reading with the training seeds 0 to 4, on the surrogate, and plays two agents of each training in
markets that no one has used: the last, and the best by validation. `table` prints what is on the page. `play` appends
to its file and skips what that holds, so an interrupted trial continues.
"""

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mahdrl_table import by_entrant, matrix

from learning.evaluation import evaluate, everywhere
from learning.intervals import holm, paired_interval
from learning.mahdrl import agent_file
from learning.mahdrl.paper.settings import Settings
from learning.mahdrl.training import Learner, Plan
from learning.mahdrl.training import train as train_agent
from learning.mahdrl.training_files import Row
from scenarios.build import Shelf, build_federation, build_market
from scenarios.loader import load
from scenarios.train import Training, open_table, shape_of

sys.path.insert(0, str(Path(__file__).parents[1] / "research"))
import algorithm1_readings as readings

NETWORKS, PAYMENTS = ("slots", "shared", "serial"), ("learned", "bids")
READINGS = tuple(map(" ".join, product(NETWORKS, ("centred", "raw"), PAYMENTS)))
UNTRAINED = tuple(map(" ".join, product(NETWORKS, ("untrained",), PAYMENTS)))
"""As `algorithm1_readings.Reading` names them."""

PRIMARY = "shared centred learned"
"""The reading whose AUC against Random is the one primary comparison."""

POLICIES = ("random", "hqfa", "lcfa", "dearest", "mahdrl")
"""Beside the readings; `dearest` is what a skeptic would write, and `mahdrl` is not Algorithm 1."""

VALIDATION = (900_001, 900_002, 900_003)
"""Market seeds by which the best checkpoint is chosen, and the two readings that are trained ten times."""

MARKETS = {"surrogate": range(9400, 9420), "images": range(9420, 9430)}
EPISODES, EVERY = 200, 25
SEEDS, MORE = range(5), range(5, 10)

MEASURES = ("auc", "final", "rounds", "reward")
COLUMNS = ("entrant", "chosen", "training_seed", "market_seed", "service", *MEASURES, "reached")
LAST, BEST = "last", "best"

Task = tuple[str, int | None]
"""An entrant, and its training seed."""


class KeepsBest:
    """A learner that also keeps the agent of its best evaluation."""

    def __init__(self, learner: Learner) -> None:
        self._learner, self.auc = learner, -1.0
        self.best: Mapping[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def report(self, row: Row) -> None:
        """Take in a row of the training log."""
        if row.phase == "evaluate" and row.auc > self.auc:
            self.auc = row.auc
            self.best = {name: np.array(values) for name, values in self._learner.agent().items()}


def trained(name: str, seed: int, folder: Path) -> dict[str, Path]:
    """Return the files of a training's last and best agent; train it if they are not there."""
    stem = f"{name.replace(' ', '-')}-{seed}"
    files = {LAST: folder / f"{stem}.safetensors", BEST: folder / f"{stem}-best.safetensors"}
    if all(file.exists() for file in files.values()):
        return files
    for suffix in (".csv", ".json", ".safetensors"):  # of an interrupted training, whose log would be continued
        files[LAST].with_suffix(suffix).unlink(missing_ok=True)
    reading, episodes = _reading(name), EPISODES if name in READINGS else 0
    scenario, shelf = load("paper", ["training.backend=surrogate"]), Shelf()
    plan = Plan(
        episodes=episodes, seed=seed, epsilon_episodes=100, evaluate_every=EVERY, evaluation_seeds=VALIDATION
    )  # fmt: skip
    training, settings = Training((scenario,), "mahdrl-paper", {}, plan), Settings()
    services = training.learners[0]
    learner = readings.learner_of(reading, services, shape_of(scenario), seed, settings)
    kept: Any = KeepsBest(learner)
    provenance = {
        "policy": readings.policy_of(reading),
        "reading": str(reading),
        "agents": list(services),
        "settings": asdict(settings),
    }
    opened: Any = partial(_open, training, shelf)
    start = time.perf_counter()
    train_agent(kept, opened, plan, files[LAST], provenance, {}, report=kept.report)
    agent_file.write(files[BEST], "agent", kept.best or learner.agent(), provenance)
    print(f"{stem}: trained in {time.perf_counter() - start:.0f} s, best evaluation {kept.auc:.4f}", flush=True)
    return files


def _open(training: Training, shelf: Shelf, market: int, episode: int, seed: int, seats: Any) -> Any:
    return open_table(training, market, seats, episode, seed, shelf, 0)


def _reading(name: str) -> readings.Reading:
    return readings.Reading.named(name.replace("untrained", "centred"))


def play(task: Task, where: str, folder: Path) -> list[tuple[Any, ...]]:
    """Return the rows of an entrant: one for each of its agents, market seed and service."""
    name, seed = task
    scenario, shelf = load("paper", ["training.backend=surrogate"] if where == "surrogate" else []), Shelf()
    agents: Mapping[str, Any] = {"": None}
    if seed is not None:
        agents = trained(name, seed, folder)

    def market(at: int) -> Any:
        return build_market(scenario, at, build_federation(scenario, at, shelf, workers=0))

    rows = []
    for chosen, file in agents.items():
        entrant = everywhere(name)
        if file:
            entrant = everywhere(readings.policy_of(_reading(name)), {"checkpoint": str(file)})
        results = evaluate(market, {name: entrant}, MARKETS[where])
        auc, (rounds, reached) = results.auc()[0], results.rounds_to_target()
        bases = np.array([service.reward_base for service in scenario.services])
        rewards = results.reward[0].sum(axis=1) / bases  # [seed, service], in units of Omega: one scale for all
        for i, at in enumerate(MARKETS[where]):
            for m, service in enumerate(results.services):
                measured = (auc[i, m], results.reported[0, i, -1, m], float(rounds[0, i, m]), rewards[i, m])
                rows.append((name, chosen, seed, at, service, *(f"{v:.6f}" for v in measured), int(reached[0, i, m])))
    return rows


def tasks(where: str, frame: pd.DataFrame, folder: Path) -> Iterator[Task]:
    """Yield what is to be played. On images these are the primary reading and the best two; on the surrogate, all."""
    yield from ((name, None) for name in POLICIES)
    if where == "surrogate":
        yield from product([*READINGS, *UNTRAINED], SEEDS)
        if set(READINGS) <= set(frame.entrant):
            yield from product(best_two(folder), MORE)
    else:
        yield from product(sorted({PRIMARY, *best_two(folder)}), SEEDS)


def best_two(folder: Path) -> list[str]:
    """Return the readings whose last agents are the best on the validation markets, by the mean of five trainings."""
    scores = {}
    for name in READINGS:
        logs = [pd.read_csv(folder / f"{name.replace(' ', '-')}-{seed}.csv") for seed in SEEDS]
        scores[name] = np.mean([log[log.phase == "evaluate"].auc.iloc[-1] for log in logs])
    return sorted(scores, key=lambda name: -scores[name])[:2]


def play_all(arguments: Any, where: str) -> None:
    """Play what the file lacks."""
    path = arguments.out
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    while True:
        frame = pd.read_csv(path)
        seeds = [None if pd.isna(seed) else int(seed) for seed in frame.training_seed]
        done = set(zip(frame.entrant, seeds, strict=True))
        due = [task for task in tasks(where, frame, arguments.agents) if task not in done]
        if not due:
            return
        with ProcessPoolExecutor(arguments.jobs) as pool, path.open("a", newline="") as file:
            for played in as_completed([pool.submit(play, task, where, arguments.agents) for task in due]):
                csv.writer(file, lineterminator="\n").writerows(played.result())
                file.flush()


def table(path: Path, chosen: str) -> str:
    """Return the table of one rule of choice: every measure, and what it is above Random."""
    frame = pd.read_csv(path, keep_default_na=False, na_values={"training_seed": [""]})
    frame = frame[frame.chosen.isin(["", chosen])]
    entrants = by_entrant(frame)
    against = {
        measure: {
            name: paired_interval(matrix(rows, measure), matrix(entrants["random"], measure))
            for name, rows in entrants.items()
            if name != "random"
        }
        for measure in MEASURES
    }
    secondary = [name for name in against["auc"] if name != PRIMARY]
    adjusted = dict(zip(secondary, holm([against["auc"][name].p for name in secondary]), strict=True))
    lines = [
        "| entrant | trainings | AUC | minus random | Holm p | final accuracy | rounds to target | reward | reached |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in sorted(entrants.items(), key=lambda item: -float(item[1].auc.mean())):
        trainings = rows.training_seed.nunique() or ""
        gains = [_signed(against[measure].get(name), 1 if measure == "rounds" else 4) for measure in MEASURES]
        p = "primary" if name == PRIMARY else f"{adjusted[name]:.1g}" if adjusted.get(name, 2) <= 1 else ""
        cells = [name, str(trainings), f"{rows.auc.mean():.4f}", gains[0], p, *gains[1:]]
        lines.append("| " + " | ".join([*cells, f"{100 * rows.reached.mean():.0f} %"]) + " |")
    return "\n".join(lines)


def _signed(gain: Any, digits: int) -> str:
    if gain is None:
        return ""
    return f"{gain.estimate:+.{digits}f}" + (f" ± {(gain.high - gain.low) / 2:.{digits}f}" if gain.known else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["play", "table"])
    parser.add_argument("--images", action="store_true", help="play on images instead of the surrogate")
    parser.add_argument("--out", type=Path, help="the file of results; by default in docs/results")
    parser.add_argument("--agents", type=Path, default=Path("runs/algorithm1-trial"), help="folder of the trainings")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    arguments = parser.parse_args()
    where = "images" if arguments.images else "surrogate"
    arguments.out = arguments.out or Path("docs/results") / f"algorithm1-trial{'-images' * arguments.images}.csv"
    if arguments.what == "play":
        play_all(arguments, where)
        return
    for chosen in (LAST, BEST):
        print(f"{chosen} agents, {where}:\n\n{table(arguments.out, chosen)}\n")


if __name__ == "__main__":
    main()
