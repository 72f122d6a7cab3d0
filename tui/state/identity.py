"""The identity of a run: two runs are the same if they write into the same directory."""

from pathlib import Path
from typing import NamedTuple

from flmarket.core.errors import InputError
from learning.policy import AS_CONFIGURED
from scenarios.file.policy_choice import PolicyChoice
from scenarios.loader import dumps, parse, points, settled, with_policy
from scenarios.running.protocol import Start
from tui.state.watched_run import Session


class Identity(NamedTuple):
    """The values that a run's directory depends on. The data sets are left out: on one machine they are the same."""

    out: Path  # the folder of run directories
    name: str  # the scenario's name
    scenario: str  # the text of the run's scenario.toml
    policy: str  # the run's label
    seed: int  # the run's seed


def identity_of(session: Session) -> Identity | None:
    """Return a run's identity; None until it is known."""
    if session.scenario is None or session.directory is None:
        return None
    out = session.directory.parent.parent.parent.resolve()
    return Identity(out, session.scenario.name, dumps(settled(session.scenario)), session.policy, session.seed)


def identity_of_start(start: Start) -> Identity | None:
    """Return the identity of a run that is to be started; None if it cannot be, which its runner then reports."""
    try:
        scenario, label = points(parse(start.scenario, start.file))[start.point].scenario, AS_CONFIGURED
        if start.policy is not None:
            scenario, label = with_policy(scenario, start.policy), PolicyChoice.parse(start.policy).label
    except (InputError, IndexError):
        return None
    return Identity(Path(start.out).resolve(), scenario.name, dumps(settled(scenario)), label, start.seed)
