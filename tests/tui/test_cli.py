"""The door of the command line: quick to open, and exit statuses that mean something."""

import subprocess
import sys

import flmarket

DOOR = [sys.executable, "-P", "-m", "tui.cli"]
COMMANDS = (
    "run", "train", "report", "export", "verify", "replay", "tui", "validate", "policies", "datasets", "plugins",
    "scenarios", "calibrate",
)  # fmt: skip


def test_help_names_every_command_and_shows_examples() -> None:
    done = subprocess.run([*DOOR, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for word in (*COMMANDS, "Examples", "flmarket run quickstart"):
        assert word in done.stdout


def test_help_is_quick_because_it_imports_neither_torch_nor_textual() -> None:
    program = (
        "import sys\nsys.argv = ['flmarket', '--help']\nfrom tui.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'torch', 'textual', 'pandas', 'torchvision', 'sklearn', 'pydantic', 'simpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_the_version_is_printed() -> None:
    done = subprocess.run([*DOOR, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"flmarket {flmarket.__version__}\n", "")


def test_a_defect_of_ours_is_reported_with_its_traceback_and_status_70() -> None:
    program = "import tui.cli\n\ndef app(**_):\n    raise ZeroDivisionError\n\ntui.cli.app = app\ntui.cli.main()\n"
    done = subprocess.run([sys.executable, "-c", program, "policies"], capture_output=True, text=True)
    assert done.returncode == 70
    assert "ZeroDivisionError" in done.stderr
    assert "this is a defect of flmarket; please report it with the lines above" in done.stderr
