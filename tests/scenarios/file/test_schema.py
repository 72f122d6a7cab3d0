"""The models: what they promise to the documentation and the form, and to callers."""

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from types import UnionType
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from fl.regime import Regime
from scenarios.file.checks import Catalogue
from scenarios.file.keys import bare
from scenarios.file.schema import Scenario, Training, TrainingOverride
from scenarios.file.wording import annotation_at
from scenarios.loader import parse


def models(annotation: Any = Scenario) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models(field.annotation)
    for inner in get_args(annotation):
        yield from models(inner)


FIELDS = {f"{model.__name__}.{name}": field for model in models() for name, field in model.model_fields.items()}


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())
def test_every_key_is_described(field: FieldInfo) -> None:
    assert field.description
    assert field.description.endswith(".")


NUMBERS = [
    name
    for name, field in FIELDS.items()
    if not {int, float}.isdisjoint(
        get_args(field.annotation) if get_origin(field.annotation) is UnionType else [field.annotation]
    )
]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_a_lower_limit_and_most_an_upper(name: str) -> None:
    text = str(FIELDS[name])
    assert "ge=" in text.lower() or "gt=" in text.lower()
    # The number of test images, the only open one, is limited by the data set.
    assert "le=" in text.lower() or "lt=" in text.lower() or name == "Training.eval_samples"


def test_scenarios_are_read_only(market: str, catalogue: Catalogue) -> None:
    scenario = parse(market, catalogue=catalogue)
    with pytest.raises(ValidationError):
        scenario.clients.cores = 3  # type: ignore[misc]


def test_a_data_set_may_train_differently(market: str, catalogue: Catalogue) -> None:
    scenario = parse(market, catalogue=catalogue)
    assert scenario.training_for("mnist") == Regime(learning_rate=0.05, local_epochs=1)
    assert scenario.training_for("digits") == Regime(learning_rate=0.05, local_epochs=3)


@pytest.mark.parametrize("field", dataclasses.fields(Regime), ids=lambda field: field.name)
def test_the_keys_of_a_regime_are_declared_by_the_regime(field: dataclasses.Field[Any]) -> None:
    absent = {Training: f"as fitted, else {field.default}", TrainingOverride: "as in [training]"}
    for table, words in absent.items():
        key = table.model_fields[field.name]
        assert (bare(key.annotation), key.default) == (field.type, None)
        assert type(None) in get_args(key.annotation)
        metadata = [
            *key.metadata,
            *(note for part in get_args(key.annotation) for note in getattr(part, "metadata", ())),
        ]
        limits = {name: getattr(limit, name) for limit in metadata for name in ("ge", "gt", "le", "lt")
                  if hasattr(limit, name)}  # fmt: skip
        extra = {**field.metadata.get("json_schema_extra", {}), "absent": words}
        assert limits | {"description": key.description, "json_schema_extra": key.json_schema_extra} == {
            **field.metadata, "json_schema_extra": extra,
        }  # fmt: skip


def test_services_are_found_by_name(market: str, catalogue: Catalogue) -> None:
    scenario = parse(market, catalogue=catalogue)
    assert scenario.service("digits").budget == 10.5
    with pytest.raises(KeyError):
        scenario.service("emnist")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("rounds",), int),
        (("timeline", "slot"), float),
        (("clients", "emd", 3), float),
        (("services", 0, "budget"), float),
        (("services", 0, "policy_options", "any", "thing"), Any),
        (("training", "by_dataset", "mnist", "momentum"), float),
        (("rounds", "x"), None),
        (("clients", "x", "y"), None),
    ],
)
def test_the_schema_can_be_walked(path: tuple[str | int, ...], expected: object) -> None:
    assert annotation_at(path) is expected


def test_reading_scenarios_needs_no_torch() -> None:
    code = (
        "import sys, scenarios.loader as l; l.load('quickstart'); l.points(l.load('paper-cores')); "
        "print([m for m in ('torch', 'torchvision', 'textual', 'pandas', 'sklearn', 'simpy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
