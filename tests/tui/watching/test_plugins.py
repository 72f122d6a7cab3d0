"""A run with a plug-in on the screen: played by a process of its own, and replayed."""

from pathlib import Path

from learning.policy import POLICIES
from scenarios.plugins import load_plugin
from scenarios.running.protocol import Start
from tui.watching.feed import RunnerFeed
from tui.watching.session import Phase, Session
from tui.watching.tail import DirectoryFeed

HERMIT = """
from flmarket import Offer, Policy, policy

@policy("hermit")
class Hermit(Policy):
    def act(self, observation):
        return Offer.none()
"""


def replay(directory: Path) -> Session:
    session = Session("")
    DirectoryFeed(session, directory).read()
    return session


def test_the_runner_is_sent_the_plugin_and_a_replay_asks_for_it(one_service: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HERMIT)
    load_plugin(tmp_path / "mine.py")
    live = Session("")
    feed = RunnerFeed(live, Start(one_service, "a scenario", str(tmp_path / "runs"), "hermit", seed=0))
    feed.read()
    feed.close()
    assert (live.phase, live.error, live.policy) == (Phase.COMPLETE, None, "hermit")
    assert live.directory is not None
    assert {row.policy for row in live.history.rounds[0].services} == {"hermit"}
    assert replay(live.directory).phase is Phase.COMPLETE

    POLICIES._registered.clear()
    forgotten = replay(live.directory)
    assert forgotten.phase is Phase.FAILED
    assert "uses policy 'hermit' of the plug-in file mine.py; load it with --plugin FILE" in (forgotten.error or "")
