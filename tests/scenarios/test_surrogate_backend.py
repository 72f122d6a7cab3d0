"""Scenarios on the surrogate backend, and scenarios whose fits are missing."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fl.surrogate.fitted import Fit, add, surrogate_fit
from fl.surrogate.learning_curves import Curve
from flmarket.core.errors import InputError
from scenarios.build import Shelf, build, known_curve
from scenarios.loader import ScenarioError, builtin_names, load, points
from scenarios.running.batch import run_all
from scenarios.running.planning import plan
from scenarios.running.run_options import RunOptions
from support.observers import Strict


def no_images(name: str) -> None:
    raise AssertionError(f"the surrogate loaded the images of {name}")


@pytest.mark.parametrize("name", builtin_names())
def test_every_built_in_scenario_has_its_fits(name: str) -> None:
    for which in ("published", "fitted"):
        scenario = load(name, [f"dqi={which}", "training.backend=surrogate"])
        for point in points(scenario):
            market = build(point.scenario, 0, Shelf(no_images)).market  # type: ignore[arg-type]
            assert market.round == 0


def test_a_run_needs_no_images_says_what_it_is_and_repeats_itself(tmp_path: Path) -> None:
    scenario = load("paper", ["training.backend=surrogate", "rounds=30"])
    texts = []
    for folder in ("a", "b"):
        shelf = Shelf(no_images)  # type: ignore[arg-type]
        runs = plan([scenario], ["hqfa"], [3], tmp_path / folder, shelf)
        result = run_all(runs, shelf, Strict(), RunOptions(workers=0 if folder == "a" else 2))
        (run,) = result.complete
        meta = run.directory.meta()
        assert meta["backend"] == "surrogate"
        assert set(meta["kernel"].values()) == {"surrogate"}
        assert set(meta["fits"]) == {"surrogate/mnist", "surrogate/fashion-mnist", "surrogate/emnist-digits"}
        assert meta["data"] == {}
        texts.append([(run.directory.path / f"{t}.csv").read_bytes() for t in ("rounds", "offers", "events")])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("overrides", "wanted"),
    [
        (["services.mnist.dataset=kmnist"], "flmarket calibrate dqi SCENARIO"),
        (["dqi=published", "services.mnist.dataset=kmnist", "training.backend=surrogate"], "calibrate surrogate"),
        (["training.backend=surrogate", "training.learning_rate=0.07"], "learning_rate 0.07"),
    ],
)
def test_a_missing_fit_is_a_problem_of_the_scenario(overrides: list[str], wanted: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load("paper-fitted", overrides)
    (problem,) = caught.value.problems
    assert wanted in problem.message


def test_real_training_with_published_parameters_needs_no_fit() -> None:
    assert load("paper", ["services.mnist.dataset=kmnist", "training.learning_rate=0.07"]).dqi == "published"


def test_runs_on_different_fits_go_into_different_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = load("quickstart", ["training.backend=surrogate"])
    shelf = Shelf(no_images)  # type: ignore[arg-type]
    before = shelf.digests(scenario)
    monkeypatch.setenv("FLMARKET_FITS", str(tmp_path))
    fit = {
        "dataset": "digits",
        "regime": {"model": "cnn", "local_epochs": 1, "batch_size": 10, "learning_rate": 0.05, "momentum": 0.0},
        "parameters": {"eta1": 0.2, "eta2": 0.3, "eta3": 0.001, "eta4": 0.7, "eta5": 0.3, "eta6": 1.2},
        "quality": {},
        "source": {},
    }
    (tmp_path / "dqi.json").write_text(json.dumps([fit]))
    after = shelf.digests(scenario)
    assert {key for key in before if before[key] != after[key]} == {"dqi fit/digits"}


def test_a_fit_of_other_images_at_the_same_relative_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, labels = np.random.default_rng(0), np.arange(3000) % 3
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        pixels = rng.integers(0, 255, (3000, 12, 12), dtype=np.uint8)
        np.savez(tmp_path / place / "parts.npz", pixels=pixels, labels=labels, split=["train"] * 2400 + ["test"] * 600)
    monkeypatch.setenv("FLMARKET_FITS", str(tmp_path))
    monkeypatch.chdir(tmp_path / "here")
    curve = surrogate_fit("mnist", load("paper").training_for("mnist"))
    measured = replace(curve, dataset="parts.npz", source={"images": Shelf().get("parts.npz").digest})
    add(tmp_path / "surrogate.json", measured)
    changes = ["services.mnist.dataset=parts.npz", "training.backend=surrogate"]
    assert "surrogate fit/parts.npz" in Shelf().digests(load("paper", changes))
    monkeypatch.chdir(tmp_path / "there")
    with pytest.raises(InputError, match=r"'parts\.npz': its surrogate fit was measured on other images; measure"):
        Shelf().digests(load("paper", changes))


def own_fit(folder: Path, dataset: str, **changed: float) -> Curve:
    """Put a user's own learning curve of a data set into a folder: that of MNIST, with parameters changed."""
    regime = load("paper", [f"services.mnist.dataset={dataset}"]).training_for(dataset)
    shipped = surrogate_fit("mnist", load("paper").training_for("mnist"))
    parameters = {**shipped.parameters, **changed}
    add(folder / "surrogate.json", Fit("surrogate", dataset, regime, parameters, {}, {}))
    return Curve.of(parameters)


def test_a_broken_fit_is_a_problem_of_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLMARKET_FITS", str(tmp_path))
    own_fit(tmp_path, "mnist", step_size=99.0)
    file = tmp_path / "surrogate.json"
    entries = json.loads(file.read_text())
    del entries[0]["parameters"]["step_size"]
    file.write_text(json.dumps(entries))
    with pytest.raises(ScenarioError) as caught:
        load("paper", ["training.backend=surrogate"])
    (found,) = caught.value.problems
    assert "the surrogate fit of data set 'mnist' for cnn, " in found.message
    assert "it has no parameter 'step_size';" in found.message
    assert load("paper", ["training.backend=real"]), "real training follows no curve"


def test_services_know_the_curve_that_their_market_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLMARKET_FITS", str(tmp_path))
    own = own_fit(tmp_path, "kmnist", step_size=0.9)
    for backend, expected in (("surrogate", own), ("noiseless", own.noiseless())):
        setup = build(load("paper", ["services.mnist.dataset=kmnist", f"training.backend={backend}"]), 0, Shelf())
        assert setup.market.federation.curves["mnist"] == expected  # type: ignore[attr-defined]
        assert setup.market.services[0].curve == setup.policies["mnist"].context.curve == expected


def test_who_trains_models_knows_no_curve_but_those_that_come_with_flmarket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's hash is not of fits that its market does not follow."""
    curves = []
    for folder in (tmp_path / "none", tmp_path):
        monkeypatch.setenv("FLMARKET_FITS", str(folder))
        scenario = load("paper", ["services.emnist.dataset=kmnist"])
        curves.append([known_curve(scenario, service) for service in scenario.services])
        for name in ("mnist", "kmnist"):
            own_fit(tmp_path, name, step_size=0.9)
    assert curves[0] == curves[1]
    assert [curve is not None for curve in curves[0]] == [True, True, False]
    another = load("paper", ["training.learning_rate=0.07"])
    assert known_curve(another, another.services[0]) == curves[0][0], "also in a regime without one"
