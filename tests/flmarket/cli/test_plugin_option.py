"""``--plugin FILE.py`` on the command line: wherever a name is resolved."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.shell import flmarket

PLUGIN = """
from flmarket import Policy, fill_budget, policy

@policy("big-spender")
class BigSpender(Policy):
    summary = "pays what it has"
    privileged = True

    def act(self, observation):
        everyone, available = range(observation.clients), observation.available
        return fill_budget(everyone, observation.own_bids + 1, observation.budget, available=available)
"""


Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell(one_service: str, tmp_path: Path) -> Shell:
    """Runs the command in a folder; returns the exit status, and what was printed on stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        done = flmarket(*arguments, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "market.toml").write_text(one_service)
    (tmp_path / "own.toml").write_text(one_service.replace('"random"', '"big-spender"'))
    return run


@pytest.mark.slow
def test_a_policy_from_a_file_is_listed_validated_run_verified_and_reported(shell: Shell) -> None:
    plugin = ["--plugin", "mine.py"]
    status, out, _ = shell("policies", *plugin)
    (line,) = (line for line in out.splitlines() if "big-spender" in line)
    assert (status, "mine.py" in line, "pays what it has" in line) == (0, True, True)
    assert shell("validate", "own.toml", *plugin)[0] == 0
    status, out, err = shell("run", "market.toml", "--policy", "big-spender", *plugin, "--workers", "0")
    assert status == 0, err
    assert "big-spender" in out
    assert shell("verify", "runs", "--rerun", *plugin)[:1] == (0,)
    status, out, _ = shell("report", "runs", *plugin)
    assert (status, "big-spender*" in out) == (0, True)  # privileged


def test_after_an_edit_of_the_file_its_runs_alone_start_over(shell: Shell, tmp_path: Path) -> None:
    words = "run", "market.toml", "--policy", "big-spender", "--policy", "lcfa", "--plugin", "mine.py", "--workers", "0"
    words += "--set", "training.backend=surrogate", "--set", "training.local_epochs=2"
    assert shell(*words)[0] == 0
    (tmp_path / "mine.py").write_text(PLUGIN.replace("+ 1", "+ 0.5"))
    status, _, err = shell(*words)
    assert (status, "--fresh-changed" in err) == (2, True)
    _, out, _ = shell(*words, "--fresh-changed", "--dry-run")
    assert [line.split()[0] for line in out.splitlines()] == ["run", "complete", "training", "1"]
    status, _, err = shell(*words, "--fresh-changed")
    assert status == 0, err
    assert "small (lcfa) seed 0: already complete, skipped" in err
    assert "small (big-spender) seed 0: complete in" in err


def test_without_the_file_its_names_are_unknown(shell: Shell) -> None:
    status, _, err = shell("validate", "own.toml")
    assert (status, "services.alpha.policy: unknown policy 'big-spender'; choose from bwk," in err) == (2, True)
    status, _, err = shell("run", "market.toml", "--policy", "big-spender")
    assert (status, err.startswith("unknown policy 'big-spender'; choose from bwk, ")) == (2, True)


def test_a_file_that_cannot_be_used_ends_with_2_and_one_line(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from flmarket import policy\n\nraise RuntimeError('not today')\n")
    for command in (
        ["run", "market.toml"],
        ["train", "market.toml", "--out", "agent"],
        ["validate", "market.toml"],
        ["policies"],
        ["datasets"],
        ["report", "runs"],
        ["verify", "runs"],
        ["tui"],
        ["replay", "runs"],
        ["calibrate", "dqi", "market.toml"],
        ["calibrate", "surrogate", "market.toml"],
    ):
        assert shell(*command, "--plugin", "mine.py") == (2, "", "mine.py:3: RuntimeError: not today\n"), command


def test_a_broken_package_is_listed_and_ends_nothing(shell: Shell, install_package: Callable[..., None]) -> None:
    install_package("acme", "raise SystemExit('not licensed')", "flmarket.policies", premium="acme:Premium")
    status, out, err = shell("policies")
    (line,) = (line for line in out.splitlines() if line.startswith("│ premium "))
    assert (status, err) == (0, "")
    assert "acme 1.5" in line
    assert "SystemExit: not licensed" in " ".join(out.replace("│", " ").split())
    assert shell("run", "market.toml", "--dry-run")[0] == 0
    status, out, err = shell("run", "market.toml", "--policy", "premium")
    assert (status, out) == (2, "")
    assert err == "policy 'premium' (acme:Premium of acme 1.5): cannot be imported: SystemExit: not licensed\n"
