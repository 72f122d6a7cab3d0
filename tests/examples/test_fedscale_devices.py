"""FedScale's file of what phones can compute and send, converted to a file that a scenario can name."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import flmarket

SCRIPT = Path(__file__).parents[2] / "examples" / "fedscale_devices.py"
PHONES = {
    432802: {"computation": 162.0, "communication": 5648.109619499134},  # one of the public file's
    1: {"computation": 50, "communication": 12_000},
}


def convert(folder: Path, content: object) -> "subprocess.CompletedProcess[str]":
    (folder / "phones").write_bytes(pickle.dumps(content))
    command = [sys.executable, SCRIPT, "phones", "--out", "devices.csv"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_phone_of_100_ms_has_speed_1_and_links_of_its_kilobits(tmp_path: Path) -> None:
    done = convert(tmp_path, PHONES)
    assert done.stdout == "devices.csv: 2 devices\n", done.stderr
    lines = (tmp_path / "devices.csv").read_text().splitlines()
    assert lines == ["speed,download_mbps,upload_mbps", "0.617284,5.648110,5.648110", "2.000000,12.000000,12.000000"]
    devices = {"clients.devices": str(tmp_path / "devices.csv"), "timeline.upload_seconds": 0}
    flmarket.load("paper", devices | {"training.backend": "surrogate"})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (Path("anything"), "the file asks for pathlib."),
        ([1, 2], "'list' object has no attribute 'values'"),
        ({1: {"computation": 0, "communication": 1}}, "ZeroDivisionError"),
        ({1: {"computation": 1, "communication": 0}}, "both must be from 0.000001"),
        ({1: {"computation": 1}}, "KeyError: 'communication'"),
    ],
)
def test_what_is_no_file_of_devices_is_said_in_a_line(content: object, problem: str, tmp_path: Path) -> None:
    done = convert(tmp_path, content)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith("phones: is not ")
    assert problem in done.stderr
    assert not (tmp_path / "devices.csv").exists()
