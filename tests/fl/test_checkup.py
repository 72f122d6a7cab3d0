"""What a checkup finds on this machine, and on machines that lack something."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from fl import checkup as module
from fl.checkup import Finding, checkup
from fl.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]


def findings(subject: str) -> list[Finding]:
    return [finding for finding in checkup() if finding.subject == subject]


def test_this_machine_has_no_problem_and_every_part_is_looked_at() -> None:
    found = list(checkup())
    assert [finding for finding in found if finding.state == "problem"] == []
    assert {"flmarket", "Python", "packages", "PyTorch", "GPU", "kernel", "cores", "data sets", "runs"} <= {
        finding.subject for finding in found
    }
    assert all(finding.remedy for finding in found if finding.state != "ok")


def test_a_missing_extra_is_a_note_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def without_ray(name: str) -> str:
        if name == "ray":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", without_ray)
    [ray] = findings("extra ray")
    assert ray.state == "note"
    assert ray.found == "ray is not installed"
    assert ray.remedy == "pip install 'flmarket[ray]' for `flmarket run --engine ray`"


def test_a_required_package_that_is_too_old_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "1.0" if name == "numpy" else real(name))
    [packages] = findings("packages")
    assert packages.state == "problem"
    assert packages.found == "numpy is 1.0, not >=1.26"


def test_without_the_kernel_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from fl import fused

    monkeypatch.setattr(fused, "_kernels", {})
    [kernel] = findings("kernel")
    assert kernel.state == "note"
    assert "install a C++ compiler" in kernel.remedy


def test_a_kernel_that_this_machine_cannot_run_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLMARKET_KERNEL", "abacus")
    [kernel] = findings("kernel")
    assert kernel.state == "problem"
    assert kernel.found.startswith("FLMARKET_KERNEL=abacus: this machine can run ")


def test_data_sets_are_found_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLMARKET_DATA", str(tmp_path))
    there, missing = findings("data sets")
    assert there.found == f"in {tmp_path}: none yet"
    assert "mnist" in missing.found
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (raw / f"{part}-ubyte.gz").touch()
    there, missing = findings("data sets")
    assert there.found == f"in {tmp_path}: mnist"
    assert " mnist," not in missing.found


def test_a_disk_with_little_space_is_worth_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LITTLE_SPACE", 2**80)
    [runs] = findings("runs")
    assert (runs.state, runs.remedy) == ("note", "free some space")


def test_a_check_that_fails_is_a_problem_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        raise OSError("no such device")

    monkeypatch.setattr(module, "usable_cores", broken)
    [cores] = findings("cores")
    assert (cores.state, cores.found) == ("problem", "OSError: no such device")
    assert findings("runs")


def test_the_extras_are_those_of_the_package_and_of_the_first_page() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(declared) - {"dev"}
    page = (ROOT / "docs/start.md").read_text()
    for name, purpose in EXTRAS.items():
        assert f"| `{name}` | {purpose} |" in page
