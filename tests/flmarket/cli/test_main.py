"""The door of the command line: quick to open, and exit statuses that mean something."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from pkgutil import iter_modules

import pytest
import typer
from typer.testing import CliRunner

from flmarket import __version__
from flmarket.cli import commands, program
from support.shell import CLI as DOOR
from support.shell import flmarket
from support.tiers import slow


@pytest.mark.parametrize("name", [module.name for module in iter_modules(commands.__path__)])
def test_the_list_of_commands_has_the_first_sentence_of_each(name: str) -> None:
    context = program.app.make_context("flmarket", [name], resilient_parsing=True)
    _, found, _ = program.app.resolve_command(context, [name])
    command = found.make_context(name, [], resilient_parsing=True).command
    assert program.COMMANDS[name] == " ".join(command.help.split("\n\n")[0].split())


def test_help_names_every_command_and_shows_examples() -> None:
    done = flmarket("--help")
    assert done.returncode == 0
    for word in (*program.COMMANDS, "Examples", "flmarket run quickstart"):
        assert word in done.stdout


@pytest.mark.parametrize("command", [[], ["fork"], ["calibrate", "dqi"]])
def test_flags_are_shown_without_a_type(command: list[str]) -> None:
    shown = flmarket(*command, "--help").stdout
    assert "--help" in shown
    assert "<bool>" not in shown


def test_typer_still_shows_a_type_after_flags() -> None:
    """Where it no longer does, ``_Untyped`` of ``flmarket.cli.program`` is needless."""

    def fly(fast: bool = typer.Option(False, "--fast")) -> None: ...

    app = typer.Typer()
    app.command()(fly)
    assert "bool" in CliRunner().invoke(app, ["--help"]).output.lower()


COMMAND = """\
import sys
sys.argv = ['flmarket', *'{}'.split()]
from flmarket.cli.main import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        (COMMAND.format("--help"), {"torch", "textual", "pandas", "torchvision", "sklearn", "pydantic", "simpy"}),
        (COMMAND.format("run quickstart --backend=surrogate"), {"torch", "textual", "pandas", "scipy", "matplotlib"}),
        ("import tui.app, tui.screens.batch, tui.screens.market", {"torch", "pandas", "scipy", "matplotlib"}),
    ],
    ids=["help", "run", "screens"],
)
def test_what_comes_up_at_once_imports_nothing_heavy(program: str, heavy: set[str], tmp_path: Path) -> None:
    line = f"{program}\nimport sys\nassert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", line], check=True, capture_output=True, cwd=tmp_path)


def test_a_defect_of_ours_shows_its_traceback_and_has_status_70(tmp_path: Path) -> None:
    program = "from flmarket.cli import main, program\nprogram.app = '\\x1b[31m'.index\nmain.main()"
    done = subprocess.run([sys.executable, "-c", program, "policies"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 70
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert "in run_arguments" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        f"This is a defect of flmarket. Please report it with these lines: flmarket {__version__}, Python "
    )


def test_a_tilde_that_the_shell_left_stands_for_the_home_folder(tmp_path: Path) -> None:
    words = ["run", "quickstart", "--rounds=1", "--set=training.backend=surrogate", "--out=~/runs", "--dry-run"]
    done = flmarket(*words, cwd=tmp_path, env={"HOME": str(tmp_path)})
    assert f"{tmp_path}/runs/quickstart-" in done.stdout
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize("empty", [["--out", ""], ["--out="]])
def test_an_empty_path_is_refused_as_it_would_be_the_current_folder(empty: list[str], tmp_path: Path) -> None:
    done = flmarket("run", "quickstart", *empty, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "--out is empty; give it a value, or leave it out\n")
    assert not [*tmp_path.iterdir()]


FAILING = """\
import flmarket

@flmarket.policy("failing")
class Failing(flmarket.Policy):
    def act(self, observation):
        raise ValueError("of no use")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirected", "status", "line"),
    [
        ("> /dev/full", 1, "standard output cannot be written: No space left on device\n"),
        ("| true", 0, ""),
        (">&-", 0, ""),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        "export {} --csv /dev/stdout",
        *slow("--help", "--version", "scenarios show paper", "policies"),
        *slow("report {}", "export {} --csv -", "run quickstart --rounds 3 --quiet --out {}"),
    ],
)
def test_a_standard_output_that_takes_nothing(
    arguments: str, redirected: str, status: int, line: str, quick_run: tuple[Path, object]
) -> None:
    """A reader that has seen enough does not change how a command ends; a full disk does."""
    command = f"{shlex.join(DOOR)} {arguments.format(quick_run[0])}"
    done = subprocess.run(["/bin/bash", "-c", into(command, redirected)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, line)


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["stdout", *slow("stderr")])
def test_a_stream_that_does_not_block_and_is_full_is_waited_for(stream: str, quick_run: tuple[Path, object]) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    held = os.write(writing, bytes(1 << 20))
    words = ["export", str(quick_run[0]), "--csv", "/dev/stdout"] if stream == "stdout" else ["run", "nope"]
    with subprocess.Popen([*DOOR, *words], **{stream: writing}) as process:  # type: ignore[call-overload]
        os.close(writing)
        time.sleep(2)  # it has met the full pipe by then
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read()[held:]
        assert process.wait() == (0 if stream == "stdout" else 2)
    assert said.startswith(b"scenario," if stream == "stdout" else b"nope: ")


def into(command: str, redirected: str) -> str:
    """A line for the shell; the reader of a pipe has gone before the command writes."""
    if not redirected.endswith("| true"):
        return f"{command} {redirected}"
    return f"( sleep 0.2; {command} {redirected.removesuffix('| true')} ) | true; exit ${{PIPESTATUS[0]}}"


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "status"), [("random", 0), *slow(("failing", 1))])
def test_runs_whose_reports_nobody_reads_are_played_all_the_same(policy: str, status: int, tmp_path: Path) -> None:
    plugin = tmp_path / "failing.py"
    plugin.write_text(FAILING)
    words = ["run", "quickstart", "--rounds=2", "--set=training.backend=surrogate"]
    command = shlex.join([*DOOR, *words, f"--plugin={plugin}", f"--policy={policy}"])
    done = subprocess.run(["/bin/bash", "-c", into(command, "2>&1 | true")], cwd=tmp_path)
    assert done.returncode == status
    [meta] = tmp_path.rglob("meta.json")
    assert json.loads(meta.read_text())["status"] == ("failed" if status else "complete")


@pytest.mark.slow
@pytest.mark.parametrize("redirected", ["2> /dev/full", *slow("2>&-")])
def test_a_standard_error_that_takes_nothing_does_not_change_what_a_command_does(redirected: str) -> None:
    done = subprocess.run(
        ["/bin/bash", "-c", f"{shlex.join(DOOR)} run nope {redirected}"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")


HOLDING = """\
import os, signal
from flmarket.cli.main import main

def reporting(*handler):
    signal.signal = set_handler
    set_handler(*handler)
    os.write(1, b"ready")

set_handler, signal.signal = signal.signal, reporting
main()
"""
"""The command, which reports that it takes care of Ctrl-C from now on."""

DELAYS = [0.02 * step for step in range(21)]
"""From 0 to 400 ms."""

QUIET = {(130, b""), (0, b""), (-signal.SIGINT, b"")}
"""Interrupted; had ended before; or Python had given its signals back, which a shell calls 130, too."""


LOST = rb"Exception ignored in: <function _get_module_lock.*\n(.*\n)*KeyboardInterrupt:? ?\n"
"""Python loses what a signal raises while it gives back the lock of a module, and goes on."""


def interrupted(command: list[str], delay: float, ready: bytes) -> tuple[int, bytes]:
    """Start a command, send it Ctrl-C some time after it has written ``ready``; return its status and its errors."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(len(ready)) == ready
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    return process.returncode, errors


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["validate", "quickstart"]], ids=" ".join)
def test_ctrl_c_ends_the_command_without_a_traceback_at_any_moment(arguments: list[str]) -> None:
    """At any moment after its first line: the start of Python itself, some 20 ms, is not ours."""
    ends = [interrupted([sys.executable, "-P", "-c", HOLDING, *arguments], delay, b"ready") for delay in DELAYS]
    assert {end for end in ends if not re.fullmatch(LOST, end[1])} <= QUIET
    assert ends[0] == (130, b"")


@pytest.mark.slow
@pytest.mark.parametrize("door", [DOOR, [str(Path(sys.executable).with_name("flmarket"))]], ids=["module", "script"])
def test_ctrl_c_ends_the_installed_command_without_a_traceback_of_ours(door: list[str]) -> None:
    for delay in DELAYS:
        status, errors = interrupted([*door, "policies"], delay, b"")
        if b"KeyboardInterrupt" in errors:  # before ``main``: Python was starting, or looking for us
            assert not re.search(rb'cli\.py", line \d+, in main', errors), errors.decode()
        else:
            assert (status, errors) in QUIET


@pytest.mark.slow
def test_ctrl_c_stays_ignored_where_the_caller_ignores_it() -> None:
    """As a shell without job control does for what it starts with ``&``."""
    program = f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{HOLDING}"
    program = program.replace("main()", "reporting = os.write(1, b'ready')\nmain()")
    assert interrupted([sys.executable, "-P", "-c", program, "policies"], 0.1, b"ready") == (0, b"")


LAST = """\
import atexit, os, signal
from flmarket.cli.main import main
atexit.register(lambda: os.write(1, b"not ended"))
atexit.register(signal.raise_signal, {0})
main()
"""
"""The command, which gets a signal while Python is about to end."""


@pytest.mark.parametrize("number", [signal.SIGTERM, *slow(signal.SIGHUP)], ids=["SIGTERM", "SIGHUP"])
def test_a_signal_after_the_work_ends_the_command_at_once(number: signal.Signals) -> None:
    program = [sys.executable, "-P", "-c", LAST.format(number.value), "--version"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (128 + number, f"flmarket {__version__}\n")


def test_ctrl_c_as_earlier_versions_of_typer_pass_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def app(*_: object, **__: object) -> None:
        raise typer.Abort

    monkeypatch.setattr("flmarket.cli.program.app", app)
    assert flmarket("policies").returncode == 130
