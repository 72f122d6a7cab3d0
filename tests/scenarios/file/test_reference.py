"""docs/scenario.md: its reference is the schema's, and its examples work."""

import dataclasses
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath
from typing import Any, get_args

import pytest
from annotated_doc import Doc

import scenarios.file.keys
from fl.training.regime import Regime
from flmarket.core.declared import sentence_of
from scenarios.file.keys import keys, schema_at
from scenarios.file.problems import Path
from scenarios.file.reference import SECTIONS, reference, renewed
from scenarios.loader import parse, points

PAGE = FilePath(__file__).parents[3] / "docs" / "scenario.md"


def test_the_reference_page_is_what_the_schema_says() -> None:
    """If this fails: ``python -m scenarios.file.reference docs/scenario.md``."""
    page = PAGE.read_text()
    assert renewed(page, reference()) == page


def test_every_key_has_a_row_and_a_meaning() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \|.*\| (.*) \|$", reference(), re.M)
    assert all(meaning.endswith(".") for _, meaning in rows)
    for table in SECTIONS.values():
        own = {key.label for key in keys(table) if table or (key.path[0],) not in SECTIONS.values()}
        assert own <= {name for name, _ in rows}


def test_every_number_has_a_lower_limit_and_most_an_upper() -> None:
    numbers = [key for key in keys() if key.type in ("integer", "number")]
    numbers += [key for table in ("services", "interventions") for key in keys((table, 0)) if key.type == "number"]
    # The number of test images, the only one without an upper limit, is limited by the data set.
    assert {key.label for key in numbers if not re.search(r"to|at most|less than", key.range)} == {
        "training.eval_samples"
    }
    assert all(re.search(r"to|at least|more than", key.range) for key in numbers)


@pytest.mark.parametrize("field", dataclasses.fields(Regime), ids=lambda field: field.name)
def test_the_keys_of_a_regime_are_declared_by_the_regime(field: dataclasses.Field[Any]) -> None:
    for table, absent in {
        ("training",): f"as fitted, else {field.default}",
        ("training", "by_dataset", "mnist"): "as in [training]",
    }.items():
        [key] = [key for key in keys(table) if key.label == field.name]
        [sentence] = [sentence_of(note) for note in get_args(field.type) if isinstance(note, Doc)]
        assert (key.description, key.default) == (sentence, absent)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("rounds",), "integer"),
        (("timeline", "slot"), "number"),
        (("clients", "emd", 3), "number"),
        (("services", 0, "total_budget"), "number"),
        (("training", "by_dataset", "mnist", "momentum"), "number"),
    ],
)
def test_the_schema_can_be_walked(path: Path, kind: str) -> None:
    assert (schema_at(path) or {})["type"] == kind


def test_the_schema_ends_where_anything_or_nothing_may_stand() -> None:
    assert schema_at(("services", 0, "policy_options", "any", "thing")) == {}
    assert [schema_at(path) for path in (("rounds", "x"), ("clients", "x", "y"), ("services", "x"))] == [None] * 3


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("a required number", "| `budget` | number | money per round | required | 0 to 1,000,000,000 |"),
        ("an open limit", "| `departure_rate` | number |  | `0.0` | at least 0, less than 1 |"),
        ("what fits decide", "| `momentum` | number |  | as fitted, else 0.0 | at least 0, less than 1 |"),
        ("a name that fits decide", "| `model` | name |  | as fitted, else cnn |  |"),
        ("a choice", '| `device` | `"cpu"` or `"cuda"` |  | `"cpu"` |  |'),
        ("a list", "| `data_size` | list of integers | images | `[]` | at most 100 items; each 1 to 1,000,000 |"),
        ("what may be absent", "| `slot` | number | seconds | absent | more than 0, at most 1,000,000,000,000 |"),
        ("a name", "| `name` | name |  | required |  |"),
        ("any text", "| `checkpoint` | text |  | absent | 1 to 4,096 letters |"),
        ("tables", "| `services` | tables |  | required | at most 1,000 items |"),
    ],
)
def test_a_row_says_type_unit_default_and_range(line: str, row: str) -> None:
    assert row in reference(), line


def test_the_examples_of_the_page_are_one_scenario_and_its_variants() -> None:
    scenario, *variants = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert [len(points(parse(scenario + variant))) for variant in variants] == [1, 1, 1, 6, 2, 1]
    assert len(parse(scenario + variants[-1]).interventions) == 2


def test_threads_that_ask_for_the_keys_at_the_same_time_get_the_same() -> None:
    """Screens do."""
    scenarios.file.keys._root.cache_clear()
    with ThreadPoolExecutor(3) as pool:
        first, *others = pool.map(lambda _: list(keys()), range(3))
    assert others == [first, first]
