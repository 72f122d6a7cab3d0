"""Runs on files of a user's own: verify judges them by what they were played on, not by what is there now."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.loader import dumps, parse
from scenarios.logs.directory import RunDirectory
from scenarios.world import World
from support.runs import change, played, reseal, table
from support.scenarios import SMALL

SCENARIO = f"dqi = 'published'\n{SMALL.replace('digits', 'lamps.npz')}[training]\nmodel = 'mlp'\n"


def write(labels: int, images: int = 240) -> None:
    """Write lamps.npz: noisy images of lamps in several places."""
    rng = np.random.default_rng(0)
    which = np.arange(images) % labels
    pixels = rng.integers(0, 150, (images, 8, 8), dtype=np.uint8)
    pixels[np.arange(images), which] += 100
    np.savez("lamps.npz", pixels=pixels, labels=which, split=np.arange(images) % 5 == 0)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.chdir(tmp_path)
    write(labels=3)
    return played(parse(SCENARIO), tmp_path / "runs")


def test_it_is_valid_while_they_are_there_and_when_they_are_gone(run: RunDirectory) -> None:
    assert verify(run).problems == []
    Path("lamps.npz").unlink()
    assert verify(run).problems == []


@pytest.mark.parametrize(
    ("labels", "images"), [(4, 240), (3, 30), (2, 240)], ids=["more labels", "few", "fewer labels"]
)
def test_it_is_valid_when_they_have_changed(labels: int, images: int, run: RunDirectory) -> None:
    write(labels, images)
    assert verify(run).problems == []


@pytest.mark.parametrize("make", [lambda: write(labels=4), lambda: Path("lamps.npz").unlink()], ids=["other", "gone"])
def test_bids_are_checked_with_the_labels_that_the_run_recorded(make: Callable[[], None], run: RunDirectory) -> None:
    assert run.meta()["labels"] == {"lamps.npz": 3}
    bid = float(table(run.path, "offers")[0]["bid"])
    change(run.path, "offers", {"bid": f"{bid - 0.001:.6f}"})
    make()
    assert any(": bid is " in problem and "but the run's seed draws" in problem for problem in verify(run).problems)


def test_what_no_run_has_played_is_named(run: RunDirectory) -> None:
    """A cost that no market takes, in a scenario.toml that was changed together with meta.json."""
    text = run.scenario_text().replace("per_emd = 1.0", "per_emd = 500.0")
    assert text != run.scenario_text()
    (run.path / "scenario.toml").write_text(text)
    reseal(run.path)
    problem = "clients: cost Linear.amounts(): a cost is negative, that of "
    assert verify(run).problems == ["scenario.toml: clients.cost.per_emd is not that of the run's hash"]
    scenario = parse(SCENARIO)
    changed = scenario.model_copy(
        update={
            "clients": scenario.clients.model_copy(
                update={"cost": type(scenario.clients.cost)(per_sample=0.05, per_emd=500.0)}
            )
        }
    )
    assert dumps(changed) != dumps(scenario)
    with pytest.raises(InputError) as caught:
        World(changed, 0)
    assert str(caught.value).startswith(f"scenario 'small': {problem}")


def test_a_cost_above_the_limit_that_no_run_has_played_does_not_end_verify(run: RunDirectory) -> None:
    text = run.scenario_text().replace("per_sample = 0.05", "per_sample = 900000.0")
    assert text != run.scenario_text()
    (run.path / "scenario.toml").write_text(text)
    reseal(run.path)
    assert verify(run).problems == ["scenario.toml: clients.cost.per_sample is not that of the run's hash"]
