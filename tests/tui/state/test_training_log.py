"""A training as its files show it: read as they grow, whatever state they are in."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flmarket.core.errors import InputError
from learning.training.records import BASELINE_COLUMNS, LOG_COLUMNS, GrowingTable, Row, log_of
from tui.state.training_log import TrainingFeed, TrainingPoint, find_logs, logs_at

LONG_AGO = 1_000_000_000
PREFERENCES = """\
episode,service,offers,served,markup,bid_1,bid_2,bid_3,bid_4,bid_5,dqi_1,dqi_2,dqi_3,dqi_4,dqi_5
2,alpha,1.5,1,0.25,0,0,0,0.25,0.75,1,0,0,0,0
2,beta,0,,,,,,,,,,,,
"""


def row(episode: int, phase: str = "train", auc: float = 0.5) -> Row:
    return Row(episode, phase, 0.1, 0.25, auc, 0.0, 0.125, {"critic_loss": 0.5} if phase == "train" else {})


def write(log: Path, rows: list[Row], *, done: int = 0) -> None:
    with log_of(log, done) as writer:
        writer.write(row.values() for row in rows)


def plan(log: Path, episodes: int) -> None:
    record = log.with_suffix(".training") / "record"
    record.mkdir(parents=True, exist_ok=True)
    provenance = {"policy": "mahdrl", "scenario": "paper", "backend": "surrogate"}
    (record / "plan.json").write_text(json.dumps({"plan": {"episodes": episodes}, "provenance": provenance}))


def grown_old(log: Path) -> None:
    os.utime(log, (LONG_AGO, LONG_AGO))


@contextmanager
def training(log: Path, done: int = 0) -> Iterator[GrowingTable]:
    with log_of(log, done) as writer:
        yield writer


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "mine.csv"


def test_rows_are_there_as_soon_as_their_episode_is_over(log: Path) -> None:
    feed = TrainingFeed(log)
    with training(log) as writer:
        feed.look()
        assert (feed.state, feed.episodes, feed.problem) == ("running", [], "")
        writer.write([row(1).values()])
        feed.look()
        assert feed.episodes == [TrainingPoint(1, {"auc": 0.5, "reward": 0.25, "reached": 0.0, "markup": 0.125})]
        writer.write([row(1, "evaluate", 0.75).values()])
        feed.look()
        assert [point.values["auc"] for point in feed.evaluations] == [0.75]
        assert len(feed.episodes) == 1


def test_a_killed_training_is_interrupted_and_a_resumed_one_continues_the_curve(log: Path) -> None:
    plan(log, 6)
    feed = TrainingFeed(log)
    with training(log) as writer:
        for episode in (1, 2):
            writer.write([row(episode).values()])
        writer.write([row(2, "evaluate").values()])
        writer.write([row(3).values()])
        feed.look()
        assert (feed.state, feed.total, len(feed.episodes)) == ("running", 6, 3)
        assert feed.what == "mahdrl on paper (surrogate)"
    feed.look()
    assert feed.state == "interrupted"
    with training(log, 2) as writer:  # plays episode 3 again
        feed.look()
        assert (feed.state, len(feed.episodes), len(feed.evaluations)) == ("running", 2, 1)
        for episode in (3, 4, 5, 6):
            writer.write([row(episode).values()])
        writer.write([row(6, "evaluate").values()])
    log.with_suffix(".safetensors").touch()
    feed.look()
    assert [point.episode for point in feed.episodes] == [1, 2, 3, 4, 5, 6]
    assert [point.episode for point in feed.evaluations] == [2, 6]
    assert feed.state == "complete"


def test_the_state_of_a_training_that_nobody_watched(log: Path) -> None:
    write(log, [row(1), row(1, "evaluate")])
    plan(log, 1)
    feed = TrainingFeed(log)
    feed.look()
    assert feed.state == "incomplete"  # just now: its agent may still be written
    grown_old(log)
    feed = TrainingFeed(log)
    feed.look()
    assert feed.state == "interrupted"
    log.with_suffix(".safetensors").touch()
    feed = TrainingFeed(log)
    feed.look()
    assert feed.state == "complete"
    plan(log, 4)  # resumed with more episodes, and killed
    feed = TrainingFeed(log)
    feed.look()
    assert feed.state == "interrupted"


def test_half_written_files_are_read_as_far_as_they_go(log: Path) -> None:
    write(log, [row(1), row(2), row(2, "evaluate")])
    content = log.read_bytes()
    for length in range(len(content)):
        log.write_bytes(content[:length])
        feed = TrainingFeed(log)
        feed.look()
        assert feed.problem == ""
        assert len(feed.episodes) <= 2
    plan(log, 4)
    record = log.with_suffix(".training") / "record"
    for name in ("plan.json", "baselines.csv", "preferences.csv"):
        (record / name).write_bytes(b'{"plan": \xff,1,2\n,,')
    feed.look()
    assert (feed.total, feed.baselines, feed.preferences) == (None, {}, [])


def test_what_is_no_log_is_named_with_its_line(log: Path) -> None:
    write(log, [row(1)])
    with log.open("a") as file:
        file.write("2,train,what,is,this\n")
    feed = TrainingFeed(log)
    feed.look()
    assert feed.problem == f"{log}:3: is not a line of a training log"
    log.write_text("a,b\n1,2\n")
    feed.look()
    assert feed.problem == f"{log}: is not the log of a training"
    write(log, [row(1)])
    with log.open("a") as file:
        file.write(f"2,train,{'x' * 200_000}\n")
    feed.look()
    assert feed.problem.startswith(f"{log}:3: is not a line of a training log")
    log.unlink()
    feed.look()
    assert feed.state in {"incomplete", "interrupted"}


def test_baselines_and_preferences(log: Path) -> None:
    write(log, [row(1)])
    plan(log, 4)
    record = log.with_suffix(".training") / "record"
    (record / "baselines.csv").write_text("policy,reward,auc,reached,markup\nhqfa,0.5,0.875,0,0\n")
    (record / "preferences.csv").write_text(PREFERENCES)
    feed = TrainingFeed(log)
    feed.look()
    assert feed.baselines == {"hqfa": {"reward": 0.5, "auc": 0.875, "reached": 0.0, "markup": 0.0}}
    alpha, beta = feed.preferences
    assert (alpha.episode, alpha.offers, alpha.bids, alpha.dqis) == (2, 1.5, (0, 0, 0, 0.25, 0.75), (1, 0, 0, 0, 0))
    assert (beta.offers, beta.served, beta.markup, beta.bids) == (0.0, None, None, ())


def test_episodes_a_second_count_those_that_are_played_while_it_looks(log: Path) -> None:
    plan(log, 20)
    now = 0.0
    with training(log) as writer:
        for episode in range(1, 6):
            writer.write([row(episode).values()])
        feed = TrainingFeed(log, clock=lambda: now)
        feed.look()
        for episode in range(6, 11):
            now += 0.5
            writer.write([row(episode).values()])
            feed.look()
        assert feed.pace.rate() == 2.0
        assert feed.left == 5.0
    feed.look()
    assert feed.left is None


def test_a_training_is_found_by_any_of_its_names(tmp_path: Path) -> None:
    one, two = tmp_path / "a-seed0.csv", tmp_path / "a-seed1.csv"
    for log in (one, two, tmp_path / "b.csv"):
        write(log, [row(1)])
    (tmp_path / "data.csv").write_text("x,y\n")
    assert find_logs(tmp_path) == [one, two, tmp_path / "b.csv"]
    assert find_logs(tmp_path / "a") == [one, two]
    assert find_logs(tmp_path / "b") == [tmp_path / "b.csv"]
    for suffix in (".csv", ".safetensors", ".json", ".training"):
        assert find_logs(tmp_path / f"a-seed1{suffix}") == [two]
    assert find_logs(tmp_path / "c") == []
    with pytest.raises(InputError, match=r"data.csv: there is no training; flmarket train writes NAME.csv next to"):
        logs_at(tmp_path / "data.csv")


def test_what_is_read_is_what_train_writes() -> None:
    from learning.training.records import FIFTHS
    from tui.state import training_log as training

    assert set(training.NEEDED) <= set(LOG_COLUMNS)
    assert set(training.METRICS) < set(BASELINE_COLUMNS)
    assert training.PARTS == FIFTHS


def test_a_pipe_is_no_log_and_nobody_waits_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert find_logs(tmp_path) == []
