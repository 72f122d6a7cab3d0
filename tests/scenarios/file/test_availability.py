"""Traces of availability: what a scenario may name, and what is wrong with the rest, with file and line."""

from pathlib import Path

import pytest

from des.schedule import Availability
from flmarket.core.errors import InputError
from scenarios.file.client_files import read_trace

EITHER = "client,from,to (or, in seconds, client,from_second,to_second)"
GOOD = "client,from,to\n0,1,3\n1,2,9\n\n0,5,5\n2,4,4\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``write(text)``: the file trace.csv in the current folder."""
    monkeypatch.chdir(tmp_path)
    return lambda text: Path("trace.csv").write_text(text)


def test_clients_are_there_in_their_intervals_and_nowhere_else(write) -> None:
    write(GOOD)
    there = Availability(3, read_trace("trace.csv", 3, 6).intervals.rows)
    assert [sorted({0, 1, 2} - there.offline(n)) for n in range(1, 7)] == [[0], [0, 1], [0, 1], [1, 2], [0, 1], [1]]
    assert there.offline(10) == {0, 1, 2}


def test_a_byte_order_mark_and_windows_line_ends_are_fine(write) -> None:
    write("\ufeff" + GOOD.replace("\n", "\r\n"))
    assert len(read_trace("trace.csv", 3, 6).intervals.rows) == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", f"trace.csv:1: must have the columns {EITHER}, not ''"),
        ("client,from,to_second\n", f"trace.csv:1: must have the columns {EITHER}, not 'client,from,to_second'"),
        ("client,from,to\n0,1,6\n1,1\n", "trace.csv:3: has 2 values, not 3"),
        ("client,from,to\n0,1,6\n1,one,6\n", "trace.csv:3: from must be a whole number below a billion, not 'one'"),
        ("client,from,to\n0,1,6\n-1,1,6\n", "trace.csv:3: client must be a whole number below a billion, not '-1'"),
        ("client,from,to\n0,1,6\n1,0,6\n", "trace.csv:3: from must be at least 1: rounds are counted from 1"),
        ("client,from,to\n0,1,6\n1,5,4\n", "trace.csv:3: the interval from 5 to 4 is empty"),
        ("client,from,to\n0,1,6\n2,1,6\n", "trace.csv:3: unknown client 2; clients are 0 to 1"),
        ("client,from,to\n1,3,6\n0,1,6\n1,1,3\n", "trace.csv:4: overlaps trace.csv:2, another interval of client 1"),
        (
            "client,from,to\n0,1,6\n",
            "trace.csv: client 1 is never there; give it an interval, or take it out of the market",
        ),
        ("client,from,to\n0,1,3\n1,5,9\n", "trace.csv: in round 4 of 6 no client is there; each round needs one"),
        ("client,from,to\n0,1,5\n1,1,5\n", "trace.csv: in round 6 of 6 no client is there; each round needs one"),
        ('client,from,to\n0,1,"6\n', "trace.csv:2: is not CSV: unexpected end of data"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, problem: str, write) -> None:
    write(text)
    with pytest.raises(InputError) as error:
        read_trace("trace.csv", 2, 6)
    assert str(error.value) == problem


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"client,from,to\n0,1,\xe9\n")
    for name, problem in {"none.csv": "cannot be read: No such file", ".": "cannot be read: Is a directory"}.items():
        with pytest.raises(InputError, match=problem):
            read_trace(str(tmp_path / name), 1, 1)
    with pytest.raises(InputError, match=r"latin\.csv:2: is not UTF-8 text"):
        read_trace(str(tmp_path / "latin.csv"), 1, 1)


SECONDS = "client,from_second,to_second\n1,0.5,7\n0,12.000001,13\n0,0,12.000001\n"


def test_a_trace_may_be_in_seconds(write) -> None:
    write(SECONDS)
    found = read_trace("trace.csv", 2, 6).intervals
    assert found.instants
    assert found.rows.tolist() == [[1, 500_000, 7_000_000], [0, 12_000_001, 13_000_000], [0, 0, 12_000_001]]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1,8,8.0000001", "trace.csv:5: to_second must be seconds, with at most six decimals, not '8.0000001'"),
        ("1,-8,9", "trace.csv:5: from_second must be seconds, with at most six decimals, not '-8'"),
        ("1,8.5,8.50", "trace.csv:5: the interval from 8.500000 s to 8.500000 s is empty"),
        ("1,6.999999,9", "trace.csv:5: overlaps trace.csv:2, another interval of client 1"),
        ("2,1,2", "trace.csv:5: unknown client 2; clients are 0 to 1"),
        ("1.0,8,9", "trace.csv:5: client must be a whole number below a billion, not '1.0'"),
    ],
)
def test_what_is_wrong_with_seconds_is_one_line(line: str, problem: str, write) -> None:
    write(f"{SECONDS}{line}\n")
    with pytest.raises(InputError) as error:
        read_trace("trace.csv", 2, 6)
    assert str(error.value) == problem


def test_in_seconds_too_each_client_comes_but_nobody_need_be_there(write) -> None:
    write("client,from_second,to_second\n0,100,200\n")
    assert read_trace("trace.csv", 1, 6).intervals.rows.tolist() == [[0, 100_000_000, 200_000_000]]
    with pytest.raises(InputError, match="client 1 is never there"):
        read_trace("trace.csv", 2, 6)
