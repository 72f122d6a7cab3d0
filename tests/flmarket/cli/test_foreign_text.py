"""Text of others, wherever it comes from: no command lets it act on the terminal or a page."""

import ast
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.runs import reseal
from support.shell import Done, flmarket
from support.tiers import slow

ROOT = Path(__file__).parents[3]
HOSTILE = "\x1b[31m\x1b]0;owned\x07\u202e[bold][/]<script>alert(1)</script>"
NAMED = json.dumps(HOSTILE)

PRINTERS = {"flmarket/core/rich_console.py", "flmarket/core/crash.py", "flmarket/cli/console.py"}
"""Where printing is at home."""
TO_A_LOG = {"scenarios/running/serve.py", "scenarios/running/worker.py"}
"""Where standard output is a protocol of JSON, and standard error a run's log."""
PICTURES = {"tui/screens/export_dialog.py"}
"""Where a console draws a picture into memory."""


@pytest.mark.parametrize("package", ["fl", "des", "learning", "scenarios", "flmarket", "tui"])
def test_nothing_prints_but_the_console(package: str) -> None:
    for path in sorted((ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name in PRINTERS | TO_A_LOG | PICTURES:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("print", "Console", "typer.echo", "typer.secho"), f"{name}:{node.lineno}"
                if called in ("sys.stdout.write", "sys.stderr.write"):
                    assert name == "flmarket/cli/main.py", (
                        f"{name}:{node.lineno}"
                    )  # where flmarket itself cannot be imported
                if called == "TextColumn":
                    assert "markup=False" in ast.unparse(node) or "{" not in ast.unparse(node), f"{name}:{node.lineno}"


def require_harmless(done: Done) -> None:
    for line in (done.stdout + done.stderr).split("\n"):
        assert line.isprintable(), line
    assert "Traceback" not in done.stderr
    assert "defect of flmarket" not in done.stderr


@pytest.fixture
def folder(tmp_path: Path, one_service: str) -> Path:
    """A folder with a scenario whose every text is hostile, valid ones among them, and files of hostile names."""
    (tmp_path / "valid.toml").write_text(f"description = {NAMED}\n{one_service}")
    (tmp_path / "names.toml").write_text(one_service.replace('"alpha"', NAMED).replace('"small"', NAMED))
    (tmp_path / "values.toml").write_text(
        one_service.replace('"random"', NAMED).replace('"digits"', NAMED).replace('"published"', NAMED)
        + f"{NAMED} = 1\n[services.policy_options]\n{NAMED} = {NAMED}\n[sweep]\n{NAMED} = [{NAMED}]\n"
    )
    (tmp_path / "broken.toml").write_text(f"name = {NAMED}\n{HOSTILE}")
    (tmp_path / "\x1b[31m.toml").write_text("name = 1")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        *(("validate", f"{name}.toml") for name in ("valid", "names", "values", "broken", "\x1b[31m", HOSTILE[:7])),
        ("validate", "valid.toml", "--set", HOSTILE),
        ("validate", "valid.toml", "--set", f"name={HOSTILE}"),
        ("validate", "valid.toml", "--plugin", f"{HOSTILE[:7]}.py"),
        ("run", HOSTILE),
        ("run", "valid.toml", "--policy", HOSTILE),
        ("run", "valid.toml", "--policy", f"mahdrl:{HOSTILE}"),
        ("run", "valid.toml", "--seeds", HOSTILE),
        ("run", "valid.toml", "--rounds", HOSTILE),
        ("run", "valid.toml", "--engine", HOSTILE),
        ("run", "valid.toml", f"--{HOSTILE}"),
        ("run", "valid.toml", "--out", HOSTILE, "--dry-run"),
        ("train", "valid.toml", "--out", "x", "--option", HOSTILE),
        ("train", "valid.toml", "--out", "x", "--option", f"{HOSTILE}=1"),
        ("train", "valid.toml", "--out", "x", "--backend", HOSTILE),
        ("report", HOSTILE),
        ("export", HOSTILE, "--csv", HOSTILE),
        ("verify", HOSTILE),
        ("replay", HOSTILE),
        ("tui", HOSTILE),
        ("calibrate", "dqi", HOSTILE),
        ("calibrate", HOSTILE),
        ("scenarios", "show", HOSTILE),
        ("policies", "--plugin", HOSTILE),
        (HOSTILE,),
    ],
)
def test_hostile_arguments_and_scenarios_are_shown_as_text(arguments: tuple[str, ...], folder: Path) -> None:
    require_harmless(flmarket(*arguments, cwd=folder))


@pytest.mark.parametrize("group", ["policies", *slow("models", "datasets", "mechanisms")])
@pytest.mark.parametrize("name", ["[bold]x[/bold]", "../../x", "\x1b[31mx", "/etc/x", "-x"])
def test_entry_points_of_any_name_are_listed_as_text_and_cannot_be_used(
    group: str, name: str, install_package: Callable[..., None], folder: Path
) -> None:
    install_package("acme", f'"""{HOSTILE}"""', f"flmarket.{group}", entries=f"{name} = acme:Thing")
    listed = flmarket("plugins", cwd=folder)
    require_harmless(listed)
    shown = name.replace("\x1b", r"\x1b")
    assert f"│ {shown} " in listed.stdout
    assert "a name consists of" in listed.stdout
    run = flmarket("run", "valid.toml", "--policy", name, "--out", "runs", cwd=folder)
    assert run.returncode == 2
    require_harmless(run)
    assert not (folder / "runs").exists()


@pytest.fixture
def crafted(batch: Path, tmp_path: Path) -> Callable[[str, str, str], Path]:
    """``crafted(file, old, new)``: runs with a text in a file of theirs changed, and the change hidden."""

    def craft(file: str, old: str, new: str) -> Path:
        out = tmp_path / "runs"
        shutil.copytree(batch / "runs", out)
        for meta in out.rglob("meta.json"):
            path = meta.parent / file
            text = path.read_text()
            assert old in text
            path.write_text(text.replace(old, new))
            reseal(meta.parent)
        return out

    return craft


CRAFTED = [
    *(("rounds.csv", ",alpha,", f",{text},") for text in ("\x1b[31mx", "<script>", "[bold]")),
    *(("rounds.csv", ",digits,", f",{text},") for text in ("\x1b[31mx", "<script>", "[bold]")),
    ("offers.csv", ",served,", ",\x1b[31m,"),
    ("events.csv", ",refresh,", ",\x1b]0;x\x07,"),
    ("scenario.toml", 'name = "alpha"', 'name = "\\u001b[31m"'),
    ("scenario.toml", 'name = "small"', 'name = "<script>"'),
    ("meta.json", '"scenario": "small"', '"scenario": "\\u001b[31m"'),
    ("meta.json", '"sweep": {}', '"sweep": {"clients.cores": "<script>\\u001b[31m](javascript:x)"}'),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "old", "new"), CRAFTED)
def test_crafted_logs_are_refused_or_shown_as_text(
    file: str, old: str, new: str, crafted: Callable[[str, str, str], Path]
) -> None:
    out = str(crafted(file, old, new))
    for command in (
        ("verify", out),
        ("report", out),
        ("report", out, "--format", "csv"),
        *(("export", out, "--csv", "-", "--table", table) for table in ("rounds", "offers", "events")),
    ):
        done = flmarket(*command)
        require_harmless(done)
        if command == ("report", out):
            assert "<script" not in done.stdout.replace(r"\<script", "")


def test_the_values_of_a_sweep_that_scenario_toml_does_not_have_are_no_run_s(
    crafted: Callable[[str, str, str], Path],
) -> None:
    out = str(crafted("meta.json", '"sweep": {}', '"sweep": {"a": "<script>x</script>[b](javascript:y)"}'))
    done = flmarket("report", out, "--format", "html")
    assert done.returncode != 0
    assert "<script" not in done.stdout
