"""The entries of a table are an array whose values are looked up late."""

import numpy as np
import pytest

from des.clients.entries import Entries

COLUMN = np.array([[0.4, 0.6], [0.8, 1.0]])
AT = np.array([[3, 0, 1], [2, 2, 0]])
WHOLE = [[1.0, 0.4, 0.6], [0.8, 0.8, 0.4]]


def test_entries_are_looked_up_where_indices_say() -> None:
    entries = Entries(COLUMN, AT)
    assert entries[1].tolist() == WHOLE[1]
    assert entries[0, 2] == 0.6
    assert entries[np.array([0, 1]), np.array([0, 2])].tolist() == [1.0, 0.4]
    assert entries[1, [2, 0]].tolist() == [0.4, 0.8]


def test_entries_count_as_an_array() -> None:
    entries = Entries(COLUMN, AT)
    assert np.asarray(entries).tolist() == entries.tolist() == WHOLE
    assert (entries.shape, len(entries), entries.max()) == ((2, 3), 2, 1.0)
    assert (2 * entries - entries == np.array(WHOLE)).all()
    assert np.unique(entries).tolist() == [0.4, 0.6, 0.8, 1.0]


def test_what_was_looked_up_is_read_only() -> None:
    entries = Entries(COLUMN, AT)
    for found in (entries[0], np.asarray(entries)):
        with pytest.raises(ValueError, match="read-only"):
            found[0] = 0
