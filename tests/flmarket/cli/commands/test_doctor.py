"""`flmarket doctor`: what runs here, and on machines that lack something."""

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from flmarket.cli.commands import doctor
from flmarket.core.installation import EXTRAS, install_command
from support.shell import flmarket, process

ROOT = Path(__file__).resolve().parents[4]


def found(subject: str) -> tuple[str, str, str]:
    """The state, text and remedy of the one finding about a subject."""
    [(state, _, text, remedy)] = [it for it in doctor._checkup() if it.subject == subject]
    return state, text, remedy


def test_a_healthy_machine_gets_a_table_and_status_0() -> None:
    done = flmarket("doctor")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "flmarket works here."
    assert "problem" not in done.stdout
    for subject in ("Python", "cores", "runs", "flmarket", "torch", "kernel", "data sets"):
        assert f" {subject} " in done.stdout


@pytest.mark.slow
def test_a_problem_is_named_with_its_remedy_and_gives_status_1() -> None:
    done = process("doctor", env={"FLMARKET_KERNEL": "abacus"})
    assert done.returncode == 1
    assert "FLMARKET_KERNEL=abacus: this machine can run " in done.stdout
    assert "data sets" in done.stdout  # one problem does not hide the other findings
    assert done.stdout.splitlines()[-1] == "1 problem; flmarket may not work until solved."


def test_packages_that_are_missing_or_too_old_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "ray":
            raise metadata.PackageNotFoundError(name)
        return "1.0" if name == "numpy" else real(name)

    monkeypatch.setattr(metadata, "version", version)
    remedy = f"{install_command('flmarket[ray]')} for `flmarket run --engine ray`"
    assert found("extra ray") == ("note", "ray is not installed", remedy)
    assert found("packages") == ("problem", "numpy is 1.0, not >=1.26", "reinstall flmarket")


def test_without_the_kernel_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from fl.training import fused

    monkeypatch.setattr(fused, "_kernels", {})
    state, _, remedy = found("kernel")
    assert state == "note"
    assert "install a C++ compiler" in remedy


def test_data_sets_are_read_in_a_folder_that_need_not_be_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLMARKET_DATA", str(tmp_path))
    assert found("data sets")[1] == f"in {tmp_path}: none yet"
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    two_images = bytes([0, 0, 8, 3, 0, 0, 0, 2, *[0, 0, 0, 28] * 2, 1]).ljust(16 + 2 * 28 * 28)
    for part in ("train", "t10k"):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(two_images)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 3, 4]))
    assert found("data sets")[1] == f"in {tmp_path}: mnist (unofficial)"
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    assert found("downloads")[:2] == ("note", f"{tmp_path} cannot be written")
    (raw / "t10k-labels-idx1-ubyte").write_bytes(b"cut short")
    state, text, _ = found("mnist")
    assert (state, found("data sets")[1]) == ("problem", f"in {tmp_path}: none yet")
    assert re.search(r"t10k-labels-idx1-ubyte: cannot be read .+ Delete the file and run again to download it", text)


def test_a_disk_with_little_space_is_worth_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LITTLE_SPACE", 2**80)
    assert found("runs")[0] == "note"


def test_the_extras_are_those_of_the_package_and_of_the_first_page() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(declared) - {"dev", "docs"}
    page = (ROOT / "docs/start.md").read_text()
    for name, purpose in EXTRAS.items():
        assert f"| `{name}` | {purpose} |" in page


def test_what_to_install_is_named_with_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell's own ``pip`` is another one after ``make run``, and may refuse."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv" / "bin" / "python"))
    assert install_command("flmarket[rl]") == ".venv/bin/python -m pip install 'flmarket[rl]'"
    monkeypatch.setattr(sys, "executable", "/opt/python")
    assert install_command(".") == "/opt/python -m pip install ."
