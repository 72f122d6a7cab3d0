"""Fits: the user's own go first, what is missing names the command, and files are checked."""

from dataclasses import replace
from pathlib import Path

import pytest

from fl.surrogate.fitted import Fit, FitError, Regime, add, dqi_fit, own_folder, read, surrogate_fit

REGIME = Regime("cnn", 1, 10, 0.05, 0.0)


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLMARKET_FITS", str(tmp_path / "own"))
    return tmp_path / "own"


def entry(kind: str = "dqi", dataset: str = "kmnist", regime: Regime = REGIME, value: float = 1.0) -> Fit:
    assert kind in ("dqi", "surrogate")
    return Fit(kind, dataset, regime, {"eta1": value}, {"r2": 0.9}, {"command": "test"})  # type: ignore[arg-type]


def test_a_missing_fit_names_the_command_that_makes_it() -> None:
    with pytest.raises(FitError) as caught:
        dqi_fit("kmnist")
    assert str(caught.value) == (
        "data set 'kmnist' has no fit of the data quality indicator (eq. 6); make one with flmarket calibrate dqi "
        'SCENARIO, or set dqi = "published"'
    )
    with pytest.raises(FitError) as caught:
        surrogate_fit("kmnist", REGIME)
    assert str(caught.value) == (
        "data set 'kmnist' has no surrogate fit for cnn, local_epochs 1, batch_size 10, learning_rate 0.05, momentum 0"
        "; make one with flmarket calibrate surrogate SCENARIO, or choose another training.backend"
    )


def test_a_missing_regime_says_which_there_is() -> None:
    with pytest.raises(FitError, match=r"learning_rate 9, .*it has one for cnn, local_epochs"):
        surrogate_fit("mnist", Regime("cnn", 1, 10, 9.0, 0.0))


def test_own_fits_are_found_and_go_before_those_that_ship(own: Path) -> None:
    shipped = dqi_fit("mnist")
    add(own / "dqi.json", entry(dataset="mnist", value=7.0))
    add(own / "dqi.json", entry())
    assert own_folder() == own
    assert dqi_fit("kmnist").parameters == {"eta1": 1.0}
    assert dqi_fit("mnist").parameters == {"eta1": 7.0}
    assert dqi_fit("mnist").digest != shipped.digest
    assert dqi_fit("fashion-mnist").parameters != {"eta1": 7.0}


def test_adding_replaces_the_same_data_set_and_of_curves_the_same_regime(own: Path) -> None:
    for new in (entry(value=1.0), entry(dataset="svhn"), entry(value=2.0)):
        add(own / "dqi.json", new)
    assert [(fit.dataset, fit.parameters["eta1"]) for fit in read(own / "dqi.json")] == [("kmnist", 2.0), ("svhn", 1.0)]
    other = Regime("cnn", 2, 10, 0.05, 0.0)
    for new in (entry("surrogate"), entry("surrogate", regime=other), entry("surrogate", value=3.0)):
        add(own / "surrogate.json", new)
    assert surrogate_fit("kmnist", REGIME).parameters == {"eta1": 3.0}
    assert surrogate_fit("kmnist", other).parameters == {"eta1": 1.0}


def test_the_same_fits_make_the_same_file_in_whatever_order_they_come(own: Path) -> None:
    kmnist, svhn = entry(dataset="kmnist"), entry(dataset="svhn")
    for fit in (replace(kmnist, parameters={"eta2": 2.0, "eta1": 1.0}), svhn):
        add(own / "one" / "dqi.json", fit)
    for fit in (svhn, replace(kmnist, parameters={"eta1": 1.0, "eta2": 2.0})):
        add(own / "other" / "dqi.json", fit)
    assert (own / "one" / "dqi.json").read_bytes() == (own / "other" / "dqi.json").read_bytes()


def test_the_digest_is_of_what_results_depend_on() -> None:
    assert entry().digest == Fit("dqi", "kmnist", REGIME, {"eta1": 1.0}, {}, {}).digest
    assert entry().digest != entry(value=2.0).digest
    assert entry().digest != entry(dataset="mnist").digest


@pytest.mark.parametrize("content", ["", "[1]", '[{"dataset": "mnist"}]', '[{"dataset": 1, "regime": {"a": 1}}]'])
def test_a_broken_file_is_an_input_error(own: Path, content: str) -> None:
    own.mkdir()
    (own / "dqi.json").write_text(content)
    with pytest.raises(FitError, match=r"dqi\.json"):
        dqi_fit("mnist")


def test_a_parameter_that_is_not_a_number_is_named_with_its_file(own: Path) -> None:
    add(own / "dqi.json", entry(value=float("nan")))
    with pytest.raises(FitError, match=r"dqi\.json: is not a file of fits: a parameter of kmnist is not a finite"):
        dqi_fit("kmnist")


def test_the_folder_of_own_fits_may_begin_with_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLMARKET_FITS", "~/fits")
    assert own_folder() == Path.home() / "fits"
