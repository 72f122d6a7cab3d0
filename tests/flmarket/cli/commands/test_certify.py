"""`flmarket certify`."""

import re
from pathlib import Path

import pytest

from support.shell import Command, flmarket


@pytest.mark.slow
def test_the_witness_that_it_writes_can_be_run(command: Command, tmp_path: Path) -> None:
    done = command("certify", "uniform-price", "--markets", "2", "--tries", "30", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("uniform-price: 2 markets with 2 to 4 services, 2 to 5 clients, 1 to 2 cores and ")
    assert re.search(
        r"truthfulness of services +│ fails +│ \d+ of \d+ services gain; the largest gain is \d", done.stdout
    )
    commands = re.findall(r"^  flmarket (run certificates/uniform-price-.*)$", done.stdout, re.M)
    assert len(commands) == 2
    ran = command(*commands[0].split(), "--quiet", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert len(list(tmp_path.glob("runs/uniform-price-services-*/as-configured/*/offers.csv"))) == 2
    checked = command("verify", "runs", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    arguments = ["certify", "pay-as-offered", "--clients", "2", "--markets", "2", "--tries", "20", "--quiet"]
    first, again = (flmarket(*arguments, "--out", str(tmp_path / name), cwd=tmp_path) for name in ("a", "b"))
    assert first.stderr == again.stderr == ""
    assert first.stdout.replace(str(tmp_path / "a"), "") == again.stdout.replace(str(tmp_path / "b"), "")
    written = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert "pay-as-offered-services.toml" in written
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in written)


def test_options_and_a_mechanism_of_your_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import flmarket\nfrom des.mechanisms.pay_as_offered import PayAsOffered\n\n\n"
        '@flmarket.mechanism("mine")\nclass Mine(PayAsOffered):\n'
        '    """Pays as offered."""\n\n    def __init__(self, *, share: float) -> None:\n        self.share = share\n'
    )
    small = ["--markets", "2", "--services", "2", "--clients", "2", "--cores", "1", "--tries", "20", "--quiet"]
    done = flmarket("certify", "mine", "--plugin", "mine.py", "--option", "share=0.5", *small, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "mine share=0.5: 2 markets with 2 services, 2 clients, 1 core and budgets that can bind"
    )
    replay, *_ = re.findall(r"^  flmarket (run certificates/mine-.*)$", done.stdout, re.M)
    assert replay.endswith(" --plugin mine.py")
    assert flmarket(*replay.split(), "--quiet", cwd=tmp_path).returncode == 0
    witness = tmp_path / replay.split()[1]
    [in_its_folder] = re.findall(r"^#     flmarket (run .*)$", witness.read_text(), re.M)
    assert in_its_folder == replay.replace("certificates/", "").replace("mine.py", "../mine.py")
    assert flmarket(*in_its_folder.split(), "--quiet", cwd=witness.parent).returncode == 0


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    small = ["--markets", "1", "--services", "2", "--clients", "2", "--tries", "5", "--quiet"]
    done = flmarket("certify", "pay-as-offered", *small, "--out", "file/certificates", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "file/certificates: cannot be made: Not a directory\n"


@pytest.mark.slow
def test_figures_are_written_into_the_folder_that_is_named(tmp_path: Path) -> None:
    small = ["--markets", "1", "--services", "2", "--clients", "2", "--tries", "5"]
    done = flmarket("certify", "pay-as-offered", *small, "--figures", "drawn", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "drawn: 9 files written: pay-as-offered-utility, pay-as-offered-rationality, " in done.stderr
    assert len(list((tmp_path / "drawn").iterdir())) == 9
    (tmp_path / "file").write_text("")
    wrong = flmarket("certify", "pay-as-offered", *small, "--figures", "file/drawn", cwd=tmp_path)
    assert wrong.returncode == 2
    assert wrong.stderr == "file/drawn: cannot be made: Not a directory\n"
