"""The log of a training that grows, its record, and the preferences of an evaluation, worked out by hand."""

import errno
import json
import os

import numpy as np
import pytest

from des.observation import Feedback, Offer, Status
from flmarket.core.errors import InputError
from learning.training import records
from learning.training.records import GrowingTable, Preferences, Row, fifths


@pytest.mark.parametrize("torn", ["", "2", "2,", "2,b\n10,c\n"])
def test_a_table_is_continued_after_the_last_row_that_is_kept(tmp_path, torn):
    """Whatever a kill left of the row after it."""
    path = tmp_path / "table.csv"
    path.write_text(f"episode,word\n1,a\n1,b\n{torn}")
    with GrowingTable(path, ("episode", "word"), 1) as table:
        table.write([{"episode": 2, "word": "z"}])
    assert path.read_text() == "episode,word\n1,a\n1,b\n2,z\n"


def test_plan_and_baselines(tmp_path):
    out, folder = tmp_path / "new" / "agent.safetensors", tmp_path / "new" / "agent.training" / "record"
    assert not records.has_baselines(out)
    records.record_plan(out, {"plan": {"episodes": 4}})
    records.record_baselines(out, {"hqfa": Row(0, "evaluate", 0.0, 0.5, 0.25, 0.0, 0.125, {})})
    assert records.has_baselines(out)
    assert json.loads((folder / "plan.json").read_text()) == {"plan": {"episodes": 4}}
    assert (folder / "baselines.csv").read_text() == "policy,reward,auc,reached,markup\nhqfa,0.5,0.25,0,0.125\n"


def test_only_a_full_disk_asks_for_room(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"file/log\.csv: cannot be written: Not a directory$|: File exists$"):
        GrowingTable(tmp_path / "file" / "log.csv", ["episode"])

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with GrowingTable(tmp_path / "log.csv", ["episode"]) as log:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(
            InputError, match=r"No space left on device; make room, then continue with the option resume$"
        ):
            log.sync()


def came(*served):
    n = len(served)
    return Feedback(1, 0.2, 1.0, np.array(served, bool), np.zeros(n, bool), np.zeros(n), np.zeros(n), Status.TRAINING)


def test_clients_are_ordered_and_cut_into_fifths_without_those_that_are_offline():
    values = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    assert fifths(values, np.array([1, 1, 1, 1, 1, 0], bool)).tolist() == [4, 0, 3, 1, 2, 0]
    assert fifths(np.zeros(6), np.ones(6, bool)).tolist() == [0, 0, 1, 2, 3, 4]  # of equal ones the first come first
    assert fifths(values, np.zeros(6, bool)).tolist() == [0] * 6


def test_preferences_are_shares_of_all_offers(make_observation):
    found = Preferences()
    seen = make_observation([[1.0, 2.0, 3.0, 4.0, 5.0]], [0.5, 0.4, 0.3, 0.2, 0.1])
    found.add(seen, Offer(np.array([4, 3]), np.array([5.5, 4.0])), came(True, False))
    found.add(seen, Offer(np.array([4]), np.array([5.0])), came(True))
    found.add(seen, Offer.none(), came())
    [row] = found.rows(25)
    assert (row["episode"], row["service"], row["offers"]) == (25, "s0", 1.0)
    assert row["served"] == pytest.approx(2 / 3)
    assert row["markup"] == pytest.approx(14.5 / 14 - 1)
    assert [row[f"bid_{part}"] for part in range(1, 6)] == pytest.approx([0, 0, 0, 1 / 3, 2 / 3])
    assert [row[f"dqi_{part}"] for part in range(1, 6)] == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])


def test_without_offers_there_are_no_shares(make_observation):
    found = Preferences()
    found.add(make_observation([[1.0]], [0.5]), Offer.none(), came())
    [row] = found.rows(1)
    assert row["offers"] == 0.0
    assert {row["served"], row["markup"], row["bid_1"], row["dqi_5"]} == {""}
