"""Environment steps per second, without training: the cost of the RL interface on top of the market.

    python benchmarks/environment.py [--seconds 2]

Times are of CPU. "market" is the bare market with all services playing the named policy; the environments play random
actions.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

from market import Stub

from des.clients.data_tables import Group, PopulationSpec
from des.market import Market
from des.service import ServiceSpec
from des.timeline import Durations
from fl.data.dqi import PUBLISHED
from learning.environments.parallel_env import MarketEnv
from learning.environments.service_env import ServiceEnv
from learning.play_round import play_round
from learning.seats import seat

ROUNDS = 80
SERVICE = ServiceSpec("", "mnist", 10, PUBLISHED, 20_000_000, 0.97, 60.0, 1, "random")
CLIENTS = PopulationSpec(2, (Group(20, (100, 200, 300, 400), (0.4, 0.6, 0.8, 1.0), 0.025, 1.0),))


def factory(services: int, clients: int) -> Callable[[int], Market]:
    specs = [replace(SERVICE, name=f"service_{m}") for m in range(services)]
    population = replace(CLIENTS, count=clients)
    return lambda seed: Market(population, specs, Durations(0.001, 0.5), ROUNDS, Stub(), seed)


def market_steps(make: Callable[[int], Market], policy: str) -> Callable[[], int]:
    def episode() -> int:
        market = make(0)
        policies = seat(market, {spec.name: policy for spec in market.services})
        while not market.finished:
            play_round(market, policies)
        return market.round

    return episode


def parallel_steps(make: Callable[[int], Market], *, flat: bool) -> Callable[[], int]:
    env = MarketEnv(make, flat=flat)
    actions = [{name: env.action_space(name).sample() for name in env.possible_agents} for _ in range(ROUNDS)]

    def episode() -> int:
        env.reset(seed=0)
        for action in actions:
            env.step(action)
        return ROUNDS

    return episode


def single_steps(make: Callable[[int], Market], services: int) -> Callable[[], int]:
    env = ServiceEnv(make, "service_0", {f"service_{m}": "lcfa" for m in range(1, services)})
    actions = [env.action_space.sample() for _ in range(ROUNDS)]

    def episode() -> int:
        env.reset(seed=0)
        for action in actions:
            env.step(action)
        return ROUNDS

    return episode


def rate(episode: Callable[[], int], seconds: float) -> float:
    episode()  # warm
    steps, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < seconds:
        steps += episode()
    return steps / elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each line (default: 2)")
    seconds = parser.parse_args().seconds
    print("| services x clients | what | rounds/s | service decisions/s | of the market |")
    print("|---|---|---:|---:|---:|")
    for services, clients in ((3, 20), (8, 20), (10, 100)):
        make = factory(services, clients)
        episodes = {
            "market, random": market_steps(make, "random"),
            "MarketEnv": parallel_steps(make, flat=False),
            "MarketEnv, flat": parallel_steps(make, flat=True),
            "ServiceEnv, rivals lcfa": single_steps(make, services),
            "market, ucb": market_steps(make, "ucb"),
            "market, oracle": market_steps(make, "oracle"),
        }
        base = 0.0
        for name, episode in episodes.items():
            steps = rate(episode, seconds)
            base = base or steps
            print(f"| {services} x {clients} | {name} | {steps:,.0f} | {steps * services:,.0f} | {steps / base:.2f} |")


if __name__ == "__main__":
    main()
