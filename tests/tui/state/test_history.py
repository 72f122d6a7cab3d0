"""The rounds of a run: a window of them is in memory, the others are read from its files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.logs.columns import TABLES
from scenarios.logs.reading import LoggedRound, StoredRounds
from tui.state import history as module
from tui.state.history import History
from tui.state.watched_run import Session


@pytest.mark.parametrize(("window", "most"), [(20_000, 512), (100_000_000, 4)])
def test_memory_holds_a_window_of_rounds_and_the_files_the_others(
    play_small: Callable[..., Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int, most: int
) -> None:
    whole = [logged.text for logged in play_small().history]
    assert sum(len(part) for text in whole for part in text.values()) > 20_000
    monkeypatch.setattr(module, "WINDOW", window)
    monkeypatch.setattr(module, "MOST", most)
    for name, table in TABLES.items():
        table.path(tmp_path).write_text(table.header + "".join(text[name] for text in whole))
    history = History()
    history.stored = StoredRounds(tmp_path)
    for text in whole:
        history.stored.add_text(text)
        history.append(LoggedRound.read(text))
        assert history._newest.letters + history._looked_at.letters <= window
    for number in (1, 12, 5, 3, 1, 2, 12, 7):
        assert history[number].text == whole[number - 1]
        assert history._newest.letters + history._looked_at.letters <= window
        assert len(history._newest.rounds) <= most
        assert len(history._looked_at.rounds) <= most
    assert len(list(history)) == len(history) == 12


def test_rounds_that_the_files_do_not_hold_yet_stay_in_memory(
    play_small: Callable[..., Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 4)
    history = History()
    history.stored = StoredRounds(tmp_path)
    for logged in play_small().history:
        history.stored.add_text(logged.text)
        history.append(LoggedRound.read(logged.text))
    assert [logged.number for logged in history] == list(range(1, 13))
