"""Plug-ins that end or hang the process that loads or creates them: each command outlives them, and reports them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from scenarios.loader import dumps, parse
from support import shell
from support.tiers import slow

PLUGIN = """\
import ctypes, os, time
from flmarket import Offer, Policy, policy


@policy("mine")
class Mine(Policy):
    def __init__(self, context):
        super().__init__(context)
        IN_INIT

    @classmethod
    def agent_digest(cls, checkpoint):
        IN_DIGEST

    def act(self, observation):
        IN_ACT
        return Offer.none()


AT_IMPORT
"""
PLACES = ("IN_INIT", "IN_DIGEST", "IN_ACT", "AT_IMPORT")


@pytest.fixture
def folder(two_services: str, tmp_path: Path) -> Path:
    """A folder with a scenario, market.toml, that names the policy ``mine``, and the same with others, fair.toml."""
    quick = ["training.backend=surrogate", "training.local_epochs=2"]
    (tmp_path / "fair.toml").write_text(dumps(parse(two_services, overrides=quick)))
    (tmp_path / "market.toml").write_text((tmp_path / "fair.toml").read_text().replace('"random"', '"mine"', 1))
    return tmp_path


def write(folder: Path, **places: str) -> None:
    text = PLUGIN
    for place in PLACES:
        text = text.replace(place, places.get(place.lower(), "pass"))
    (folder / "mine.py").write_text(text)


TRAIN = ("train", "fair.toml", "--out", "agent", "--episodes", "2", "--rotate", "--rivals", "mine")


@pytest.mark.parametrize(
    "command",
    [
        ("run", "fair.toml", "--dry-run"),
        *slow(
            (("validate", "fair.toml"),),
            (TRAIN,),
            (("verify", "runs", "--rerun"),),
            (("report", "runs"),),
            (("tui",),),
            (("run", "fair.toml", "--engine", "ray"),),
        ),
    ],
    ids=" ".join,
)
def test_what_ends_the_process_that_loads_it_is_bad_input(command: tuple[str, ...], folder: Path) -> None:
    write(folder, at_import="os._exit(0)")
    done = shell.process(*command, "--plugin", "mine.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "a plug-in cannot be loaded: its process ended with status 0 (loading mine.py)\n"


@pytest.mark.slow
def test_what_never_returns_when_it_is_loaded_is_bad_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.running.rehearsal.LIMIT", 3.0)
    write(folder, at_import="while True: pass")
    for command in (["validate", "fair.toml"], ["run", "fair.toml"]):
        done = shell.flmarket(*command, "--plugin", "mine.py", cwd=folder, rehearse=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "a plug-in cannot be loaded: loading mine.py did not return within 3 s\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("in_init", "ended"),
    [("os._exit(0)", "its process ended with status 0"), ("ctypes.string_at(0)", "its process was ended by signal 11")],
)
def test_validate_outlives_what_it_creates(in_init: str, ended: str, folder: Path) -> None:
    write(folder, in_init=in_init)
    done = shell.process("validate", "market.toml", "--plugin", "mine.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"market.toml: cannot be checked: {ended} (policy 'mine' of service 'alpha': __init__())"
    )


@pytest.mark.slow
def test_validate_ends_what_never_returns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.running.rehearsal.LONG", 3.0)
    write(folder, in_init="time.sleep(1000)")
    done = shell.flmarket("validate", "market.toml", "--plugin", "mine.py", cwd=folder, rehearse=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "market.toml: cannot be checked: policy 'mine' of service 'alpha': __init__() did not return within 3 s\n"
    )


def test_validate_still_shows_the_problems_of_all_files(folder: Path) -> None:
    write(folder, in_init="raise ValueError('not today')")
    (folder / "broken.toml").write_text((folder / "fair.toml").read_text().replace("rounds", "turns"))
    done = shell.process("validate", "broken.toml", "market.toml", "--plugin", "mine.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "broken.toml:1: rounds: is missing\n"
        "broken.toml:3: turns: unknown key; did you mean 'runs'?\n"
        "market.toml:33: services.alpha.policy: policy 'mine' of service 'alpha': not today (mine.py:9)\n"
    )


@pytest.mark.parametrize(
    "command",
    [
        ("run", "market.toml"),
        *slow(
            (("run", "market.toml", "--dry-run"),),
            (("run", "fair.toml", "--policy", "mine"),),
            (TRAIN,),
        ),
    ],
    ids=" ".join,
)
def test_what_ends_the_process_when_its_agent_is_asked_for_is_bad_input(command: tuple[str, ...], folder: Path) -> None:
    write(folder, in_digest="os._exit(0)")
    done = shell.process(*command, "--plugin", "mine.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "a plug-in cannot be loaded: its process ended with status 0 (policy 'mine': agent_digest())\n"
    )


DATASET = """\
import os
from flmarket import dataset


@dataset("mine")
def mine():
    os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "ended"),
    [
        (("validate", "market.toml"), "market.toml: cannot be checked: its process ended with status 0 (checking "),
        (("run", "market.toml"), "market.toml: cannot be checked: its process ended with status 0 (checking "),
        (
            ("train", "market.toml", "--out", "agent"),
            "market.toml: cannot be checked: its process ended with status 0 ",
        ),
        (("datasets",), "a plug-in cannot be loaded: its process ended with status 0 (making data set 'mine')"),
        (("verify", "runs"), "a plug-in cannot be loaded: its process ended with status 0 (making data set 'mine')"),
        (("tui",), "a plug-in cannot be loaded: its process ended with status 0 (making data set 'mine')"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_data_set_that_ends_the_process_that_makes_it_is_bad_input(
    command: tuple[str, ...], ended: str, folder: Path
) -> None:
    (folder / "mine.py").write_text(DATASET)
    (folder / "market.toml").write_text((folder / "fair.toml").read_text().replace('"digits"', '"mine"'))
    done = shell.process(*command, "--plugin", "mine.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(ended)


@pytest.mark.slow
def test_what_takes_long_to_load_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.running.record.PATIENCE", 0.5)
    write(folder, at_import="time.sleep(2)")
    done = shell.flmarket("policies", "--plugin", "mine.py", cwd=folder, rehearse=True)
    assert done.returncode == 0
    assert done.stderr == "loading mine.py has not returned for 0.5 s\n"


@pytest.mark.slow
@pytest.mark.parametrize("place", ["in_init", "in_act"])
def test_a_rival_that_ends_its_process_fails_a_training(place: str, folder: Path) -> None:
    write(folder, **{place: "os._exit(0)"})
    done = shell.process(*TRAIN, "--plugin", "mine.py", cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(
        "the process of a training ended: a plug-in or the system ended it; continue with --resume\n"
    )


@pytest.mark.slow
def test_a_training_against_a_rival_of_a_plugin_is_done_in_a_process_of_its_own(folder: Path) -> None:
    write(folder, at_import="print(f'loaded in {os.getppid()}')")
    done = shell.process(*TRAIN, "--plugin", "mine.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "agent.safetensors").exists()
    printed = [*done.stdout.splitlines(), *done.stderr.splitlines()]  # to the latter in the process of its own
    assert len({line for line in printed if line.startswith("loaded in ")}) == 2


@pytest.mark.slow
@pytest.mark.parametrize("place", ["in_init", "in_act"])
def test_playing_again_outlives_the_policy(place: str, folder: Path) -> None:
    write(folder, **{place: "'FATAL' in os.environ and os._exit(0)"})
    words = "--plugin", "mine.py"
    assert shell.process("run", "market.toml", *words, cwd=folder).returncode == 0
    again = shell.process("verify", "runs", "--rerun", *words, cwd=folder)
    assert again.returncode == 0, again.stdout
    assert again.stdout.endswith(" paid, same bytes again\n")
    done = shell.process("verify", "runs", "--rerun", *words, cwd=folder, env={"FATAL": "1"})
    where = "__init__()" if place == "in_init" else "act()"
    assert done.returncode == 1
    assert ": failed when it was played again: its process ended with status 0 (policy 'mine' of " in done.stdout
    assert done.stdout.endswith(f"{where})\n")


EXTENSION = 'import os, sys, time\n\n{at_import}\n\ndef thing(labels):\n    """A thing."""\n'
KINDS = {
    "policies": ("policy",),
    "datasets": ("data set",),
    "plugins": ("policy", "model", "data set", "mechanism"),
}
"""The kinds of plug-ins that a command lists."""


def cells(done: shell.Done) -> dict[str, str]:
    """Return the last column of a table by the name of the row, on one line."""
    found: dict[str, str] = {}
    name = ""
    for line in done.stdout.splitlines():
        if "│" in line:
            row = [cell.strip() for cell in line.split("│")[1:-1]]
            name = next((cell for cell in row[:2] if cell.startswith("their-")), "" if row[0] else name)
            found[name] = f"{found.get(name, '')} {row[-1]}".strip()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("command", KINDS)
@pytest.mark.parametrize(
    ("at_import", "why"),
    [
        ("raise KeyError('x')", "cannot be imported: KeyError: 'x'"),
        ("sys.exit(0)", "cannot be imported: SystemExit: 0"),
        ("os._exit(0)", "a plug-in cannot be loaded: its process ended with status 0 (importing {kind} 'their-{n}')"),
        ("time.sleep(1000)", "a plug-in cannot be loaded: importing {kind} 'their-{n}' did not return within 2 s"),
    ],
    ids=["raises", "exits", "ends", "hangs"],
)
def test_an_installed_extension_that_cannot_be_imported_is_listed_with_the_reason(
    command: str,
    at_import: str,
    why: str,
    install_package: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("scenarios.running.rehearsal.LIMIT", 2.0)
    monkeypatch.setenv("COLUMNS", "200")
    groups = {"policy": "policies", "model": "models", "data set": "datasets", "mechanism": "mechanisms"}
    for number, (kind, group) in enumerate(groups.items()):
        if kind in KINDS[command]:
            install_package(
                f"acme{number}",
                EXTENSION.format(at_import=at_import),
                f"flmarket.{group}",
                **{f"their-{number}": f"acme{number}:thing"},
            )
    listing = (
        shell.process if "_exit" in at_import else partial(shell.flmarket, rehearse=True)
    )  # the patch reaches this
    done = listing(command)
    assert done.returncode == 0, done.stderr
    shown = cells(done)
    numbers = [list(groups).index(kind) for kind in KINDS[command]]
    assert [name for name in shown if name.startswith("their-")] == [f"their-{number}" for number in numbers]
    for number, kind in zip(numbers, KINDS[command], strict=True):
        assert why.format(kind=kind, n=number) in shown[f"their-{number}"]


@pytest.mark.slow
def test_an_installed_extension_that_works_is_listed_beside_one_that_does_not(
    install_package: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    install_package("bad", EXTENSION.format(at_import="os._exit(0)"), "flmarket.models", **{"their-bad": "bad:thing"})
    install_package("good", EXTENSION.format(at_import=""), "flmarket.models", **{"their-good": "good:thing"})
    shown = cells(shell.process("plugins"))
    assert shown["their-good"] == "A thing."
    assert shown["their-bad"].startswith("a plug-in cannot be loaded: its process ended with status 0")


SUMMARY = """\
import os

class Meta(type):
    @property
    def summary(cls):
        {what}

class Thing(metaclass=Meta):
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("raise ValueError('none')", "summary: ValueError: none"),
        (
            "os._exit(3)",
            "a plug-in cannot be loaded: its process ended with status 3 (model 'their-thing': summary)",
        ),
    ],
    ids=["raises", "ends"],
)
def test_an_installed_extension_whose_summary_cannot_be_read_is_listed_with_the_reason(
    what: str, why: str, install_package: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    install_package("acme", SUMMARY.format(what=what), "flmarket.models", **{"their-thing": "acme:Thing"})
    done = shell.process("plugins")
    assert done.returncode == 0, done.stderr
    assert why in cells(done)["their-thing"]


@pytest.mark.slow
def test_the_second_of_two_extensions_of_a_name_is_not_imported(
    install_package: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    group, entry = "flmarket.models", "their-thing"
    install_package("acme", EXTENSION.format(at_import=""), group, **{entry: "acme:thing"})
    install_package("bad", EXTENSION.format(at_import="os._exit(0)"), group, **{entry: "bad:thing"})
    done = shell.process("plugins")
    assert done.returncode == 0, done.stderr
    assert "the name is registered by" in done.stdout  # by either: Python finds them in the file system's order
