"""Tables as data frames: their types are the declared ones, and no word is mistaken for a missing value."""

import csv
import io
from pathlib import Path

import pandas as pd
import pytest

from flmarket.analysis.log_frames import TableName, in_units, read_by_rounds, read_table, write_frame, written
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.run_results import read_runs
from flmarket.core.errors import InputError
from scenarios.loader import parse
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory
from support.runs import played


@pytest.fixture(scope="module")
def run(two_services: str, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run of services that are called NA and null, which many a reader of CSV takes for nothing."""
    text = two_services.replace('"alpha"', '"NA"').replace('"beta"', '"null"')
    return played(parse(text), tmp_path_factory.mktemp("named"))


@pytest.mark.parametrize("name", ["rounds", "offers", "events"])
def test_a_frame_has_the_columns_and_types_of_the_declaration(name: TableName, run: RunDirectory) -> None:
    frame = in_units(read_table(run, name), name)
    assert tuple(frame.columns) == TABLES[name].names
    for column in TABLES[name].columns:
        found = frame[column.name]
        if column.type.dtype == "string":
            assert pd.api.types.is_string_dtype(found.dropna())
        else:
            assert found.dtype == ("float64" if column.empty else column.type.dtype)
        assert bool(column.empty) or found.notna().all()


@pytest.mark.parametrize("name", ["rounds", "offers", "events"])
def test_a_table_is_written_as_it_was_read_to_the_last_digit(name: TableName, run: RunDirectory) -> None:
    text = written(read_table(run, name), name).to_csv(index=False, lineterminator="\n")
    assert text == TABLES[name].path(run.path).read_text()


@pytest.mark.parametrize("lines", [30, 100_000, None])
def test_blocks_of_rounds_make_up_the_tables(lines: int | None, run: RunDirectory) -> None:
    blocks = [*read_by_rounds(run, ["offers", "events"], lines)]
    ends = [last for last, _ in blocks]
    assert ends[-1] is None
    assert (len(ends) == 1) == (lines in (100_000, None))
    for name in ("offers", "events"):
        begin = 0
        for last, tables in blocks:
            rounds = set(tables[name]["round"])
            assert all(begin < number <= (last or 4) for number in rounds)
            begin = last or 0
        pd.testing.assert_frame_equal(pd.concat([tables[name] for _, tables in blocks]), read_table(run, name))


def test_a_line_in_the_wrong_place_stays_with_its_neighbours(run: RunDirectory, tmp_path: Path) -> None:
    text = "".join(f"{number},0.0,refresh,,,,\n" for number in (1, 1, 3, 1, 2, 2, 3, 3))
    (tmp_path / "events.csv").write_text(TABLES["events"].header + text)
    blocks = [*read_by_rounds(RunDirectory(tmp_path), ["events"], 2)]
    assert [(last, [*tables["events"]["round"]]) for last, tables in blocks] == [
        (1, [1, 1, 3, 1]),
        (2, [2, 2]),
        (None, [3, 3]),
    ]


def test_services_may_be_called_na_and_null(run: RunDirectory, tmp_path: Path) -> None:
    assert set(read_table(run, "rounds")["service"]) == {"NA", "null"}
    assert set(read_table(run, "events")["service"].dropna()) == {"NA", "null"}
    estimates = make_report(read_runs([run])).estimates
    assert {row.service for row in estimates} == {"NA", "null", "market"}
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'flmarket[parquet]')")
    from flmarket.analysis.results.export import export_parquet

    export_parquet([run.path], tmp_path / "all.parquet")
    assert set(pd.read_parquet(tmp_path / "all.parquet")["service"]) == {"NA", "null"}


def test_a_table_without_rows_is_an_empty_frame(run: RunDirectory, tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    (tmp_path / "offers.csv").write_text(TABLES["offers"].header)
    assert read_table(directory, "offers").empty
    with pytest.raises(InputError, match=r"rounds\.csv: cannot be read: .*No such file"):
        read_table(directory, "rounds")
    (tmp_path / "offers.csv").write_text(TABLES["offers"].header + "1,a,x,1,1,1,1,1,1,1,1,1,1\n")
    with pytest.raises(InputError, match=r"offers\.csv: cannot be read: "):
        read_table(directory, "offers")


def test_text_of_a_stranger_is_no_formula_of_a_spreadsheet_and_numbers_stay() -> None:
    cells = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "-1.5", "+2", "-1e-05", "-.5", "a=b", ""]
    frame = pd.DataFrame({"text": cells, "number": [-0.5] * len(cells), "=key": [None, *cells[1:]]})
    write_frame(frame, file := io.StringIO())
    found = list(csv.reader(io.StringIO(file.getvalue())))
    kept = ["'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(1)", *cells[4:]]
    assert found[0] == ["text", "number", "'=key"]
    assert [row[0] for row in found[1:]] == kept
    assert {row[1] for row in found[1:]} == {"-0.5"}
    assert [row[2] for row in found[1:]] == ["", *kept[1:]]
