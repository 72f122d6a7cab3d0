"""Calibration: what it keeps, and what its results say where there is nothing to compare."""

import math
from pathlib import Path

import numpy as np
import pytest

from fl.calibration.curve_fit import RecordedRun
from fl.calibration.dqi_fit import Point
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.calibration import traces
from scenarios.calibration.dqi_experiments import PointLog
from scenarios.calibration.surrogate import HeldOutPolicy, calibrate_surrogate, summary, table
from scenarios.loader import load


def row(real: float, surrogate: float, error: float = 0.01) -> HeldOutPolicy:
    return HeldOutPolicy("random", real, surrogate, error, 3.0, 3.0, np.array([real]), np.array([surrogate]))


def test_the_rank_correlation_of_policies_that_do_the_same_is_unknown() -> None:
    order, error = summary([row(1.0, 0.98), row(1.0, 0.99)])
    assert math.isnan(order)
    assert error == 0.01
    assert summary([row(0.8, 0.7), row(0.9, 0.8), row(0.7, 0.6)])[0] == 1.0


def test_a_dash_stands_where_there_is_no_measure() -> None:
    """Runs of ten rounds have no error after round 10."""
    *_, last = lines = table("digits", [row(1.0, 0.98, math.nan), row(1.0, 0.99, math.nan)])
    assert last == "| **digits** | Spearman **-** | | | **-** | | |\n"
    assert "nan" not in "".join(lines)


@pytest.mark.parametrize(
    "change",
    [
        'interventions=[{round = 5, key = "clients.cores", value = 1}]',
        "runs=[{rounds = 10}]",
        "market.mechanism=uniform-price",
        "clients.availability=there.csv",
    ],
)
def test_traces_do_not_depend_on_keys_that_do_not_reach_their_market(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.csv").write_text("client,from,to\n" + "".join(f"{client},1,60\n" for client in range(16)))
    assert traces.stripped(load("quickstart", [change])) == traces.stripped(load("quickstart"))


def test_traces_survive_their_file_and_only_for_their_key(tmp_path: Path) -> None:
    path, kept = tmp_path / "deep" / "t.json", RecordedRun("digits", "lcfa", 1, 0.1, [[100]], [[0.4]], [[2.0]], [0.3])
    assert traces.read(path, {"a": 1}) is None
    traces.write(path, [kept], {"a": 1})
    assert traces.read(path, {"a": 1}) == [kept]
    assert traces.read(path, {"a": 2}) is None
    path.write_text("{")
    with pytest.raises(InputError, match="is not a file of traces"):
        traces.read(path, {"a": 1})


def test_points_that_were_measured_are_known_again_but_for_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    log = PointLog(path)
    keys = [tuple(str(n) for n in range(first, first + 10)) for first in (0, 1)]
    for key in keys:
        log.append(key, Point(int(key[7]), 0.1, 0.123456789))
    assert PointLog(path).known == log.known
    whole = path.read_text()
    path.write_text(whole[:-3])
    again = PointLog(path)
    assert list(again.known) == keys[:1]
    again.append(keys[1], Point(9, 0.1, 0.123456789))
    assert path.read_text() == whole


def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("one line without an end")
    with pytest.raises(InputError, match="it does not hold calibration points; choose another folder"):
        PointLog(path)
    assert path.read_text() == "one line without an end"


def test_a_curve_is_fitted_to_no_other_rule_than_fedavg(tmp_path: Path) -> None:
    scenario = load("quickstart", ["training.aggregation.kind=median"])
    with pytest.raises(InputError, match="a surrogate's curves are those of fedavg, not of median; remove it"):
        calibrate_surrogate(scenario, tmp_path, Shelf(), print, runs=1, held_out=1)
