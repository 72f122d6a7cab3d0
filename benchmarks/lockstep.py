"""Rounds per second of markets in lockstep and of the SimPy environment, with random actions on the surrogate.

One process, one core: CPU time. Lockstep and SimPy take turns in every repeat, and medians count. "engine" plays
offers drawn at random, without observations as buffers; "vector_env" is the Gymnasium environment, and "parallel_env"
the PettingZoo one, stepped with the same kind of actions.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from measure import Report

from learning.environments.parallel_env import MarketEnv
from learning.lockstep.lockstep import Lockstep
from learning.lockstep.offers import Offers
from learning.lockstep.vector_env import VectorMarketEnv
from learning.seats import MarketFactory
from scenarios.build import market_factory
from scenarios.loader import load


def timed(play: Callable[[], int]) -> float:
    """Return rounds per second of CPU time."""
    start = time.process_time()
    rounds = play()
    return rounds / (time.process_time() - start)


def engine(factory: MarketFactory, markets: int, rounds: int) -> Callable[[], int]:
    played = Lockstep([factory] * markets, list(range(markets)))
    rng = np.random.default_rng(0)

    def play() -> int:
        steps = max(1, rounds // markets)
        for step in range(steps):
            view = played.open()
            wanted = view.available & (rng.random(view.bids.shape, dtype=np.float32) < 0.5)
            payment = 1.0 + 0.2 * rng.random(view.bids.shape, dtype=np.float32)
            played.play(Offers.by_payment(wanted, payment, view.bids, view.budget))
            over = played.finished.nonzero()[0].tolist()
            played.reset(over, [markets * (step + 2) + b for b in over])
        return steps * markets

    return play


def vector(factory: MarketFactory, markets: int, rounds: int) -> Callable[[], int]:
    env = VectorMarketEnv([factory] * markets)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    shape = env.action_space.shape

    def play() -> int:
        steps = max(1, rounds // markets)
        for _ in range(steps):
            env.step(2 * rng.random(shape, dtype=np.float32) - 1)
        return steps * markets

    return play


def simpy(factory: MarketFactory, rounds: int) -> Callable[[], int]:
    env = MarketEnv(factory, flat=True)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    width = env.action_space(env.possible_agents[0]).shape[0]

    def play() -> int:
        for _ in range(rounds):
            if not env.agents:
                env.reset()
            env.step({name: 2 * rng.random(width, dtype=np.float32) - 1 for name in env.agents})
        return rounds

    return play


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markets", type=int, nargs="+", default=[16, 64, 256, 1024])
    parser.add_argument("--rounds", type=int, default=10000, help="rounds of lockstep in a repeat")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--no-save", dest="save", action="store_false", help="keep nothing in benchmarks/results/")
    given = parser.parse_args()
    factory = market_factory(load("paper", {"training.backend": "surrogate"}))
    alone = simpy(factory, max(1, given.rounds // 50))
    alone()
    report = Report(save=given.save)
    for markets in given.markets:
        plays = engine(factory, markets, given.rounds), vector(factory, markets, given.rounds)
        for play in plays:
            play()
        found = [(timed(plays[0]), timed(plays[1]), timed(alone)) for _ in range(given.repeats)]
        fast, rows, slow = zip(*found, strict=True)
        report.figure(f"{markets} markets of `paper` in lockstep", "rounds a CPU second", fast)
        report.figure(f"{markets} markets of `paper` as `vector_env`", "rounds a CPU second", rows)
        report.times(f"{markets} markets as `vector_env`, against the SimPy environment", rows, slow)
    report.close()


if __name__ == "__main__":
    main()
