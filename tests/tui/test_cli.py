"""The command line, as a user's shell sees it: a real process, its output and its exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from scenarios.loader import builtin_names


def flmarket(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-m", "tui.cli", *arguments], capture_output=True, text=True, cwd=cwd)


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    out = tmp_path_factory.mktemp("runs")
    return out, flmarket("run", "quickstart", "--rounds", "3", "--out", str(out))


def test_help_names_every_command_and_shows_examples() -> None:
    done = flmarket("--help")
    assert done.returncode == 0
    for word in (
        "run",
        "validate",
        "scenarios",
        "policies",
        "datasets",
        "export",
        "Examples",
        "flmarket run quickstart",
    ):
        assert word in done.stdout


def test_help_is_quick_because_it_imports_neither_torch_nor_textual() -> None:
    program = (
        "import sys\nsys.argv = ['flmarket', '--help']\nfrom tui.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'torch', 'textual', 'pandas', 'torchvision', 'sklearn', 'pydantic', 'simpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_a_run_ends_with_a_table_and_the_path_of_its_csv(
    quick_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, done = quick_run
    assert done.returncode == 0
    *_, path = done.stdout.splitlines()
    rounds = pd.read_csv(path)
    assert Path(path).is_relative_to(out)
    for service, last in rounds.groupby("service")["accuracy"].last().items():
        assert str(service) in done.stdout
        assert f"{100 * last:.2f} %" in done.stdout
    assert "final accuracy" in done.stdout
    assert "round" not in done.stdout.split("Results")[0]  # narration goes to stderr
    assert "complete in" in done.stderr


def test_a_second_call_skips_the_complete_run(quick_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, first = quick_run
    second = flmarket("run", "quickstart", "--rounds", "3", "--out", str(out))
    assert second.returncode == 0
    assert "skipped" in second.stderr
    assert second.stdout == first.stdout


def test_quiet_leaves_only_results(quick_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, first = quick_run
    quiet = flmarket("run", "quickstart", "--rounds", "3", "--out", str(out), "--quiet")
    assert (quiet.stdout, quiet.stderr) == (first.stdout, "")


def test_meta_data_say_what_ran(quick_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, _ = quick_run
    meta = json.loads(next(out.rglob("meta.json")).read_text())
    assert (meta["status"], meta["seed"], meta["policy"], meta["rounds"]) == ("complete", 0, "as-configured", 3)
    assert set(meta["kernel"]) == set(pd.read_csv(next(out.rglob("rounds.csv")))["service"])
    assert all(digest for files in meta["data"].values() for digest in files["sha256"].values())


def test_export_writes_what_pandas_reads(
    quick_run: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    out, _ = quick_run
    done = flmarket("export", str(out), "--csv", str(tmp_path / "all.csv"), "--table", "offers")
    assert done.returncode == 0
    offers = pd.read_csv(tmp_path / "all.csv")
    assert list(offers.columns[:3]) == ["scenario", "policy", "seed"]
    assert (offers["payment"] >= offers["bid"]).all()


def test_several_problems_of_several_files_are_all_shown(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text("name = 'one'\nrouns = 3\n")
    (tmp_path / "two.toml").write_text("name = ")
    done = flmarket("validate", "one.toml", "two.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "one.toml:2: rouns: unknown key; did you mean 'rounds'?" in done.stderr
    assert "two.toml:1:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "papre"], "paper"),
        (["run", "quickstart", "--policy", "hqfaa"], "did you mean 'hqfa'?"),
        (["run", "quickstart", "--seeds", "3..1"], "runs backwards"),
        (["run", "quickstart", "--rounds", "0"], "rounds"),
        (["run", "quickstart", "--set", "clients.cores"], "clients.cores"),
        (["run", "quickstart", "--out", "/dev/null/runs"], "can't be written"),
        (["run"], "Missing argument"),
        (["run", "quickstart", "--workers", "-1"], "workers"),
        (["export", "nowhere", "--csv", "x.csv"], "nowhere"),
        (["scenarios", "show", "papre"], "paper"),
    ],
)
def test_a_mistake_is_named_with_status_2_and_no_traceback(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = flmarket(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_what_there_is_can_be_listed() -> None:
    scenarios, policies, datasets = (flmarket(name).stdout for name in ("scenarios", "policies", "datasets"))
    assert all(name in scenarios for name in builtin_names())
    assert all(name in policies for name in ("random", "lcfa", "hqfa", "greedy", "d-first"))
    assert all(name in datasets for name in ("mnist", "fashion-mnist", "emnist-digits", "digits"))


@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_scenario_can_be_shown_copied_and_validated(name: str, tmp_path: Path) -> None:
    (tmp_path / "copy.toml").write_text(flmarket("scenarios", "show", name).stdout)
    done = flmarket("validate", str(tmp_path / "copy.toml"))
    assert done.returncode == 0, done.stderr


def test_learning_together_needs_turns() -> None:
    done = flmarket("train", "paper", "--out", "agent", "--together", "2")
    assert done.returncode == 2
    assert "add --rotate" in done.stderr
