"""FedAST: buffers that grow with the requests, requests that stay out, and delays as its public code has them."""

from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace

import numpy as np

import flmarket

HERE = Path(__file__).parent
SHORT = {
    "runs": [],
    "timeline.aggregate.kind": "fedast",
    "clients.count": 30,
    "clients.data_size": [20],
    "training.eval_samples": 100,
    "services.*.policy_options.requests": 12,
}
"""Settings with which the scenario plays in a second."""


def plugins() -> ModuleType:
    return flmarket.load_plugin(HERE / "plugins.py")


def played(**changes: object) -> SimpleNamespace:
    flmarket.load_plugin(HERE / "plugins.py")
    scenario = flmarket.load(HERE / "scenario.toml", SHORT | changes)
    with TemporaryDirectory() as out:
        run = flmarket.run(scenario, out=out, progress=False)
        return SimpleNamespace(rounds=run.rounds, offers=run.offers, scenario=scenario)


def check_a_buffer_is_a_part_of_the_requests() -> None:
    """The public code's is one 32nd of those that are out, rounded up: 3 of 96, 4 of 100, and at least one."""
    made = plugins().FedAST(ratio=32)
    buffers = {}
    for requests in (10, 96, 100, 288):
        buffers[requests] = next(
            n for n in range(1, requests) if made.due(flmarket.Gathered(n, requests - n, closing=False))
        )
    assert buffers == {10: 1, 96: 3, 100: 4, 288: 9}


def check_an_update_counts_alike_however_stale() -> None:
    assert {plugins().FedAST(rate=0.25).share(staleness) for staleness in (0, 1, 50)} == {0.25}


def check_requests_stay_out_and_go_to_the_tasks_that_are_left() -> None:
    """4 for each of three tasks, and 6 for each of two once the first has met its target."""
    never = {f"services.{name}.target_accuracy": 1.0 for name in ("second", "third")}
    run = played(**never, **{"rounds": 80, "services.first.target_accuracy": 0.4})
    first = run.rounds[run.rounds["service"] == "first"].set_index("sim_time")["accuracy"]
    left = first[first >= 0.4].index[0]
    offers = run.offers[run.offers["start"].notna() & (run.offers["service"] == "second")]
    times = np.arange(1.0, 20.0, 0.05)
    out = np.array([((offers["start"] <= time) & (offers["end"] > time)).sum() for time in times])
    before, after = out[times < left], out[times > left + 2.0]
    # a request follows a delivery with the next period; who is taken by another task is not asked again before
    assert 3.0 < before.mean() <= before.max() <= 4
    assert 4.5 < after.mean() <= after.max() <= 6


def check_delays_vary_as_shifted_exponential_ones_do() -> None:
    """The public code's is m + Exp(2 m), whose standard deviation is 2/3 of its mean; ours is log-normal."""
    flmarket.load_plugin(HERE / "plugins.py")
    spread = flmarket.load(HERE / "scenario.toml").timeline.jitter
    assert abs(np.sqrt(np.exp(spread**2) - 1) - 2 / 3) < 0.02


def check_a_round_takes_the_first_third_and_recruits_again() -> None:
    first = {"timeline.aggregate.kind": "wait-for-all", "timeline.aggregate.options.first": 2}
    run = played(**first, **{"services.*.policy": "over-select"}, rounds=30)
    rounds = run.offers[run.offers["service"] == "third"].groupby("round").size()
    assert (rounds <= 4).all()
    assert len(rounds) > 4
