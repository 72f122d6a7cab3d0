"""docs/scenario.md: its reference is the schema's, and its examples work."""

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from scenarios.file.keys import bare
from scenarios.file.reference import reference, renewed
from scenarios.file.schema import Intervention, Scenario, Service
from scenarios.loader import parse, points

PAGE = Path(__file__).parents[3] / "docs" / "scenario.md"


def test_the_reference_page_is_what_the_schema_says() -> None:
    """If this fails: ``python -m scenarios.file.reference docs/scenario.md``."""
    page = PAGE.read_text()
    assert renewed(page, reference()) == page


@pytest.mark.parametrize("module", ["scenarios.file.reference", "scenarios.judging.reference"])
def test_whoever_renews_a_page_is_told_what_is_wrong_with_it(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, binary = tmp_path / "page.md", tmp_path / "page.bin"
    page.write_text("before\n<!-- reference: begin -->\n\nof an earlier version\n<!-- reference: end -->\nafter\n")
    binary.write_bytes(b"\xff")
    monkeypatch.delitem(sys.modules, module, raising=False)  # which runs as a script here

    def renew(*names: object) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", [module, *map(str, names)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(module, run_name="__main__")
        return ended.value.code, capsys.readouterr().err

    assert renew(page) == (0, "")
    assert page.read_text().startswith("before\n<!-- reference: begin -->\n")
    assert "of an earlier version" not in page.read_text()
    usage = "name one page to renew, such as docs/scenario.md or docs/logs.md\n"
    assert [renew(), renew(page, page)] == [(2, usage)] * 2
    assert renew(binary) == (2, f"{binary}: is not UTF-8 text\n")
    assert renew(tmp_path / "absent.md") == (2, f"{tmp_path / 'absent.md'}: No such file or directory\n")


def keys(table: type[BaseModel]) -> Iterator[str]:
    """Yield the names of all keys, of tables in tables too."""
    for name, info in table.model_fields.items():
        yield name
        kind = bare(info.annotation)
        for below in (kind, *map(bare, get_args(kind))):
            if isinstance(below, type) and issubclass(below, BaseModel):
                yield from keys(below)


def test_every_key_has_a_row_and_a_meaning() -> None:
    tables = {"clients", "market", "training", "timeline", "cost", "behaviour", "lasting", "label_mix"}
    rows = re.findall(r"^\| `(?:\w+\.)?(\w+)` \|.*\| (.*) \|$", reference(), re.M)
    assert {name for name, _ in rows} == set(keys(Scenario)) - tables
    assert {*Service.model_fields, *Intervention.model_fields} <= {name for name, _ in rows}
    assert all(meaning for _, meaning in rows)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("a required number", "| `budget` | number | money per round | required | 0 to 1,000,000,000 |"),
        ("an open limit", "| `departure_rate` | number |  | `0.0` | at least 0, less than 1 |"),
        ("what fits decide", "| `momentum` | number |  | as fitted, else 0.0 | at least 0, less than 1 |"),
        ("a name that fits decide", "| `model` | name |  | as fitted, else cnn |  |"),
        ("a choice", '| `device` | `"cpu"` or `"cuda"` |  | `"cpu"` |  |'),
        ("a list", "| `data_size` | list of integers | images | required | 1 to 100 items; each 1 to 1,000,000 |"),
        ("what may be absent", "| `slot` | number | seconds | absent | more than 0, at most 1,000,000,000,000 |"),
        ("a name", "| `name` | name |  | required |  |"),
        ("any text", "| `checkpoint` | text |  | absent | 1 to 4,096 letters |"),
        ("tables", "| `services` | tables |  | required | 1 to 1,000 items |"),
    ],
)
def test_a_row_says_type_unit_default_and_range(line: str, row: str) -> None:
    assert row in reference(), line


def test_the_examples_of_the_page_are_one_scenario_and_its_variants() -> None:
    scenario, *variants = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert [len(points(parse(scenario + variant))) for variant in variants] == [1, 1, 6, 2, 1]
    assert len(parse(scenario + variants[-1]).interventions) == 2
