"""Submission files, while several processes write them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from fl.files import alone_in, replacing
from scenarios.suite.frozen import read as read_suite
from scenarios.suite.playing import entry
from scenarios.suite.submission import prepare, read


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


def test_who_prepares_a_file_waits_for_who_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    with ThreadPoolExecutor() as pool:
        with alone_in(tmp_path), replacing(path) as file:
            preparing = pool.submit(prepare, path)
            file.write(b"written")
        preparing.result(timeout=60)
    assert path.read_bytes() == b"written"
