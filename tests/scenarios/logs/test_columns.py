"""The declaration of the columns: records, tables and the reference page agree, and a column is added in two files."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from des.log_records import Kind, MarketEvent, OfferReport, ServiceReport
from flmarket.analysis.logs_reference import measures, reference
from scenarios.file.reference import renewed
from scenarios.logs.columns import AMOUNTS, EVENTS, OFFERS, ROUNDS, TABLES
from scenarios.logs.table import MONEY, TableError, micro

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "logs.md"


def test_the_columns_are_the_fields_of_the_records_in_their_order() -> None:
    assert ROUNDS.names == ("round", "sim_time", *ServiceReport._fields)
    assert OFFERS.names == OfferReport._fields
    assert EVENTS.names == MarketEvent._fields
    assert set(AMOUNTS) <= set(Kind)


def test_the_reference_page_is_what_the_declaration_says() -> None:
    """If this fails: ``python -m flmarket.analysis.logs_reference docs/logs.md``."""
    page = PAGE.read_text()
    assert renewed(page, reference()) == page


def test_the_page_on_statistics_lists_every_measure() -> None:
    """If this fails: ``python -m flmarket.analysis.logs_reference docs/statistics.md``."""
    page = PAGE.with_name("statistics.md").read_text()
    assert renewed(page, measures()) == page


def test_money_is_read_exactly() -> None:
    assert micro("4.600000") == 4_600_000
    assert micro("-0.000001") == -1
    assert MONEY.write(4_600_001) == "4.600001"
    for wrong in ("4.6", "4.6000000", "4600000", "1.2.000000", "a.000000", ""):
        with pytest.raises(ValueError, match=r"six decimals|invalid literal"):
            micro(wrong)


def test_a_line_with_another_number_of_values_is_no_row() -> None:
    with pytest.raises(ValueError, match=r"2 values in a line of offers\.csv, not 13"):
        list(OFFERS.read("1,alpha\n"))


@pytest.mark.parametrize(
    "header", [[name for name in OFFERS.names if name != "paid"], [*OFFERS.names, "mood"], ["a", "b"], [""]]
)
def test_other_columns_are_refused(header: list[str], tmp_path: Path) -> None:
    problem = (
        "offers.csv: does not have the columns of offers.csv (docs/logs.md); start the run over with the option fresh"
    )
    (tmp_path / "offers.csv").write_text(",".join(header) + "\n")
    with pytest.raises(TableError) as error:
        OFFERS.check(tmp_path)
    assert str(error.value) == f"{tmp_path}/{problem}"
    (tmp_path / "offers.csv").write_text(OFFERS.header)
    assert OFFERS.check(tmp_path) == tmp_path / "offers.csv"


WITH_NEW_COLUMN = """
import sys
from pathlib import Path

import scenarios
from scenarios.build import Shelf
from flmarket.analysis.results.export import export
from flmarket.analysis.log_frames import read_table
from flmarket.analysis.verification.verify import verify
from scenarios.loader import load
from scenarios.logs.reading import LoggedRound
from support.runs import rounds_text
from scenarios.running.planning import plan
from scenarios.running.runner import execute

assert Path(scenarios.__file__).is_relative_to(sys.argv[1])
[run] = plan([load("scarce", ["rounds=3", "training.backend=surrogate"])], ["pacing"], [0], Path("runs"), Shelf())
execute(run, Shelf())
assert verify(run.directory).problems == []
rounds = [LoggedRound.read(text) for text in rounds_text(run.directory.path)]
prices = [max(o.paid for o in logged.offers if o.paid and o.service == row.service) if row.served else None
          for logged in rounds for row in logged.services]
assert [row.top_price for logged in rounds for row in logged.services] == prices
assert list(read_table(run.directory, "rounds")["top_price"].fillna(0)) == [p or 0 for p in prices]
export([Path("runs")], Path("all.csv"))
"""


@pytest.mark.slow
def test_a_column_of_rounds_is_added_in_two_files(tmp_path: Path) -> None:
    """The changes are those of CONTRIBUTING.md, "Adding a column to a log", made to a copy of the packages."""
    house = tmp_path / "house"
    for package in ("flmarket", "fl", "des", "learning", "scenarios"):
        shutil.copytree(ROOT / package, house / package, ignore=shutil.ignore_patterns("__pycache__"))
    note = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding a column to a log")[2]
    changed = set()
    for file, part in re.findall(r"^`([\w/]+\.py)`:(.*?)(?=^`[\w/]+\.py`:|\Z)", note, re.DOTALL | re.MULTILINE):
        for change in re.findall(r"```diff\n(.*?)```", part, re.DOTALL):
            lines = change.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if not line.startswith("+"))
            after = "".join(line[1:] for line in lines if not line.startswith("-"))
            path = house / file
            assert path.read_text().count(before) == 1, f"{file}: {before}"
            path.write_text(path.read_text().replace(before, after))
            changed.add(file)
    assert changed == {"des/log_records.py", "scenarios/logs/columns.py"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", WITH_NEW_COLUMN, str(house)],
        capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{house}{os.pathsep}{ROOT / 'tests' / 'lib'}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    exported = pd.read_csv(tmp_path / "all.csv")
    assert exported["top_price"].notna().any()
    assert set(TABLES["rounds"].names) & {"top_price"} == set()  # here the house is as it was
