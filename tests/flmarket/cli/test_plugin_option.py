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


@pytest.mark.slow
def test_a_report_tells_of_runs_that_an_earlier_version_of_a_policy_played(shell: Shell, tmp_path: Path) -> None:
    play = ["run", "market.toml", "--policy", "big-spender", "--plugin", "mine.py", "--workers", "0"]
    told = "runs of 'small' with 'big-spender' were played with different versions of policy big-spender, so their"
    assert shell(*play, "--seed", "0")[0] == 0
    assert told not in shell("report", "runs", "--plugin", "mine.py")[1]
    (tmp_path / "mine.py").write_text(PLUGIN.replace("own_bids + 1", "own_bids + 2"))
    assert shell(*play, "--seed", "1")[0] == 0
    assert told in shell("report", "runs", "--plugin", "mine.py")[1]
    assert shell(*play, "--seeds", "2", "--fresh-changed")[0] == 0
    assert told not in shell("report", "runs", "--plugin", "mine.py")[1]


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
