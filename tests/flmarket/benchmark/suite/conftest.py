"""A suite of two small markets, frozen as the real one is, in seconds."""

from pathlib import Path

import pytest

from scenarios.suite.frozen import Suite, read
from support.benchmarks import benchmark
from support.scenarios import TWO_SERVICES

CONTENTS = """\
version = 1
seeds = [1, 2, 3]
rivals = ["hqfa", "lcfa"]

[markets.pair]
kind = "small"
contested = true

[markets.single]
kind = "alone"
contested = false
"""


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a suite, and its digest."""
    folder = tmp_path_factory.mktemp("suite") / "version1"
    (folder / "markets").mkdir(parents=True)
    (folder / "suite.toml").write_text(CONTENTS)
    (folder / "markets/pair.toml").write_text(f'name = "pair"\n{TWO_SERVICES}')
    (folder / "markets/single.toml").write_text(f'name = "single"\n{TWO_SERVICES.rpartition("[[services]]")[0]}')
    digest = benchmark("freeze_suite").freeze(folder, folder.parent / "work")
    return folder, digest


@pytest.fixture
def small(small_folder: tuple[Path, str]) -> Suite:
    return read(*small_folder)
