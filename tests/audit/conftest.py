"""The runs that are audited, of all built-in scenarios. Only here are the packages used, to play them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flmarket
from audit.runs import Run

SURROGATE: dict[str, Any] = {"training.backend": "surrogate", "rounds": 8}
DISTURBED = SURROGATE | {
    "rounds": 16,
    "timeline.deadline": 8, "timeline.slot": 9, "clients.departure_rate": 0.2, "clients.speed": [0.5, 1.0, 2.0],
}  # fmt: skip
MIXED: dict[str, Any] = {"clients.emd": [], "clients.label_mix.dirichlet": 0.3}
GROUPS: dict[str, Any] = {
    "clients.groups": [
        {"name": "servers", "count": 3, "data_size": [700, 900], "emd": [0.2], "speed": [4], "departure_rate": 0.0},
        {"name": "phones", "count": 5, "cost": {"per_sample": 0.06, "per_emd": -0.5}, "departure_rate": 0.5},
    ]
}
MIXED_GROUPS: dict[str, Any] = {
    "clients.groups": [{"name": "even", "count": 6, "label_mix": {"dirichlet": 50.0}, "data_size": [100, 250, 600]}]
}
TEST_IMAGES_ALONE: dict[str, Any] = {"training.validation": 0}

ON_DIGITS: dict[str, Any] = {
    "rounds": 3, "services.strokes.dataset": "digits", "services.scribbles.dataset": "digits",
}  # fmt: skip
"""Real training on images that scikit-learn has: the audit does not draw strokes."""

PLAYED: tuple[tuple[str, dict[str, Any], tuple[str, ...], int], ...] = (
    ("paper", SURROGATE, ("random", "lcfa", "hqfa"), 1),
    ("paper-fitted", SURROGATE, ("hqfa", "mahdrl"), 1),
    ("paper-budget", SURROGATE, ("random",), 1),  # 3 points of its sweep
    ("paper-cores", SURROGATE, ("hqfa",), 1),  # 3
    ("scarce", SURROGATE | {"rounds": 60}, ("random", "pacing"), 3),  # some services reach their targets
    ("scarce", DISTURBED, ("lcfa",), 1),
    ("changing", {"rounds": 30}, ("hqfa", "pacing"), 1),
    ("interests", {"rounds": 20}, (), 1),  # 9
    ("private", SURROGATE, ("random", "mahdrl"), 1),
    ("mechanisms", {"rounds": 5, "clients.count": 8}, (), 1),  # 5
    ("crowd", SURROGATE | {"rounds": 4, "clients.count": 150}, (), 1),
    ("scarce", DISTURBED | GROUPS | {"dqi": "jiao"}, ("hqfa",), 1),
    ("scarce", SURROGATE | MIXED | MIXED_GROUPS, ("lcfa",), 1),
    ("scarce", SURROGATE | MIXED, ("hqfa",), 2),
    ("changing", MIXED | {"rounds": 25, "clients.label_mix.dirichlet": 2.5}, ("hqfa",), 1),
    ("quickstart", ON_DIGITS | {"training.validation": 0.2, "training.eval_samples": 200}, (), 1),
    ("quickstart", ON_DIGITS | MIXED | {"clients.data_size": [40, 60, 80]}, (), 1),
)
"""Scenario, changes that make it last seconds, policies (or its own), and how many seeds: the fast tier plays one."""
TRAINED_LONGER: tuple[tuple[str, dict[str, Any], tuple[str, ...], int], ...] = (
    ("quickstart", ON_DIGITS | TEST_IMAGES_ALONE, (), 1),
    ("quickstart", ON_DIGITS | {"clients.lasting.persistence": 0.7, "clients.lasting.drift": 0.3}, (), 1),
    ("quickstart", {"rounds": 4}, ("lcfa",), 1),
    ("quickstart", TEST_IMAGES_ALONE | {"rounds": 4}, ("lcfa",), 1),
)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """The runs of the fast tier, ordered by their path."""
    out = tmp_path_factory.mktemp("audited")
    for scenario, changes, policies, _ in PLAYED:
        flmarket.run(flmarket.load(scenario, changes), policies, 1, out=out, workers=0, progress=False)
    return [Run(path.parent) for path in sorted(out.glob("*/*/*/meta.json"))]


@pytest.fixture(scope="session")
def more_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Those of the slow tier: of the other seeds, and with more real training."""
    out = tmp_path_factory.mktemp("audited-too")
    others = [(*row[:3], range(1, row[3])) for row in PLAYED if row[3] > 1]
    for scenario, changes, policies, seeds in [*others, *TRAINED_LONGER]:
        flmarket.run(flmarket.load(scenario, changes), policies, seeds, out=out, workers=0, progress=False)
    return [Run(path.parent) for path in sorted(out.glob("*/*/*/meta.json"))]


@pytest.fixture
def copied(runs: list[Run], tmp_path: Path) -> Callable[..., Run]:
    """``copied("scarce", condition)``: a copy of the first run of a scenario that meets a condition, to be changed."""

    def copy(scenario: str, condition: Callable[[Run], bool]) -> Run:
        original = next(run for run in runs if run.meta["scenario"] == scenario and condition(run))
        return Run(Path(shutil.copytree(original.path, tmp_path / "copy")))

    return copy
