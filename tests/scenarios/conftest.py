"""A small scenario, and a catalogue of data sets and policies that needs no data."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fl.data.dataset import DatasetError
from scenarios.build import Shelf
from scenarios.file.checks import Catalogue, installed
from scenarios.logs.directory import RunDirectory
from support.runs import played
from support.worlds import WORLDS


@dataclass(frozen=True)
class Facts:
    labels: int
    train_size: int
    test_size: int
    rarest_label: int


DATASETS = {
    "digits": Facts(labels=10, train_size=1_437, test_size=360, rarest_label=139),
    "mnist": Facts(labels=10, train_size=60_000, test_size=10_000, rarest_label=5_421),
    "fashion-mnist": Facts(labels=10, train_size=60_000, test_size=10_000, rarest_label=6_000),
    "emnist-digits": Facts(labels=10, train_size=240_000, test_size=40_000, rarest_label=24_000),
    "pair": Facts(labels=2, train_size=1_000, test_size=200, rarest_label=400),
}

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


def facts(name: str) -> Facts:
    """The facts of a data set; a name that is a path is the path of nothing."""
    if name not in DATASETS:
        raise DatasetError(f"data set {name!r}: no such folder")
    return DATASETS[name]


@pytest.fixture
def catalogue() -> Catalogue:
    policies = ["random", "lcfa", "hqfa", "greedy", "d-first"]
    return Catalogue({**installed().names, "data set": list(DATASETS), "policy": policies}, facts)


@pytest.fixture
def market() -> str:
    """A scenario without a fault."""
    return MARKET
