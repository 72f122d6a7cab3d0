"""Shared by all tests."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# There are as many tests at a time as cores, and threads of libraries would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from flmarket.core import installation, plugins, tracking
from learning.training import agent_files
from learning.training.agent_files import shipped
from scenarios.file.schema import REGISTRIES
from support import leftovers
from support.leftovers import no_process_is_left, pytest_runtest_call, pytest_unconfigure  # noqa: F401

# No test is about time: what an example takes on a busy machine says nothing.
settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("full"), max_examples=20)
settings.load_profile("quick")  # unless pytest is started with --hypothesis-profile=full


def pytest_configure(config: pytest.Config) -> None:
    """Test the code beside the tests, not another flmarket that happens to be installed."""
    here = Path(__file__).resolve().parents[1]
    if here != installation.ROOT:
        pytest.exit(
            f"these tests belong to {here}, but Python imports flmarket from {installation.ROOT}: `make test`", 2
        )
    leftovers.prepare(worker=hasattr(config, "workerinput"))
    gc.set_threshold(20_000)  # screens make much garbage, and the collector would take a quarter of the time


@pytest.fixture(autouse=True, scope="session")
def no_line_because_the_machine_is_busy() -> None:
    """Counts are told where a test asks for them."""
    tracking.INTERVAL = float("inf")


def pytest_collection_finish() -> None:
    """Spare the garbage collector the modules, torch's above all."""
    gc.freeze()


# Real training on embedded data, with so few images that a run takes a second.
ONE_SERVICE = """\
name = "small"
rounds = 4
dqi = "published"

[clients]
count = 8
cores = 1
data_size = [20, 40]
emd = [0.2, 1.0]
cost = { per_sample = 0.05, per_emd = 0.5 }

[training]
local_epochs = 1
eval_samples = 100

[[services]]
name = "alpha"
dataset = "digits"
budget = 6.5
target_accuracy = 0.99
reward_base = 60
policy = "random"
"""

SECOND_SERVICE = """
[[services]]
name = "beta"
dataset = "digits"
budget = 6.5
target_accuracy = 0.05
reward_base = 30
policy = "lcfa"
"""


@pytest.fixture(scope="session")
def one_service() -> str:
    """A small scenario: alpha trains to the last of four rounds. Change it with overrides, or by appending tables."""
    return ONE_SERVICE


@pytest.fixture(scope="session")
def two_services() -> str:
    """The same with a rival: beta is at its target after the first round and leaves."""
    return ONE_SERVICE + SECOND_SERVICE


@pytest.fixture(scope="session")
def real_images() -> Path:
    """The folder with the real MNIST, Fashion-MNIST and EMNIST images; tests that need them skip where it is not."""
    folder = os.environ.get("FLMARKET_DATA")
    if not folder:
        pytest.skip("real images: set FLMARKET_DATA to a folder that holds them in torchvision's layout")
    missing = [name for name in ("MNIST", "FashionMNIST", "EMNIST") if not (Path(folder) / name / "raw").is_dir()]
    if missing:
        pytest.skip(f"real images: {folder} has no {', '.join(missing)}")
    return Path(folder)


InstallPackage = Callable[..., None]


@pytest.fixture
def install_package(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InstallPackage]:
    """``install_package("acme", source, group, red="acme:RED")``: somebody else's package, as far as Python can tell.

    ``entries`` gives the lines of the group in place of keywords. Subprocesses find the package, too.
    """
    folder = tmp_path_factory.mktemp("site-packages")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)

    def install(package: str, source: str, group: str, *, entries: str | None = None, **names: str) -> None:
        monkeypatch.delitem(sys.modules, package, raising=False)
        (folder / f"{package}.py").write_text(source)
        info = folder / f"{package}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
        lines = "\n".join(f"{name} = {value}" for name, value in names.items()) if entries is None else entries
        (info / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
        plugins._declared.cache_clear()

    yield install
    plugins._declared.cache_clear()


@contextmanager
def forgetting() -> Iterator[None]:
    """Forget what was registered in this process."""
    before = [(registry, dict(registry._registered)) for registry in REGISTRIES]
    yield
    for registry, registered in before:
        registry._registered = registered


@pytest.fixture(autouse=True)
def no_plugins_left_by_a_test() -> Iterator[None]:
    with forgetting():
        yield


@pytest.fixture(autouse=True, scope="module")
def no_plugins_left_by_a_module() -> Iterator[None]:
    """Fixtures of a module register, too."""
    with forgetting():
        yield


@pytest.fixture(scope="session")
def write_agent() -> Callable[..., Path]:
    """``write_agent(path)``: an agent in a file, flmarket's own; ``another=True`` for a different one."""

    def write(path: Path, *, another: bool = False) -> Path:
        tensors, description = agent_files.read(shipped("mahdrl"), "agent")
        rest = {key: value for key, value in description.items() if key not in {"flmarket", "version", "sha256"}}
        if another:
            tensors = {name: -values for name, values in tensors.items()}
        agent_files.write(path, "agent", tensors, rest)
        return path

    return write
