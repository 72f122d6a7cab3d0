"""How much sooner policies are evaluated in lockstep than one market after another, on the surrogate.

    python research/policies_in_lockstep.py [--policies hqfa greedy oort mahdrl] [--seeds 12] [--repeats 5]

One process: CPU time of ``lockstep_play.evaluate`` and of ``learning.evaluation.evaluate``, whose results are
the same. All services play the same policy. Both take turns in every repeat, and medians are shown.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

from lockstep_play import evaluate as together

from learning.evaluation import Results, everywhere
from learning.evaluation import evaluate as one_by_one
from scenarios.factory import market_factory
from scenarios.loader import load


def timed(play: Callable[[], Results]) -> float:
    """Return seconds of CPU time."""
    start = time.process_time()
    play()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", default="paper")
    parser.add_argument("--policies", nargs="+", default=["hqfa", "greedy", "oort", "mahdrl"])
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    scenario = load(given.scenario, {"training.backend": "surrogate", "sweep": {}, "runs": []})
    factory, seeds = market_factory(scenario), range(given.seeds)
    print(f"{given.scenario}: ms of CPU time a game, medians of {given.repeats} repeats of {given.seeds} games")
    print("| policy | SimPy | lockstep | SimPy / lockstep |")
    print("|---|---|---|---|")
    for policy in given.policies:
        entrants = {policy: everywhere(policy)}
        one_by_one(factory, entrants, [0])
        found = [
            (
                timed(lambda entrants=entrants: one_by_one(factory, entrants, seeds)),
                timed(lambda entrants=entrants: together(factory, entrants, seeds)),
            )
            for _ in range(given.repeats)
        ]
        slow, fast = (median(column) * 1000 / given.seeds for column in zip(*found, strict=True))
        ratio = median(one / other for one, other in found)
        print(f"| `{policy}` | {slow:.0f} | {fast:.0f} | {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main()
