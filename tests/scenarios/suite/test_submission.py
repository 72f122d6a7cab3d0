"""Submission files, while several processes write them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fl.errors import InputError
from fl.files import replacing
from fl.locks import alone_in
from scenarios.suite.frozen import read as read_suite
from scenarios.suite.playing import entry
from scenarios.suite.submission import alone_with, prepare, read


def test_who_prepares_a_file_neither_fails_nor_disturbs_who_writes_it(tmp_path: Path) -> None:
    suite = read_suite()
    path, begun = tmp_path / "one.json", entry("random", suite)

    def write(times: int) -> None:
        for time in range(times):
            with alone_in(tmp_path):
                replace(begun, method=f"{time}").write(path, suite)

    with ThreadPoolExecutor() as pool:
        writing = pool.submit(write, 100)
        while not writing.done():
            prepare(path)
        writing.result()
    assert read(path, suite).method == "99"
    assert [it.name for it in tmp_path.iterdir()] == ["one.json"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"method":', '"comment": "mine", "method":', "unknown key 'comment'"),
        ('"agent":', '"agents": null, "agent":', "unknown key 'agents'; did you mean 'agent'"),
        ('"method":', '"method": "mine", "method":', "'method' is there twice; leave one of them out"),
        ('"7101"', '"7101": 0.9, "7101"', "'7101' is there twice"),
        ('"results": {', '"results": {"nowhere/resident/all": {},', "'nowhere/resident/all' has no seeds"),
    ],
)
def test_nothing_that_a_file_says_is_ignored(old: str, new: str, problem: str, tmp_path: Path) -> None:
    suite, path = read_suite(), tmp_path / "one.json"
    [cell] = suite.cells(("resident",), ("alone",), (7101,))
    entry("random", suite).with_results({cell: 0.5}).write(path, suite)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=rf"one\.json: .*{problem}"):
        read(path, suite)


def test_who_prepares_a_file_waits_for_who_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    with ThreadPoolExecutor() as pool:
        with alone_in(tmp_path), replacing(path) as file:
            preparing = pool.submit(prepare, path)
            file.write(b"written")
        preparing.result(timeout=60)
    assert path.read_bytes() == b"written"


def test_a_folder_that_is_gone_is_made_again_and_one_that_cannot_be_is_an_input_error(tmp_path: Path) -> None:
    suite = read_suite()
    path = tmp_path / "folder/one.json"
    prepare(path)
    path.parent.rmdir()
    with alone_with(path):
        entry("random", suite).write(path, suite)
    assert read(path, suite).method == "random"
    path.unlink()
    path.parent.rmdir()
    path.parent.touch()
    with (
        pytest.raises(InputError, match="folder: cannot be created: File exists; choose another --out"),
        alone_with(path),
    ):
        pytest.fail("the block is not begun")
