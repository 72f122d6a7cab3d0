"""The speed of the market itself: rounds per second on a surrogate at the paper's size, and the growth of its cost.

    python benchmarks/market.py --repeat 7

Each of the parts (``--only``) is described where it begins.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from cProfile import Profile
from functools import partial
from pathlib import Path
from pstats import Stats
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
from measure import Report, no_garbage_collection, numpy_alone, take_turns

from des.market import Market
from fl.training.jobs import Federation, TrainingJob, TrainingOutcome
from flmarket.core.installation import ROOT
from learning.episode import play_round
from learning.policy import Policy
from scenarios.build import Shelf, build_federation, build_market, build_policy
from scenarios.file.schema import Scenario
from scenarios.loader import load as load_scenario
from scenarios.loader import parse

SIZES = ((100, 5), (1_000, 5), (10_000, 5), (1_000, 50), (10_000, 50))
"""Clients and services."""

POLICIES = ("random", "hqfa", "lcfa")


class Stub(Federation):
    """A federation that learns nothing and costs nothing, so that only the market is measured."""

    kernels: Mapping[str, str] = {}

    def __init__(self, services: Sequence[str]) -> None:
        self._accuracy = dict.fromkeys(services, 0.1)

    def accuracy(self, service: str) -> float:
        return self._accuracy[service]

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        of_service: dict[str, int] = {}
        for job in jobs:
            of_service[job.service] = of_service.get(job.service, 0) + 1
        return {name: TrainingOutcome(0.1, np.zeros(n)) for name, n in of_service.items()}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        pass

    def close(self) -> None:
        pass


def game(scenario: Scenario, federation: Federation) -> Callable[[int], None]:
    """Return a call that plays a number of rounds of a scenario with its policies."""
    market: Market = build_market(scenario, 0, federation)  # type: ignore[arg-type]
    policies: dict[str, Policy] = {service.name: build_policy(scenario, service) for service in scenario.services}

    def play(rounds: int) -> None:
        for _ in range(rounds):
            play_round(market, policies)

    return play


def paper(policy: str, *more: str) -> Scenario:
    """Return the paper's market with one policy for all. No service reaches its target, so that all rounds are full."""
    names = ("mnist", "fashion-mnist", "emnist")
    settings = [f"services.{name}.{key}" for name in names for key in ("target_accuracy=1.0", f'policy="{policy}"')]
    return load_scenario("paper", ["rounds=1000000", *settings, *more])


def federations(policy: str) -> dict[str, Federation]:
    """Return the stub, and the surrogate."""
    scenario = paper(policy)
    stub = Stub([service.name for service in scenario.services])
    surrogate = paper(policy, 'training.backend="surrogate"')
    return {"stub": stub, "surrogate": build_federation(surrogate, 0, Shelf())}


def bench_paper(report: Report, repeat: int) -> None:
    """Play the paper's market: target 2,000 rounds a second on the surrogate."""
    rounds = 500
    contestants: dict[str, Callable[[], None]] = {}
    for policy in POLICIES:
        for name, federation in federations(policy).items():
            play = game(paper(policy), federation)
            contestants[f"{policy}, {name}"] = lambda play=play: play(rounds)  # type: ignore[misc]
    timings = take_turns(contestants, repeat)
    report.table(
        "The paper's market: 20 clients, 3 services, one core, all rounds full",
        [
            {
                "policy, federation": name,
                "rounds/s": rounds / timing.median,
                "rounds per CPU second": rounds / timing.cpu,
                "CPU us/round": 1e6 * timing.cpu / rounds,
                "spread": timing.spread,
            }
            for name, timing in timings.items()
        ],
    )


def bench_profile(report: Report, repeat: int) -> None:
    """Say where a round of the paper's market on the surrogate spends its time, by module.

    A profiler makes every call dearer, so the shares of modules of many small functions are somewhat too large.
    """
    rounds = 100 * repeat
    shares = {policy: profiled(game(paper(policy), federations(policy)["surrogate"]), rounds) for policy in POLICIES}
    seconds = {policy: sum(found.values()) for policy, found in shares.items()}
    modules = sorted(set().union(*shares.values()), key=lambda name: -shares[POLICIES[0]].get(name, 0.0))
    report.table(
        f"Where a round's time goes: per cent of {rounds} rounds' time under cProfile, on the surrogate",
        [
            {"module": name} | {policy: 100.0 * shares[policy].get(name, 0.0) / seconds[policy] for policy in POLICIES}
            for name in modules
        ],
    )


def profiled(play: Callable[[int], None], rounds: int) -> dict[str, float]:
    """Return the seconds that some rounds spend in each module; what is built in counts as its caller's."""
    play(100)
    profile = Profile()
    profile.runcall(play, rounds)
    found: dict[str, float] = {}
    statistics = Stats(profile).stats  # type: ignore[attr-defined]
    for (file, _, _), (_, _, own, _, callers) in statistics.items():
        parts = {file: own} if file != "~" else {caller[0]: times[2] for caller, times in callers.items()}
        for where, seconds in parts.items():
            found[module(where)] = found.get(module(where), 0.0) + seconds
    return found


def module(file: str) -> str:
    """Return what a table calls a file: its path in this repository, or the name of its library."""
    path = Path(file)
    if path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT))
    return next((name for name in ("simpy", "numpy") if name in path.parts), "Python")


def bench_numpy(report: Report, repeat: int) -> None:
    """Play the paper's market on the surrogate with the extension and with NumPy in its place."""
    rounds, rows = 100, []

    def alone(play: Callable[[int], None]) -> None:
        with numpy_alone():
            play(rounds)

    for policy in POLICIES:
        # Two markets that play the same rounds, so that no repetition is more work for one of them.
        plays = [game(paper(policy), federations(policy)["surrogate"]) for _ in range(2)]
        timings = take_turns({"compiled": partial(plays[0], rounds), "NumPy": partial(alone, plays[1])}, 3 * repeat)
        pairs = zip(timings["NumPy"].computing, timings["compiled"].computing, strict=True)
        rows.append(
            {
                "policy": policy,
                "compiled: CPU us/round": 1e6 * timings["compiled"].cpu / rounds,
                "NumPy: CPU us/round": 1e6 * timings["NumPy"].cpu / rounds,
                "times as fast": float(np.median([numpy / compiled for numpy, compiled in pairs])),
                "spread": timings["compiled"].spread,
            }
        )
    report.table("The market on the surrogate: draws, exp and log compiled, or in NumPy (median of pairs)", rows)


def large(clients: int, services: int) -> Scenario:
    """Return a market of a size. Budgets and cores are the paper's, so that awards grow with the services alone."""
    head = (
        f'name = "large"\nrounds = 1000000\ndqi = "published"\n[clients]\ncount = {clients}\ncores = 2\n'
        "data_size = [100, 200, 300, 400]\nemd = [0.4, 0.6, 0.8, 1.0]\ncost = { per_sample = 0.025, per_emd = 1.0 }\n"
    )
    entry = (
        '[[services]]\nname = "s{}"\ndataset = "mnist"\nbudget = 20\ntarget_accuracy = 1.0\nreward_base = 60\n'
        'policy = "random"\n'
    )
    return parse(head + "".join(entry.format(i) for i in range(services)))


def measure_size(clients: int, services: int) -> dict[str, Any]:
    """Return the seconds per round and the peak memory of one size; to be called in a process of its own."""
    scenario = large(clients, services)
    play = game(scenario, Stub([service.name for service in scenario.services]))
    play(2)
    seconds = []
    for _ in range(20):
        with no_garbage_collection():
            start = time.process_time()
            play(1)
            seconds.append(time.process_time() - start)
    return {"seconds": float(np.median(seconds)), "bytes": getrusage(RUSAGE_SELF).ru_maxrss * 1024}


def bench_growth(report: Report, repeat: int) -> None:
    """Grow the market to 10,000 clients x 50 services: cost must stay linear in both."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = {size: [] for size in SIZES}
    for _ in range(max(1, repeat // 2)):
        for size in SIZES:
            command = [sys.executable, __file__, "--size", *map(str, size)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[size].append(json.loads(done.stdout))
    rows = []
    for (clients, services), each in found.items():
        seconds = float(np.median([one["seconds"] for one in each]))
        rows.append(
            {
                "clients": clients,
                "services": services,
                "CPU ms/round": 1e3 * seconds,
                "us/(service)": 1e6 * seconds / services,
                "ns/(client x service)": 1e9 * seconds / clients / services,
                "peak MB": each[0]["bytes"] / 1e6,
            }
        )
    report.table("Growth of the market (stub federation, random policies, one core)", rows)


MECHANISMS: Mapping[str, Mapping[str, Any]] = {
    "pay-as-offered": {},
    "uniform-price": {},
    "posted-price": {"price_per_sample": 0.02},
    "proportional-share": {},
    "iterated": {},
    "fair-queue": {},
    "score-auction": {},
}


def bench_rules(report: Report, repeat: int) -> None:
    """Clear the same large markets by each mechanism."""
    rows = []
    for policy in ("random", "worth"):
        contestants = {}
        for name, options in MECHANISMS.items():
            plain = large(10_000, 50)
            rules = plain.market.model_copy(update={"mechanism": name, "options": dict(options)})
            services = tuple(service.model_copy(update={"policy": policy}) for service in plain.services)
            scenario = plain.model_copy(update={"market": rules, "services": services})
            play = game(scenario, Stub([service.name for service in services]))
            play(2)
            contestants[name] = partial(play, 3)
        timings = take_turns(contestants, repeat)
        usual = timings["pay-as-offered"].cpu
        rows += [
            {"policy": policy, "mechanism": name, "CPU ms/round": 1e3 * timing.cpu / 3, "x usual": timing.cpu / usual}
            for name, timing in timings.items()
        ]
    report.table("Mechanisms at 10,000 clients x 50 services (stub federation, one core)", rows)


PARTS = {
    "paper": bench_paper,
    "profile": bench_profile,
    "numpy": bench_numpy,
    "growth": bench_growth,
    "rules": bench_rules,
}


def main() -> None:
    """Run the parts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="alternating repetitions (default 7)")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="parts to run (default all)")
    parser.add_argument("--no-save", dest="save", action="store_false", help="write nothing to benchmarks/results/")
    parser.add_argument("--size", type=int, nargs=2, metavar=("CLIENTS", "SERVICES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.size:
        print(json.dumps(measure_size(*arguments.size)))
        return
    report = Report("market", save=arguments.save)
    for part in arguments.only:
        PARTS[part](report, arguments.repeat)
    report.close()


if __name__ == "__main__":
    main()
