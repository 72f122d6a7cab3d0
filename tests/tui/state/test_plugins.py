"""A run with a plug-in on the screen: played by a process of its own, and replayed."""

from pathlib import Path

import pytest

from fl.data.registry import DATASETS
from learning.policy import POLICIES
from scenarios.build import Shelf
from scenarios.loader import parse
from scenarios.logs.run_state import RunState
from scenarios.plugin_files import load_plugin
from scenarios.running.planning import plan
from scenarios.running.runner import execute
from scenarios.running.steering import Start
from tui.state.feeds import DirectoryFeed, LiveRun
from tui.state.watched_run import Session

HERMIT = """
from flmarket import Offer, Policy, policy

@policy("hermit")
class Hermit(Policy):
    def act(self, observation):
        return Offer.none()
"""

NOISE = """
import numpy as np
from flmarket import dataset

@dataset("noise")
def noise():
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (1000, 8, 8), np.uint8)
    return images, np.arange(1000) % 5, images[:100], np.arange(100) % 5
"""


def played(scenario: str, plugin: str, policy: str, folder: Path) -> Session:
    """A run that the runner of the screens has played with a plug-in."""
    (folder / "mine.py").write_text(plugin)
    load_plugin(folder / "mine.py")
    live = Session("")
    feed = LiveRun(live, Start(scenario, "a scenario", str(folder / "runs"), policy, seed=0))
    feed.read()
    feed.close()
    return live


def replay(directory: Path) -> Session:
    session = Session("")
    DirectoryFeed(session, directory).read()
    return session


@pytest.mark.slow
def test_the_runner_is_sent_the_plugin_and_a_replay_does_without_it(one_service: str, tmp_path: Path) -> None:
    live = played(one_service, HERMIT, "hermit", tmp_path)
    assert (live.state, live.error, live.policy) == (RunState.COMPLETE, None, "hermit")
    assert live.directory is not None
    assert {row.policy for row in live.history[1].services} == {"hermit"}
    assert replay(live.directory).state is RunState.COMPLETE

    POLICIES._registered.clear()
    forgotten = replay(live.directory)
    assert (forgotten.state, forgotten.error, len(forgotten.history)) == (RunState.COMPLETE, None, 4)
    assert forgotten.world is not None
    assert forgotten.world.conditions(1).budgets == {"alpha": 6_500_000}


def test_a_replay_asks_for_a_data_set_that_bids_depend_on(one_service: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NOISE)
    load_plugin(tmp_path / "mine.py")
    (run,) = plan([parse(one_service.replace('"digits"', '"noise"'))], [], [0], tmp_path / "runs", shelf := Shelf())
    execute(run, shelf, workers=0)
    assert replay(run.directory.path).state is RunState.COMPLETE
    DATASETS._registered.clear()
    forgotten = replay(run.directory.path)
    assert forgotten.state is RunState.UNREADABLE
    assert forgotten.error == (
        f"{run.directory.path}: uses data set 'noise' of the plug-in file mine.py; load that file"
    )
