"""A small market for the screens: played by the real simulation, with learning that is a formula."""

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from learning.play_round import play
from learning.policy import POLICIES, PolicyContext
from scenarios.build import build_market
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, parse
from scenarios.logs.run_state import RunState
from support.federations import FormulaFederation
from support.runs import round_text
from support.screens import Play, Runner, keys_are_handled  # noqa: F401
from tui.app import MarketApp
from tui.state import batch_folder, run_standing
from tui.state.watched_run import Session

RUNNERS = Path(__file__).parent / "runners"

SCENARIO = """\
# A small market.
name = "small"
description = "Three services, eight clients."
rounds = 12 # enough for an exit

[clients]
count = 8
cores = 1
data_size = [40, 80]   # images
emd = [0.2, 0.8]
cost = { per_sample = 0.05, per_emd = 1.0 }

# The first.
[[services]]
name = "alpha"
dataset = "digits"
budget = 10
target_accuracy = 0.5 # leaves early
reward_base = 60
policy = "hqfa"

[[services]]
name = "beta"
dataset = "strokes"
budget = 12
target_accuracy = 0.9
reward_base = 30
policy = "lcfa"

[[services]]
name = "gamma"
dataset = "scribbles"
budget = 8
target_accuracy = 0.95
reward_base = 100
policy = "random"
"""


@cache
def rounds_of(text: str, seed: int) -> tuple[Scenario, tuple[Mapping[str, str], ...]]:
    """A scenario, and the rounds of its run, as the lines of their tables."""
    scenario = parse(text, overrides=[] if "[training]" in text else ["training.local_epochs=1"])
    policies = {
        s.name: POLICIES.create(
            s.policy, PolicyContext(s.name, 3, 8, 1, 12, s.budget, s.target_accuracy, s.reward_base)
        )
        for s in scenario.services
    }
    market = build_market(scenario, seed, FormulaFederation([service.name for service in scenario.services]))
    texts: list[Mapping[str, str]] = []
    play(market, policies, [lambda report: texts.append(round_text(report))])
    return scenario, tuple(texts)


def played(
    text: str = SCENARIO, *, seed: int = 1, rounds: int | None = None, state: RunState = RunState.COMPLETE
) -> Session:
    """A session with the rounds of a scenario in it, as a feed would have filled it."""
    scenario, texts = rounds_of(text, seed)
    session = Session("small")
    session.identify(Path(f"/runs/small-00000000/as-configured/seed-{seed:04d}"), dumps(scenario))
    for round_ in texts[:rounds]:
        session.add(round_)
    session.move(state)
    return session


@pytest.fixture(scope="session")
def scenario_text() -> str:
    return SCENARIO


@pytest.fixture
def play_small() -> Play:
    return played


@pytest.fixture
def fake_runner() -> Runner:
    """The command of a runner from tests/tui/runners."""
    return lambda name: (sys.executable, "-P", str(RUNNERS / f"{name}.py"))


@pytest.fixture
def just_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test has written counts as new, however long that was ago on a busy machine."""
    for module in (run_standing, batch_folder):
        monkeypatch.setattr(module, "QUIET", 1000.0)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with the small scenario in it."""
    (tmp_path / "small.toml").write_text(SCENARIO)
    return tmp_path


@pytest.fixture
def app(small: Path, fake_runner: Runner) -> MarketApp:
    """The app, with the real runner process over learning that is a formula."""
    return MarketApp(out=small / "runs", folder=small, runner=fake_runner("formula"))
