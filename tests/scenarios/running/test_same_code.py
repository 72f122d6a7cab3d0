"""A machine that plays runs for another one runs the same code."""

import subprocess
import sys
from pathlib import Path

import pytest

from flmarket.core import installation
from flmarket.core.installation import PACKAGES, ROOT, WrongCodeError
from scenarios.running.cluster import fingerprint, require_same_installation


def test_runs_record_the_versions_that_their_process_has_loaded_whatever_is_installed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = installation.versions()
    monkeypatch.setattr(installation, "version", lambda _: "9.0")
    assert installation.versions() == before


def test_a_worker_with_another_version_code_or_kernel_refuses() -> None:
    require_same_installation(fingerprint(), "worker")
    for key in fingerprint():
        with pytest.raises(WrongCodeError, match=f"the worker on node7 runs another flmarket, from .*: {key} "):
            require_same_installation(fingerprint() | {key: "other"}, "worker on node7")


@pytest.mark.slow
def test_the_code_decides_not_the_place(tmp_path: Path) -> None:
    """A copy of the same code has the same fingerprint; one changed line gives another."""
    show = "import scenarios.running.cluster as i; print(i.ROOT, i.fingerprint()['code'])"
    for name in PACKAGES:
        for path in (ROOT / name).rglob("*.py"):
            (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path.relative_to(ROOT)).write_bytes(path.read_bytes())

    def code() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-P", "-c", show], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
        )
        return done.stdout.split()

    assert code() == [str(tmp_path), fingerprint()["code"]]
    with (tmp_path / "des" / "money.py").open("a") as file:
        file.write("# changed\n")
    assert code()[1] != fingerprint()["code"]
