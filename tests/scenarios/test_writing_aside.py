"""A file that is written in one piece replaces what was there only when all of it is on the disk."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import flmarket
from fl.calibration.dqi_fit import Point
from fl.data import torchvision_files as vision
from fl.data.dqi import DQIParameters
from flmarket.analysis.figures.drawing import save
from flmarket.analysis.figures.report_figures import figures
from flmarket.core.errors import InputError
from scenarios.calibration.figures import draw_dqi
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory, RunDirectoryError
from tui.screens.export_dialog import write_picture


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes what is written and fails when it is to keep it, as full network disks do."""

    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


def draw(path: Path) -> None:
    draw_dqi(path, "digits", [Point(50, 0.2, 0.5), Point(100, 0.2, 0.7)], DQIParameters(1.0, 1.0, 1.0, 1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("name", "write"), [("dqi-digits.png", draw), ("screen.svg", lambda path: write_picture("<svg/>", path))]
)
@pytest.mark.usefixtures("full")
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, name: str, write: Callable[[Path], object]) -> None:
    path = tmp_path / name
    path.write_text("old, and the last line is cut off")
    with pytest.raises((OSError, InputError), match="No space left on device"):
        write(path)
    assert path.read_text() == "old, and the last line is cut off"
    assert os.listdir(tmp_path) == [name]  # noqa: PTH208 - hidden ones too


def test_a_full_disk_leaves_a_reports_figures_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = flmarket.load("quickstart", {"training.backend": "surrogate", "rounds": 2})
    runs = flmarket.run(scenario, ["random"], seeds=1, out=tmp_path / "runs", progress=False).runs
    folder = tmp_path / "figures"
    folder.mkdir()
    path = folder / f"{figures(runs)[0].name}.svg"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(InputError, match="No space left on device"):
        save(figures(runs), folder)
    assert path.read_text() == "old"


@pytest.mark.usefixtures("full")
def test_a_full_disk_leaves_the_receipt_of_a_download_as_it_was(tmp_path: Path) -> None:
    source, target = tmp_path / "new", tmp_path / "raw"
    for folder in (source, target):
        folder.mkdir()
    (source / "t10k-labels-idx1-ubyte").write_bytes(b"labels")
    (target / vision.RECEIPT).write_text("0  train-labels-idx1-ubyte\n")
    with pytest.raises(OSError, match="No space left on device"):
        vision._move_in(source, target)
    assert vision.receipt(target) == {"train-labels-idx1-ubyte": "0"}


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_table_without_its_scenario_is_refused(tmp_path: Path, table) -> None:
    """Tables that are declared are files of a run; nothing lists them a second time."""
    table.path(tmp_path).write_text("")
    with pytest.raises(RunDirectoryError, match=rf"contains {table.name}\.csv but no scenario\.toml"):
        RunDirectory(tmp_path).prepare("name = 'x'")
