"""A run on files of a user's own is replayed as it was played, whatever the files hold by now."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scenarios.build import Shelf
from scenarios.loader import parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running.planning import plan
from scenarios.running.runner import execute
from tui.state.feeds import DirectoryFeed
from tui.state.watched_run import Session


def write(labels: int) -> None:
    """Write lamps.npz: 600 images of noise."""
    which = np.arange(600) % labels
    pixels = np.random.default_rng(0).integers(0, 255, (600, 8, 8), dtype=np.uint8)
    np.savez("lamps.npz", pixels=pixels, labels=which, split=np.arange(600) % 5 == 0)


@pytest.fixture
def run(one_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """Two rounds on lamps.npz, of three labels."""
    monkeypatch.chdir(tmp_path)
    write(labels=3)
    text = one_service.replace('"digits"', '"lamps.npz"').replace("emd = [0.2, 1.0]", "emd = [0.0, 0.6]")
    [planned] = plan([parse(text.replace("[training]", '[training]\nmodel = "mlp"'))], [], [0], tmp_path, Shelf())
    execute(planned, Shelf(), workers=0)
    return planned.directory


def replay(run: RunDirectory) -> Session:
    session = Session("")
    DirectoryFeed(session, run.path).read()
    return session


def drawn_as_logged(session: Session) -> bool:
    """Whether the bids that are drawn again are those of the offers in the log."""
    assert session.world is not None
    offers = [(logged.number, offer) for logged in session.history for offer in logged.offers]
    assert offers
    return all(session.world.qualities(number).bid[0, offer.client] == offer.bid for number, offer in offers)


@pytest.mark.parametrize("change", [lambda: write(labels=4), lambda: Path("lamps.npz").unlink()], ids=["other", "gone"])
def test_a_replay_draws_what_the_run_drew(change: Callable[[], None], run: RunDirectory) -> None:
    change()
    session = replay(run)
    assert (session.state, session.error) == (RunState.COMPLETE, None)
    assert drawn_as_logged(session)
