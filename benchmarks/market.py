"""The speed of the market itself: rounds per second on a surrogate at the paper's size, and the growth of its cost.

    python benchmarks/market.py --repeat 6

Each of the parts (``--only``) is described where it begins.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
import simpy
from measure import Report, no_garbage_collection, take_turns

from des.market import Market
from fl.training.jobs import Federation, TrainingJob, TrainingOutcome
from learning.play_round import play_round
from learning.policy import Policy
from scenarios.build import Shelf, build_federation, build_market, build_policy
from scenarios.file.schema import Scenario
from scenarios.loader import load as load_scenario
from scenarios.loader import parse
from scenarios.running.processes import ENVIRONMENT

SIZES = ((100, 5), (1_000, 5), (10_000, 5), (10_000, 50), (100_000, 5), (1_000_000, 5))
"""Clients and services."""

POLICIES = ("random", "hqfa", "lcfa")


class Stub(Federation):
    """A federation that learns nothing and costs nothing, so that only the market is measured."""

    kernels: Mapping[str, str] = {}

    def accuracy(self, service: str) -> float:
        return 0.1

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        counts = Counter(job.service for job in jobs)
        return {service: TrainingOutcome(0.1, np.zeros(count)) for service, count in counts.items()}

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


def bench_paper(report: Report, repeat: int) -> None:
    """Play the paper's market on the surrogate."""
    rounds = 500
    contestants: dict[str, Callable[[], None]] = {}
    for policy in POLICIES:
        scenario = paper(policy, 'training.backend="surrogate"')
        play = game(scenario, build_federation(scenario, 0, Shelf()))
        contestants[policy] = partial(play, rounds)
    for policy, timing in take_turns(contestants, repeat).items():
        rates = [rounds / seconds for seconds in timing.computing]
        report.figure(f"the market of `paper` on the surrogate, all `{policy}`", "rounds a CPU second", rates)


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
    play = game(scenario, Stub())
    play(2)
    seconds = []
    for _ in range(20):
        with no_garbage_collection():
            start = time.process_time()
            play(1)
            seconds.append(time.process_time() - start)
    return {"seconds": float(np.median(seconds)), "bytes": getrusage(RUSAGE_SELF).ru_maxrss * 1024}


def bench_growth(report: Report, repeat: int) -> None:
    """Play large markets, each in a process of its own, like flmarket's workers."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = {size: [] for size in SIZES}
    for _ in range(repeat):
        for size in SIZES:
            command = [sys.executable, __file__, "--size", *map(str, size)]
            worker = ENVIRONMENT | os.environ
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=worker)
            found[size].append(json.loads(done.stdout))
    for (clients, services), each in found.items():
        what = f"a market of {clients:,} clients and {services} services"
        report.figure(f"{what}, a round", "ms of CPU", [1e3 * one["seconds"] for one in each])
        report.figure(f"{what}, peak memory", "MB", [one["bytes"] / 1e6 for one in each])


def bench_turns(report: Report, repeat: int) -> None:
    """Play a round in which clients come one after another; a turn should cost the same, however many come."""
    contestants = {}
    for count in (1_000, 10_000):
        plain = large(count, 8)
        rules = plain.market.model_copy(update={"mechanism": "uniform-price", "impressions": "sequential"})
        clients = plain.clients.model_copy(update={"cores": 1})
        services = tuple(it.model_copy(update={"policy": "rtb-lin"}) for it in plain.services)
        changes = {"market": rules, "clients": clients, "services": services}
        contestants[count] = partial(game(plain.model_copy(update=changes), Stub()), 1)
    timings = {count: timing.computing for count, timing in take_turns(contestants, repeat).items()}
    report.figure("a round of 10,000 clients, one after another, and 8 services", "s of CPU", timings[10_000])
    pairs = [10_000 * few / (1_000 * many) for many, few in zip(timings[10_000], timings[1_000], strict=True)]
    report.figure("a turn of 1,000 clients, CPU against one of 10,000", "times", pairs)


MECHANISMS: Mapping[str, Mapping[str, Any]] = {
    "pay-as-offered": {},
    "uniform-price": {},
    "posted-price": {"price_per_sample": 0.02},
    "proportional-share": {},
    "iterated": {},
    "fair-queue": {},
    "score-auction": {},
}


def cleared_by(plain: Scenario, name: str, options: Mapping[str, Any], policy: str) -> Callable[[], None]:
    """Return a call that plays a round of a market by a mechanism, with one policy for all; two have been played."""
    rules = plain.market.model_copy(update={"mechanism": name, "options": dict(options)})
    services = tuple(service.model_copy(update={"policy": policy}) for service in plain.services)
    scenario = plain.model_copy(update={"market": rules, "services": services})
    play = game(scenario, Stub())
    play(2)
    return partial(play, 1)


def bench_rules(report: Report, repeat: int) -> None:
    """Clear the same large markets by each mechanism, for a policy that names few clients and one that names many."""
    for policy in ("random", "worth"):
        contestants = {}
        for name, options in MECHANISMS.items():
            contestants[name] = cleared_by(large(10_000, 50), name, options, policy)
        timings = take_turns(contestants, repeat)
        usual = timings.pop("pay-as-offered").computing
        dearest = max(timings, key=lambda name: timings[name].cpu)
        pairs = [own / other for own, other in zip(timings[dearest].computing, usual, strict=True)]
        what = f"a round of 10,000 x 50, all `{policy}`, by the slowest other mechanism, CPU against `pay-as-offered`"
        report.figure(what, "times", pairs)


def bench_vcg(report: Report, repeat: int) -> None:
    """Clear small markets by ``vcg``, whose cost grows fast; all services name many clients."""
    contestants = {size: cleared_by(large(*size), "vcg", {}, "worth") for size in ((16, 4), (20, 5), (20, 8), (40, 5))}
    for (clients, services), timing in take_turns(contestants, repeat).items():
        what = f"a round of {clients} clients and {services} services by `vcg`, all `worth`"
        report.figure(what, "s of CPU", timing.computing)


CONTINUOUS = {
    "training.backend": "surrogate",
    "timeline.mode": "continuous",
    "timeline.jitter": 0.2,  # so that work hardly ever ends at the same instant as other work
    "timeline.aggregate": {"kind": "fedbuff", "options": {"buffer": 5}},
    "services.*.policy": "random",
    "services.*.target_accuracy": 1.0,
    "rounds": 1_000_000,
}


JOBS = 4_000  # that SimPy plays alone


def bench_continuous(report: Report, repeat: int) -> None:
    """Play continuous markets, whose events are the lines of events.csv, next to such jobs in SimPy alone."""
    many = {"clients.count": 1_000, "timeline.slot": 5.0, "services.*.budget": 200.0, "interventions": []}
    scenarios = {
        "`paper`, periods of 0.5 s": load_scenario("paper", {**CONTINUOUS, "timeline.slot": 0.5}),
        "`paper` with 1,000 clients and ten times the budget": load_scenario("paper", {**CONTINUOUS, **many}),
    }
    counts: dict[str, list[int]] = {name: [] for name in scenarios}

    def player(name: str, scenario: Scenario) -> Callable[[], None]:
        market = build_market(scenario, 0, build_federation(scenario, 0, Shelf()))
        policies = {service.name: build_policy(scenario, service) for service in scenario.services}
        return lambda: counts[name].append(sum(len(play_round(market, policies).events) for _ in range(40)))

    def alone() -> None:
        clock = simpy.Environment()
        cores = [simpy.Resource(clock, 2) for _ in range(1_000)]

        def work(client: int) -> Iterator[simpy.Event]:
            with cores[client].request() as core:
                yield core
                yield clock.timeout(100 + client)
                yield clock.timeout(500)

        for job in range(JOBS):
            clock.process(work(job * 7 % 1_000))
        clock.run()

    plays = {name: player(name, scenario) for name, scenario in scenarios.items()}
    timings = take_turns({"SimPy": alone, **plays}, repeat)
    bare = [5 * JOBS / seconds for seconds in timings["SimPy"].computing]  # award, start, end, upload and payment
    report.figure("SimPy alone, jobs on the cores of 1,000 clients", "events a CPU second", bare)
    for name, found in counts.items():
        rates = [count / seconds for count, seconds in zip(found[1:], timings[name].computing, strict=True)]
        report.figure(f"{name}, continuous, on the surrogate", "events a CPU second", rates)
        report.times(f"{name}, continuous, events against SimPy alone", rates, bare)


PARTS = {
    "paper": bench_paper,
    "continuous": bench_continuous,
    "growth": bench_growth,
    "turns": bench_turns,
    "rules": bench_rules,
    "vcg": bench_vcg,
}


def main() -> None:
    """Run the parts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=6, help="alternating repetitions (default 6)")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="parts to run (default all)")
    parser.add_argument("--no-save", dest="save", action="store_false", help="write nothing to benchmarks/results/")
    parser.add_argument("--size", type=int, nargs=2, metavar=("CLIENTS", "SERVICES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.size:
        print(json.dumps(measure_size(*arguments.size)))
        return
    report = Report(save=arguments.save)
    for report.part in arguments.only:
        PARTS[report.part](report, arguments.repeat)
    report.close()


if __name__ == "__main__":
    main()
