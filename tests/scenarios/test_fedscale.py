"""``flmarket trace``: FedScale's traces of when phones are there, converted with one command."""

import json
import pickle
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import pytest

from support.shell import flmarket

PHONES = {
    # One of the public file's, as its readers quote it.
    3834: {
        "duration": 211625,
        "inactive": [65881, 133574, 208292, 276575, 295006, 356236, 400906, 475099],
        "finish_time": 518400,
        "active": [12788, 100044, 188992, 271372, 276663, 352625, 356267, 441193],
        "model": "CPH1801",
    },
    7: {"duration": 1, "inactive": [3601], "finish_time": 518400, "active": [3599], "model": "X"},  # between rounds
    12: {"duration": 518400, "inactive": [518400], "finish_time": 518400, "active": [0], "model": "Y"},
}


def convert(path: Path, *options: str) -> Any:
    rounds = ("--rounds", "40", "--seconds-per-round", "14400")
    return flmarket("trace", path.name, *rounds, "--out", "trace.csv", *options, cwd=path.parent)


@pytest.mark.parametrize("form", [0, 2, 4, "json"])
def test_a_client_is_there_if_it_is_when_the_round_begins(form: int | str, tmp_path: Path) -> None:
    content = json.dumps(PHONES).encode() if form == "json" else pickle.dumps(PHONES, int(form))
    (tmp_path / "phones").write_bytes(content)
    done = convert(tmp_path / "phones")
    assert done.returncode == 0, done.stderr
    assert "1 client left out: not there at the beginning of any round" in done.stderr
    assert done.stdout == "trace.csv: 2 clients, 8 intervals, 40 rounds\n"
    lines = (tmp_path / "trace.csv").read_text().splitlines()
    there = [
        n
        for n in range(1, 41)
        for now in [(n - 1) * 14400 % 518400]
        if any(a <= now <= b for a, b in zip(PHONES[3834]["active"], PHONES[3834]["inactive"], strict=True))
    ]
    found = []
    for line in lines[1:]:
        client, first, last = map(int, line.split(","))
        if client == 0:
            found += range(first, last + 1)
    assert found == there
    assert lines[-1] == "1,1,40"


def test_a_scenario_can_name_what_was_converted(two_services: str, tmp_path: Path) -> None:
    phones = {n: {"active": [0, 600 + 60 * n], "inactive": [60 * n + 1, 2000], "finish_time": 2000} for n in range(20)}
    (tmp_path / "phones.json").write_text(json.dumps(phones))
    options = ("--rounds", "6", "--seconds-per-round", "300", "--clients", "10", "--out", "there.csv")
    assert flmarket("trace", "phones.json", *options, cwd=tmp_path).returncode == 0
    (tmp_path / "market.toml").write_text(two_services)
    changes = ("--set", "clients.availability=there.csv", "--set", "clients.count=10", "--rounds", "6")
    done = flmarket("validate", "market.toml", *changes[:4], "--set", "rounds=6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (pickle.dumps({1: print}), "phones: holds more than plain data: its instruction STACK_GLOBAL is not followed"),
        (b"gone", "phones: is not a whole pickle: "),
        (b"{", "phones: is not JSON: "),
        (b"[]", "phones: is not a whole pickle: "),
        (b"{}", "phones: is not a dictionary of clients, as FedScale's traces are"),
        (json.dumps({1: 2}).encode(), "phones: client 1: is not a dictionary with active, inactive and finish_time"),
        (
            json.dumps({1: {"active": [1, 2], "inactive": [3], "finish_time": 9}}).encode(),
            "phones: client 1: active has 2 times, but inactive has 1",
        ),
        (
            json.dumps({1: {"active": ["now"], "inactive": [3], "finish_time": 9}}).encode(),
            "phones: client 1: active: 'now' is not a time in seconds",
        ),
        (
            json.dumps({1: {"active": [10**400], "inactive": [3], "finish_time": 9}}).encode(),
            "phones: client 1: active: 1000000000000000000000000000000000000000 is not a time in seconds",
        ),
        (
            json.dumps({1: {"active": [1], "inactive": [3]}}).encode(),
            "phones: client 1: finish_time: None is not a time in seconds",
        ),
        (
            json.dumps({1: {"active": [0], "inactive": [9], "finish_time": 0}}).encode(),
            "phones: client 1: finish_time must be above 0, not 0",
        ),
        (
            json.dumps({1: {"active": [1], "inactive": [2], "finish_time": 9e9}}).encode(),
            "phones: only 0 clients are there at the beginning of a round, not 1",
        ),
        (
            json.dumps({1: {"active": [0], "inactive": [20000], "finish_time": 9e9}}).encode(),
            "phones: in round 3 of 40 no client is there; each round needs one",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "phones").write_bytes(content)
    done = convert(tmp_path / "phones")
    assert done.returncode == 2
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "trace.csv").exists()


def test_json_with_a_byte_order_mark_is_json(tmp_path: Path) -> None:
    traces = {1: {"active": [0], "inactive": [9e9], "finish_time": 9e9}}
    (tmp_path / "phones").write_bytes(BOM_UTF8 + json.dumps(traces).encode())
    done = convert(tmp_path / "phones")
    assert done.returncode == 0, done.stderr
