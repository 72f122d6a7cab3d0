"""How the logs are written, and exported."""

import io
import os
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from des.log_records import Kind, MarketEvent, OfferReport, Outcome, RoundReport, ServiceReport
from des.observation import Status
from flmarket.analysis.results.export import export
from flmarket.core.errors import InputError
from scenarios.file.toml import dumps
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.logs.writing import TableWriter
from support.runs import RECORDED, round_text, rounds_text

LEFT = ServiceReport(
    service="mnist", dataset="mnist", policy="hqfa", status=Status.LEFT, accuracy=0.9712, target_accuracy=0.97,
    reward=53.25, budget=20_000_000, offered=0, spent=0, wanted=0, served=0, refused=0, samples=None, mean_emd=None,
    mean_dqi=None, mean_bid=None, mean_payment=None, makespan=None, test_accuracy=0.9712,
)  # fmt: skip
ACTIVE = ServiceReport(
    service="emnist", dataset="emnist-digits", policy="lcfa", status=Status.TRAINING, accuracy=2 / 3,
    target_accuracy=0.97, reward=1.5, budget=20_000_000, offered=4_600_001, spent=4_600_001, wanted=2, served=1,
    refused=1, samples=200, mean_emd=0.4, mean_dqi=0.5, mean_bid=4.6, mean_payment=4.600001, makespan=700_000,
    test_accuracy=2 / 3,
)  # fmt: skip
REPORT = RoundReport(
    round=7,
    start=12_500_000,
    end=13_250_000,
    services=(LEFT, ACTIVE),
    offers=(
        OfferReport(
            7, "emnist", 3, 200, 0.4, 0.5, 4_600_000, 4_600_001, 4_600_001, Outcome.SERVED, 1, 12_500_000, 13_200_000
        ),
        OfferReport(7, "emnist", 5, 100, 1.0, 0.25, 1_500_000, 1_500_000, None, Outcome.OUTBID, None, None, None),
    ),
    events=(
        MarketEvent(7, 12_500_000, Kind.REFRESH, None, None, None, None),
        MarketEvent(7, 12_500_000, Kind.AWARD, "emnist", 3, 1, 4_600_001),
        MarketEvent(7, 13_200_000, Kind.AGGREGATE, "emnist", None, None, 200),
        MarketEvent(7, 13_200_000, Kind.EVALUATE, "emnist", None, None, 2 / 3),
    ),
    losses={},
    last=False,
)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory.place(tmp_path, "paper", "1a2b3c4d", "as-configured", 0)
    directory.prepare(dumps(load("paper")))
    with TableWriter(directory.path) as write:
        write(REPORT)
    (directory.path / "run.log").touch()
    directory.finish({**RECORDED, "scenario": "paper", "hash": "1a2b3c4d", "status": "complete"})
    return directory


def test_the_rounds_of_a_directory_read_back_as_they_were_written(tmp_path: Path) -> None:
    nobody = replace(REPORT, round=8, offers=(), events=tuple(event._replace(round=8) for event in REPORT.events))
    with TableWriter(tmp_path) as write:
        assert not list(rounds_text(tmp_path))
        write(REPORT)
        write(nobody)
    assert list(rounds_text(tmp_path)) == [round_text(REPORT), round_text(nobody)]


def test_rounds_csv_is_written_last_so_that_who_reads_meanwhile_finds_its_rounds_in_all_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    with TableWriter(tmp_path) as write:
        put = os.write

        def observed(descriptor: int, content: memoryview) -> int:
            written = put(descriptor, content)
            if content.tobytes().startswith(f"{REPORT.round},".encode()):
                seen.append({path.stem for path in tmp_path.iterdir() if path.read_text().count("\n") > 1})
            return written

        monkeypatch.setattr(os, "write", observed)
        write(REPORT)
    assert len(seen) == 3
    assert all("rounds" not in tables for tables in seen[:-1])
    assert "rounds" in seen[-1]


def test_a_round_in_full(run: RunDirectory) -> None:
    """Money, times and accuracies have six decimals, other floats read back exactly, what does not apply is empty."""
    assert (run.path / "rounds.csv").read_text() == (
        "round,sim_time,service,dataset,policy,status,accuracy,target_accuracy,reward,budget,offered,spent,wanted,served,"
        "refused,samples,mean_emd,mean_dqi,mean_bid,mean_payment,makespan,test_accuracy\n"
        "7,13.250000,mnist,mnist,hqfa,left,0.971200,0.970000,53.25,20.000000,0.000000,0.000000,0,0,0,,,,,,,0.971200\n"
        "7,13.250000,emnist,emnist-digits,lcfa,training,0.666667,0.970000,1.5,20.000000,4.600001,4.600001,2,1,1,200,0.4,0.5,"
        "4.600000,4.600001,0.700000,0.666667\n"
    )
    assert (run.path / "offers.csv").read_text() == (
        "round,service,client,data_size,emd,dqi,bid,payment,paid,outcome,core,start,end\n"
        "7,emnist,3,200,0.4,0.5,4.600000,4.600001,4.600001,served,1,12.500000,13.200000\n"
        "7,emnist,5,100,1.0,0.25,1.500000,1.500000,,outbid,,,\n"
    )
    assert (run.path / "events.csv").read_text() == (
        "round,sim_time,event,service,client,core,amount\n"
        "7,12.500000,refresh,,,,\n"
        "7,12.500000,award,emnist,3,1,4.600001\n"
        "7,13.200000,aggregate,emnist,,,200\n"
        "7,13.200000,evaluate,emnist,,,0.666667\n"
    )


def test_export_puts_the_run_in_front_of_each_row(run: RunDirectory) -> None:
    text = io.StringIO()
    assert export([run.path], text) == 1
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("scenario,policy,seed,round,sim_time,service,dataset,service_policy,status,")
    assert lines[2].startswith(
        "paper-1a2b3c4d,as-configured,0,7,13.250000,emnist,emnist-digits,lcfa,training,0.666667,"
    )
    assert len(lines) == 3


def test_export_gathers_runs_below_a_directory(run: RunDirectory, tmp_path: Path) -> None:
    target = tmp_path / "all.csv"
    assert export([tmp_path], target, "offers") == 1
    offers = pd.read_csv(target)
    assert list(offers["outcome"]) == ["served", "outbid"]
    assert list(offers["scenario"]) == ["paper-1a2b3c4d"] * 2


def test_an_export_that_cannot_be_written_is_refused(run: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        export([run.path], tmp_path / "missing" / "all.csv")
