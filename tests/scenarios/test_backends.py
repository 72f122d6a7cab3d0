"""Backends: what stands behind a market's federation is chosen by name, and known nowhere else."""

import subprocess
import sys

import pytest

from fl.backends import BACKENDS, Backend, FederationSpec, TaskSpec
from fl.data.registry import load as load_dataset
from scenarios.build import backend_of, fits_of, images_of
from scenarios.loader import ScenarioError, load

each = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)


def test_a_scenario_chooses_among_them_and_gets_the_first_if_it_names_none() -> None:
    assert list(BACKENDS) == ["real", "surrogate", "noiseless"]
    assert backend_of(load("quickstart")).name == "real"
    assert backend_of(load("quickstart", ["training.backend=surrogate"])).name == "surrogate"
    with pytest.raises(ScenarioError) as caught:
        load("quickstart", ["training.backend=reel"])
    assert str(caught.value) == (
        "training.backend=reel: must be 'real', 'surrogate' or 'noiseless', not \"reel\"; did you mean 'real'?"
    )


@each
def test_each_says_what_it_needs(backend: Backend) -> None:
    scenario = load("quickstart", [f"training.backend={backend.name}", "dqi=published"])
    assert images_of(scenario) == (["digits", "scribbles", "strokes"] if backend.trains else [])
    curves = [(fit.kind, fit.dataset) for fit in fits_of(scenario)]
    assert curves == ([] if backend.trains else [("surrogate", name) for name in ("digits", "scribbles", "strokes")])


def test_curves_know_what_stale_updates_are_worth_where_work_outlasts_rounds() -> None:
    changes = {"training.backend": "surrogate", "dqi": "published", "timeline.slot": 2.0}
    scenario = load("quickstart", {**changes, "timeline.mode": "continuous"})
    curves = [(kind, name) for name in ("digits", "scribbles", "strokes") for kind in ("surrogate", "staleness")]
    assert [(fit.kind, fit.dataset) for fit in fits_of(scenario)] == curves


@each
def test_each_makes_a_federation_that_can_be_resumed(backend: Backend) -> None:
    scenario = load("quickstart")
    spec = FederationSpec([TaskSpec("alpha", "digits", scenario.training_for("digits"))], 0, load_dataset, 20, 0)
    one, other = backend.federation(spec), backend.federation(spec)
    try:
        assert list(one.kernels) == ["alpha"]
        other.restore({name: array.copy() for name, array in one.state().items()})
        assert other.accuracy("alpha") == one.accuracy("alpha")
    finally:
        one.close()
        other.close()


@pytest.mark.slow
def test_a_third_backend_is_a_federation_and_its_name() -> None:
    """Scenario files, checks and runs learn of it from the registry alone."""
    program = """
import sys
from fl import backends
from fl.training.jobs import Federation, TrainingOutcome

class Still(Federation):
    kernels = {}
    def accuracy(self, service): return 0.5
    def train_round(self, round_, jobs):
        return {name: TrainingOutcome(0.5, [1.0 for job in jobs if job.service == name])
                for name in {job.service: None for job in jobs}}
    def state(self): return {}
    def restore(self, state): pass
    def close(self): pass

class Stillness(backends.Backend):
    name, summary, trains, note = "still", "learn nothing", False, "nothing is learned"
    def federation(self, spec): return Still()

backends.BACKENDS = {**backends.BACKENDS, "still": Stillness()}

from learning.play_round import play_round
from scenarios.build import Shelf, build
from scenarios.file.keys import schema_at
from scenarios.loader import load
from scenarios.running.batch import notes

assert schema_at(("training", "backend"))["description"].endswith("; still: learn nothing.")
scenario = load("quickstart", ["training.backend=still", "services.scribbles.policy=random"])
assert notes([scenario], Shelf()) == ['backend = "still": nothing is learned']
setup = build(scenario, 0, Shelf())
assert [row.accuracy for row in play_round(setup.market, setup.policies).services] == [0.5] * 3
"""
    subprocess.run([sys.executable, "-c", program], check=True)
