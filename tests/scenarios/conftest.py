"""A small scenario, and the complete runs of worlds."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fl.data.registry import dataset
from scenarios.build import Shelf
from scenarios.logs.directory import RunDirectory
from support.runs import played
from support.worlds import WORLDS

MARKET = """\
name = "market"
rounds = 5

[clients]
count = 4
cores = 2
data_size = [100, 200]
emd = [0.4, 1.0]
cost = { per_sample = 0.025, per_emd = 1.0 }

[training]
learning_rate = 0.05

[training.by_dataset.digits]
local_epochs = 3

[timeline]
upload_seconds = 0.5

[[services]]
name = "mnist"
dataset = "mnist"
budget = 20
target_accuracy = 0.97
reward_base = 60
policy = "random"

[[services]]
name = "digits"
dataset = "digits"
budget = 10.5
target_accuracy = 0.9
reward_base = 30
policy = "hqfa"
"""


@pytest.fixture(scope="session")
def files_of() -> Callable[[Path], dict[str, bytes]]:
    """Finds all files below a folder that must have the same bytes in every repetition of its runs, by place."""
    return lambda out: {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.name == "scenario.toml" or path.suffix == ".csv"
    }


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunDirectory]:
    """``run_of("changing")``: the complete run of one of the ``WORLDS``, only to be read."""
    runs: dict[str, RunDirectory] = {}

    def play(world: str) -> RunDirectory:
        if world not in runs:
            runs[world] = played(WORLDS[world].load(), tmp_path_factory.mktemp("runs"), WORLDS[world].policy)
        return runs[world]

    return play


@pytest.fixture
def copy_of(run_of: Callable[[str], RunDirectory], tmp_path: Path) -> Callable[[str], Path]:
    """``copy_of("changing")``: a copy of such a run, to tamper with."""
    return lambda world: Path(shutil.copytree(run_of(world).path, tmp_path / "copy"))


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    """Data and fits, loaded once for the tests of a module."""
    return Shelf()


def pair() -> tuple[np.ndarray, ...]:
    """Images of two labels, one of which is rare."""
    images = np.random.default_rng(0).integers(256, size=(1_200, 8, 8), dtype=np.uint8)
    labels = np.arange(1_200) % 5 % 2
    return images[:1_000], labels[:1_000], images[1_000:], labels[1_000:]


@pytest.fixture
def market() -> str:
    """A scenario without a fault; there is a data set ``pair``, too, of two labels and small."""
    dataset("pair")(pair)
    return MARKET
