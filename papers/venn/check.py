"""Venn's plan of clients against one that was worked out by hand, requests that are never over-filled; and the table.

``python papers/venn/check.py RUNS`` prints the ratios of README.md from the runs that it names.
"""

import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import flmarket
from flmarket.testing import clear_round

HERE = Path(__file__).parent
SHORT = {"sweep": {}, "market.options.order": "venn"}
"""Settings with which the scenario plays in a second."""

# Of eight devices all can serve general jobs, the last four memory-rich ones, and of these the last two the best ones.
ABLE = np.array([[1] * 8, [0] * 4 + [1] * 4, [0] * 6 + [1] * 2], dtype=np.bool_)


def kept_for(kinds: list[int], demands: list[int]) -> list[int]:
    """Return the kind of job that each device serves where jobs of such kinds and sizes ask for all that can serve."""
    serves, venn = ABLE[kinds], flmarket.registered("mechanism", "scheduler")(order="venn")
    paid = clear_round(venn, np.zeros(serves.shape), np.where(serves, 1.0, np.nan), 8, serves=serves, demand=demands)
    assert ((~np.isnan(paid)).sum(axis=0) == 1).all()  # one job each
    return np.array(kinds)[np.nanargmax(paid, axis=0)].tolist()


def check_scarce_devices_are_kept_for_the_groups_that_have_no_others() -> None:
    """One job each: queues by devices are 1/4, 1/2 and 1/2. No group's is longer than that of a scarcer one."""
    assert kept_for([0, 1, 2], [5] * 3) == [0] * 4 + [1] * 2 + [2] * 2


def check_a_group_without_jobs_leaves_its_devices_to_the_next_larger_one() -> None:
    assert kept_for([0, 2], [5] * 2) == [0] * 6 + [2] * 2  # no job wants memory-rich devices


def check_a_long_queue_takes_over_as_the_public_code_lets_it() -> None:
    """Nine general jobs of 1 have 4 devices: each waits 1/4. The memory-rich job of 5 waits 5/2, so that all count.

    9/4 > 1/2: its devices go to the general jobs, whose queue is then 10 jobs by 6 devices. The best job of 5 waits
    5/2, for which 9 general ones are done in 9/6, and the tenth, of 5, in 14/6: all ten count, and 10/6 > 1/2.
    """
    assert kept_for([0] * 9 + [1, 2], [1] * 9 + [5, 5]) == [0] * 8


def check_a_request_never_has_more_devices_than_it_asks_for() -> None:
    """Who is at work or has delivered for the next model is at most what the job's policy says, at each instant."""
    flmarket.load_plugin(HERE / "plugins.py")
    with TemporaryDirectory() as folder:
        scenario = flmarket.load(str(HERE / "scenario.toml"), {**SHORT, "rounds": 30})
        flmarket.run(scenario, seeds=[1], out=folder, progress=False)
        [run] = Path(folder).rglob("seed-0001")
        events = pd.read_csv(run / "events.csv")
    asked = {service.name: service.policy_options for service in scenario.services}
    held: dict[str, int] = defaultdict(int)
    for service, event in zip(events["service"], events["event"], strict=True):
        held[service] += event == "award"
        held[service] -= asked[service]["enough"] if event == "aggregate" else 0
        assert event != "award" or held[service] <= asked[service]["clients"]
    assert sum(held.values()) > 0


def interval(values: np.ndarray) -> str:
    return flmarket.mean_interval(values).text(".2f")


def ratios(folder: str) -> None:
    """Print the mean completion time under each order, and how many times as long it takes at random; by seed."""
    times: dict[str, dict[int, float]] = defaultdict(dict)
    seconds = flmarket.registered("measure", "seconds to target")
    for run in flmarket.read(folder).runs:
        assert run.to_target.reached.all(), (run.policy, run.seed)  # else completion times are lower bounds
        order = run.setting.scenario.market.options["order"]
        times[order][run.seed] = seconds.values(run)["market"]
    seeds = sorted(times["random"])
    columns = {order: np.array([of[seed] for seed in seeds]) for order, of in times.items()}
    for order, own in columns.items():
        speedups = ", ".join(f"{name}/{order} {interval(columns[name] / own)}" for name in columns if name != order)
        print(f"{order}: {interval(own)} s; {speedups} (n = {len(seeds)})")


if __name__ == "__main__":
    flmarket.load_plugin(HERE / "plugins.py")
    if len(sys.argv) > 1:
        ratios(sys.argv[1])
