"""What a training records for those who watch: the agent's preferences, counted by hand, and files that resume."""

import json

import numpy as np
import pytest

from des.records import Feedback, Observation, Offer, Status
from learning.mahdrl.preferences import Preferences, fifths
from learning.mahdrl.record import TrainingRecord
from learning.mahdrl.training_log import Row


def seen(bids, dqi, offline=()):
    return Observation(
        round=1, rounds=2, service="alpha", services=("alpha",), dqi=np.array(dqi), bids=np.array([bids]), budget=9.0,
        cores=1, accuracy=0.1, target_accuracy=0.9, key=b"", offline=frozenset(offline),
    )  # fmt: skip


def came(*served):
    n = len(served)
    return Feedback(1, 0.2, 1.0, np.array(served, bool), np.zeros(n, bool), np.zeros(n), np.zeros(n), Status.TRAINING)


def test_clients_are_ordered_and_cut_into_fifths_without_those_that_are_offline():
    values = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    everyone = np.ones(6, bool)
    assert fifths(values, np.array([1, 1, 1, 1, 1, 0], bool)).tolist() == [4, 0, 3, 1, 2, 0]
    assert fifths(np.zeros(6), everyone).tolist() == [0, 0, 1, 2, 3, 4]  # of equal ones the first come first
    assert fifths(values, np.zeros(6, bool)).tolist() == [0] * 6


def test_preferences_are_shares_of_all_offers():
    found = Preferences()
    observation = seen([1.0, 2.0, 3.0, 4.0, 5.0], [0.5, 0.4, 0.3, 0.2, 0.1])
    found.add(observation, Offer(np.array([4, 3]), np.array([5.5, 4.0])), came(True, False))
    found.add(observation, Offer(np.array([4]), np.array([5.0])), came(True))
    found.add(observation, Offer.none(), came())
    [row] = found.rows(25)
    assert (row["episode"], row["service"], row["offers"]) == (25, "alpha", 1.0)
    assert row["served"] == pytest.approx(2 / 3)
    assert row["markup"] == pytest.approx(14.5 / 14 - 1)
    assert [row[f"bid_{part}"] for part in range(1, 6)] == pytest.approx([0, 0, 0, 1 / 3, 2 / 3])
    assert [row[f"dqi_{part}"] for part in range(1, 6)] == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])


def test_without_offers_there_are_no_shares():
    found = Preferences()
    found.add(seen([1.0], [0.5]), Offer.none(), came())
    [row] = found.rows(1)
    assert row["offers"] == 0.0
    assert {row["served"], row["markup"], row["bid_1"], row["dqi_5"]} == {""}


def test_a_resumed_record_drops_what_is_played_again(tmp_path):
    found = Preferences()
    found.add(seen([1.0], [0.5]), Offer(np.array([0]), np.array([1.0])), came(True))
    record = TrainingRecord(tmp_path, 0)
    record.write_preferences(found, 25)
    once = (tmp_path / "preferences.csv").read_bytes()
    record.write_preferences(found, 50)
    twice = (tmp_path / "preferences.csv").read_bytes()
    again = TrainingRecord(tmp_path, 25)  # killed after episode 50 was evaluated, before its state was saved
    again.write_preferences(found, 50)
    assert (tmp_path / "preferences.csv").read_bytes() == twice
    assert twice.startswith(once)
    (tmp_path / "preferences.csv").write_text("half a")
    TrainingRecord(tmp_path, 25).write_preferences(found, 25)
    assert (tmp_path / "preferences.csv").read_bytes() == once


def test_plan_and_baselines(tmp_path):
    record = TrainingRecord(tmp_path / "new" / "record", 0)
    assert not record.has_baselines()
    record.write_plan({"plan": {"episodes": 4}})
    record.write_baselines({"hqfa": Row(0, "evaluate", 0.0, 0.5, 0.25, 0.0, 0.125, {})})
    assert record.has_baselines()
    assert json.loads((tmp_path / "new" / "record" / "plan.json").read_text()) == {"plan": {"episodes": 4}}
    lines = (tmp_path / "new" / "record" / "baselines.csv").read_text()
    assert lines == "policy,reward,auc,reached,markup\nhqfa,0.5,0.25,0,0.125\n"
