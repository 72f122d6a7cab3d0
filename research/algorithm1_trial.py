"""Plays the trial of Algorithm 1 that notebook/algorithm1.md describes, and described before it was run.

python research/algorithm1_trial.py --jobs 2               # on the surrogate; hours
python research/algorithm1_trial.py --images --jobs 1      # on the images in FLMARKET_DATA
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import algorithm1_readings as readings
import numpy as np
import pandas as pd
from algorithm1 import PRIMARY, TRIAL
from experiment import SURROGATE, command_line, fill

from learning.evaluation import evaluate, everywhere
from learning.mahdrl.paper import PaperSettings
from learning.training import agent_files
from learning.training.loop import Learner, Plan
from learning.training.loop import train as train_agent
from learning.training.records import Row
from scenarios.build import Shelf, market_factory
from scenarios.loader import load
from scenarios.train import AgentTraining, open_market, shape_of

NETWORKS, PAYMENTS = ("slots", "shared", "serial"), ("learned", "bids")
READINGS = tuple(map(" ".join, product(NETWORKS, ("centred", "raw"), PAYMENTS)))
UNTRAINED = tuple(map(" ".join, product(NETWORKS, ("untrained",), PAYMENTS)))
"""As `algorithm1_readings.Reading` names them."""

POLICIES = ("random", "hqfa", "lcfa", "dearest", "mahdrl")
"""Besides the readings; `dearest` is what a skeptic would write, and `mahdrl` is not Algorithm 1."""

VALIDATION = (900_001, 900_002, 900_003)
"""Market seeds by which the best checkpoint is chosen, and the two readings that are trained ten times."""

MARKETS = {"surrogate": range(9400, 9420), "images": range(9420, 9430)}
EPISODES, EVERY = 200, 25
SEEDS, MORE = range(5), range(5, 10)

COLUMNS = (
    "entrant",
    "chosen",
    "training_seed",
    "market_seed",
    "service",
    "auc",
    "final",
    "rounds",
    "reward",
    "reached",
)
LAST, BEST = "last", "best"


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
    scenario, shelf = load("paper", [SURROGATE]), Shelf()
    plan = Plan(
        episodes=episodes, seed=seed, epsilon_episodes=100, evaluate_every=EVERY, evaluation_seeds=VALIDATION
    )  # fmt: skip
    training, settings = AgentTraining((scenario,), "mahdrl-paper", {}, plan), PaperSettings()
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
    train_agent(kept, opened, plan, files[LAST], provenance, {}, report=kept.report)
    agent_files.write(files[BEST], "agent", kept.best or learner.agent(), provenance)
    return files


def _open(training: AgentTraining, shelf: Shelf, market_index: int, episode: int, seed: int, seats: Any) -> Any:
    return open_market(training, market_index, seats, episode, seed, shelf, 0)


def _reading(name: str) -> readings.Reading:
    return readings.Reading.named(name.replace("untrained", "centred"))


def play(task: tuple[str, ...], where: str, folder: Path) -> list[tuple[Any, ...]]:
    """Return the rows of an entrant: one for each of its agents, market seed and service."""
    name, seed = task
    scenario = load("paper", [SURROGATE] if where == "surrogate" else [])
    agents: Mapping[str, Path | None] = trained(name, int(seed), folder) if seed else {"": None}
    bases = np.array([service.reward_base for service in scenario.services])
    rows = []
    for chosen, file in agents.items():
        entrant = everywhere(name)
        if file:
            entrant = everywhere(readings.policy_of(_reading(name)), {"checkpoint": str(file)})
        results = evaluate(market_factory(scenario, workers=0), {name: entrant}, MARKETS[where])
        auc, (rounds, reached) = results.auc()[0], results.rounds_to_target()
        rewards = results.reward[0].sum(axis=1) / bases  # [seed, service], in units of Omega: one scale for all
        for (i, at), (m, service) in product(enumerate(MARKETS[where]), enumerate(results.services)):
            measured = (auc[i, m], results.reported[0, i, -1, m], float(rounds[0, i, m]), rewards[i, m])
            rows.append((name, chosen, seed, at, service, *(f"{v:.6f}" for v in measured), int(reached[0, i, m])))
    return rows


def best_two(folder: Path) -> list[str]:
    """Return the readings whose last agents are the best on the validation markets, by the mean of five trainings."""
    scores = {}
    for name in READINGS:
        logs = [pd.read_csv(folder / f"{name.replace(' ', '-')}-{seed}.csv") for seed in SEEDS]
        scores[name] = np.mean([log[log.phase == "evaluate"].auc.iloc[-1] for log in logs])
    return sorted(scores, key=lambda name: -scores[name])[:2]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--images", action="store_true", help="play on images: the primary reading and the best two")
    parser.add_argument("--out", type=Path, help="the file of results; by default in research/results")
    parser.add_argument("--agents", type=Path, default=Path("runs/algorithm1-trial"), help="folder of the trainings")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    arguments = parser.parse_args()
    where = "images" if arguments.images else "surrogate"

    def played(names: Iterable[str], seeds: Iterable[object]) -> None:
        tasks = [(name, str(seed)) for name, seed in product(names, seeds)]
        one = partial(play, where=where, folder=arguments.agents)
        fill(arguments.out or TRIAL[where], COLUMNS, tasks, one, arguments.jobs, key=("entrant", "training_seed"))

    played(POLICIES, [""])
    if arguments.images:
        played(sorted({PRIMARY, *best_two(arguments.agents)}), SEEDS)
    else:
        played([*READINGS, *UNTRAINED], SEEDS)
        played(best_two(arguments.agents), MORE)


if __name__ == "__main__":
    main()
