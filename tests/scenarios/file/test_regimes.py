"""How a data set is trained where the scenario leaves it open: as its fits were measured, else the general default."""

from dataclasses import replace
from pathlib import Path

import pytest

from fl.backends import BACKENDS
from fl.data.registry import DATASETS
from fl.surrogate.fitted import Fit, add, dqi_fit, shipped_regime
from fl.training.regime import Regime
from scenarios.file.regimes import KEYS
from scenarios.file.schema import Scenario
from scenarios.loader import digest, dumps, load, parse, points, regimes_of, settled
from support.scenarios import problems

SMALLEST = """\
name = "smallest"
rounds = 3

[clients]
count = 4
cores = 1
data_size = [100, 200]
emd = [0.4, 1.0]
cost = { per_sample = 0.025, per_emd = 1.0 }

[[services]]
name = "alpha"
dataset = "mnist"
budget = 20
target_accuracy = 0.97
reward_base = 60
policy = "hqfa"
"""
RIVAL = """
[[services]]
name = "beta"
dataset = "fashion-mnist"
budget = 20
target_accuracy = 0.85
reward_base = 100
policy = "random"
"""

FITTED = [name for name in DATASETS.names() if shipped_regime(name)]


def words(scenario: Scenario) -> list[str]:
    return [str(chosen) for chosen in regimes_of([scenario])]


def test_six_data_sets_come_with_fits() -> None:
    assert FITTED == ["digits", "strokes", "scribbles", "mnist", "fashion-mnist", "emnist-digits"]


@pytest.mark.parametrize("name", FITTED)
def test_curve_and_dqi_of_a_data_set_were_measured_in_one_regime(name: str) -> None:
    """But for the epochs: an experiment for the DQI trains a network to its end."""
    regime = shipped_regime(name)
    assert regime is not None
    assert replace(dqi_fit(name).regime, local_epochs=regime.local_epochs) == regime


@pytest.mark.parametrize("name", FITTED)
def test_the_smallest_scenario_meets_the_curve_of_its_data_set(name: str) -> None:
    scenario = parse(SMALLEST, overrides=[f"services.alpha.dataset={name}", "training.backend=surrogate"])
    assert scenario.training_for(name) == shipped_regime(name)
    assert BACKENDS["surrogate"].fits(name, scenario.training_for(name))


def test_services_with_different_data_sets_each_have_their_own() -> None:
    scenario = parse(SMALLEST + RIVAL)
    assert scenario.training_for("mnist") == Regime("cnn", 1, 10, 0.04, 0.0)
    assert scenario.training_for("fashion-mnist") == Regime("cnn", 2, 10, 0.025, 0.0)
    assert words(scenario) == [
        "mnist: cnn, local_epochs 1, batch_size 10, learning_rate 0.04, momentum 0 (as in its fits)",
        "fashion-mnist: cnn, local_epochs 2, batch_size 10, learning_rate 0.025, momentum 0 (as in its fits)",
    ]


def test_what_the_scenario_says_stays() -> None:
    scenario = parse(SMALLEST + RIVAL, overrides=["training.learning_rate=0.05"])
    assert scenario.training_for("mnist") == Regime("cnn", 1, 10, 0.05, 0.0)
    assert scenario.training_for("fashion-mnist") == Regime("cnn", 2, 10, 0.05, 0.0)
    assert words(scenario)[1] == (
        "fashion-mnist: cnn, local_epochs 2, batch_size 10, learning_rate 0.05, momentum 0 (learning_rate as the "
        "scenario says, the rest as in its fits)"
    )
    assert words(load("paper"))[0].endswith("momentum 0 (as the scenario says)")


def test_the_table_of_a_data_set_goes_first() -> None:
    table = "[training]\nlearning_rate = 0.01\n\n[training.by_dataset.fashion-mnist]\nlocal_epochs = 5\n"
    scenario = parse(SMALLEST + RIVAL + table)
    assert scenario.training_for("mnist") == Regime("cnn", 1, 10, 0.01, 0.0)
    assert scenario.training_for("fashion-mnist") == Regime("cnn", 5, 10, 0.01, 0.0)
    assert dict(scenario.regime_of("fashion-mnist").origins) == {
        "model": "fits", "local_epochs": "scenario", "batch_size": "fits", "learning_rate": "scenario",
        "momentum": "fits",
    }  # fmt: skip


def test_a_data_set_without_fits_has_the_general_default() -> None:
    scenario = parse(SMALLEST, overrides=["services.alpha.dataset=kmnist", "dqi=published"])
    assert scenario.training_for("kmnist") == Regime()
    assert words(scenario) == [
        "kmnist: cnn, local_epochs 1, batch_size 10, learning_rate 0.05, momentum 0 (by default: flmarket has no fits "
        "of it)"
    ]


def test_fits_of_the_users_own_change_no_regime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario means the same on every machine."""
    monkeypatch.setenv("FLMARKET_FITS", str(tmp_path))
    add(tmp_path / "surrogate.json", Fit("surrogate", "mnist", Regime(learning_rate=0.9), {}, {}, {}))
    assert parse(SMALLEST).training_for("mnist").learning_rate == 0.04


def test_a_sweep_of_one_key_leaves_the_others_as_they_are() -> None:
    scenario = parse(SMALLEST + RIVAL + '[sweep]\n"training.local_epochs" = [1, 2, 3]\n')
    regimes = [point.scenario.training_for("fashion-mnist") for point in points(scenario)]
    assert regimes == [Regime("cnn", epochs, 10, 0.025, 0.0) for epochs in (1, 2, 3)]


def test_a_settled_scenario_says_all_and_trains_the_same() -> None:
    scenario = parse(SMALLEST + RIVAL)
    whole = settled(scenario)
    assert settled(whole) == whole == parse(dumps(whole))
    for name in ("mnist", "fashion-mnist"):
        assert whole.training_for(name) == scenario.training_for(name)
        assert set(whole.regime_of(name).origins.values()) == {"scenario"}
    assert digest(scenario) == digest(whole)


def test_what_data_sets_share_is_written_once() -> None:
    written = settled(parse(SMALLEST + RIVAL)).training.model_dump(exclude_none=True)
    assert {key: written[key] for key in KEYS} == {
        "model": "cnn", "local_epochs": 1, "batch_size": 10, "learning_rate": 0.05, "momentum": 0.0,
    }  # fmt: skip
    assert written["by_dataset"] == {
        "fashion-mnist": {"local_epochs": 2, "learning_rate": 0.025},
        "mnist": {"learning_rate": 0.04},
    }
    alone = settled(parse(SMALLEST)).training
    assert (alone.learning_rate, alone.by_dataset) == (0.04, {})  # type: ignore[attr-defined]


def test_another_regime_is_another_hash() -> None:
    assert digest(parse(SMALLEST)) == digest(parse(SMALLEST, overrides=["training.learning_rate=0.04"]))
    assert digest(parse(SMALLEST)) != digest(parse(SMALLEST, overrides=["training.learning_rate=0.05"]))


def test_a_surrogate_in_a_regime_without_a_curve_is_refused() -> None:
    [problem] = problems(SMALLEST, "training.backend=surrogate", "training.learning_rate=0.05")
    assert problem == (
        "f:13: services.alpha.dataset: data set 'mnist' has no surrogate fit for cnn, local_epochs 1, "
        "batch_size 10, learning_rate 0.05, momentum 0 (it has one for cnn, local_epochs 1, batch_size 10, "
        "learning_rate 0.04, momentum 0); make one with flmarket calibrate surrogate SCENARIO, or choose another "
        "training.backend"
    )
