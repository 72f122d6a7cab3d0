"""Pickles of plain data are read; whatever would run something is refused, and nothing of it is run."""

import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.plain_pickle import PickleError, loads

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.integers() | st.text() | st.floats(allow_nan=False), inner)
    ),
    max_leaves=20,
)


@given(value=plain, protocol=st.sampled_from(PROTOCOLS))
def test_plain_data_is_read_as_it_was_written(value: Any, protocol: int) -> None:
    assert loads(pickle.dumps(value, protocol)) == value


def test_what_is_there_twice_is_read_twice() -> None:
    shared = [1, 2]
    for protocol in PROTOCOLS:
        assert loads(pickle.dumps({"a": shared, "b": shared}, protocol)) == {"a": [1, 2], "b": [1, 2]}


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_is_called_or_imported(protocol: int, tmp_path: Path) -> None:
    made = tmp_path / "made"
    content = pickle.dumps({1: {"active": [1], "model": Evil(made)}}, protocol)
    with pytest.raises(PickleError, match=r"holds more than plain data: its instruction (STACK_)?GLOBAL"):
        loads(content)
    assert not made.exists()
    pickle.loads(content)  # noqa: S301 - shows what is not run above
    assert made.exists()  # it would have


# `len`, not `print`: Ray puts a `print` of its own into `builtins`, and the old one can then not be pickled.
@pytest.mark.parametrize("value", [len, {1, 2}, b"bytes", 1j, np.float64(2), np.arange(3), Path(), object()])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_other_data_is_refused(value: Any, protocol: int) -> None:
    with pytest.raises(PickleError, match="holds more than plain data"):
        loads(pickle.dumps([value], protocol))


@given(content=st.binary(max_size=40))
def test_any_bytes_are_data_or_refused(content: bytes) -> None:
    with suppress(PickleError):
        loads(content)


@given(value=plain, protocol=st.sampled_from(PROTOCOLS), cut=st.floats(0, 1, exclude_max=True))
def test_a_pickle_that_was_cut_off_is_refused(value: Any, protocol: int, cut: float) -> None:
    content = pickle.dumps(value, protocol)
    with pytest.raises(PickleError):
        loads(content[: int(cut * len(content))])
