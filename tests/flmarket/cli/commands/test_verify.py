"""`flmarket verify`: status 0 and a line for each valid run, status 1 and the problems otherwise."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from flmarket import BatchFailed, InputError, Observation, Offer, Policy, read, run
from support.shell import Command, flmarket


def test_verify_says_valid_and_ends_with_1_otherwise(batch: Path, tmp_path: Path, command: Command) -> None:
    done = flmarket("verify", "runs", "--rerun", cwd=batch)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": valid: 4 rounds, ") == 4
    assert done.stdout.count("same bytes again") == 4
    assert done.stderr.endswith("4 of 4 runs are valid\n")
    [table, *_] = (batch / "runs").rglob("rounds.csv")
    copy = tmp_path / "runs" / "x"
    copy.mkdir(parents=True)
    for path in table.parent.iterdir():
        (copy / path.name).write_bytes(path.read_bytes().replace(b",6.500000,", b",2.000000,"))
    done = command("verify", "runs", cwd=tmp_path)
    assert done.returncode == 1
    assert "budget is 2.000000, but the scenario has 6.500000" in done.stdout


def test_a_table_that_was_cut_short_is_named_once_in_each_line(batch: Path, tmp_path: Path) -> None:
    [run, *_] = (batch / "runs").rglob("seed-0000")
    shutil.copytree(run, tmp_path / "x")
    table = tmp_path / "x" / "rounds.csv"
    lines = table.read_bytes().splitlines(keepends=True)
    table.write_bytes(b"".join(lines[:-1]) + b",".join(lines[-1].split(b",")[:5]))
    done = flmarket("verify", "x", cwd=tmp_path)
    assert done.returncode == 1
    damaged, unreadable = done.stdout.splitlines()
    assert damaged.startswith("x: rounds.csv: is damaged: it has ")
    assert unreadable == "x: rounds.csv: cannot be read: a line has no wanted"


def test_runs_without_results_are_not_checked_and_say_why(one_service: str, tmp_path: Path) -> None:
    class Stranger(Policy):
        def act(self, observation: Observation) -> Offer:
            return Offer(np.array([99]), np.array([1.0]))

    (tmp_path / "small.toml").write_text(one_service)
    with pytest.raises(BatchFailed):
        run(tmp_path / "small.toml", Stranger, out=tmp_path / "runs", progress=False)
    [failed] = [path.parent.relative_to(tmp_path) for path in tmp_path.rglob("meta.json")]
    reason = (
        "failed: policy 'stranger' of service 'alpha', round 1, client 99: unknown client; clients are 0 to 7; "
        f"offered by Stranger.act() ({__file__}:{Stranger.act.__code__.co_firstlineno})"
    )
    with pytest.raises(InputError) as caught:
        read(tmp_path / "runs")
    assert str(caught.value) == f"no complete run in {tmp_path / 'runs'}; not complete: {tmp_path / failed}: {reason}"

    interrupted = tmp_path / failed.parent.with_name("lcfa") / "seed-0000"
    interrupted.mkdir(parents=True)
    (interrupted / "scenario.toml").write_bytes((tmp_path / failed / "scenario.toml").read_bytes())
    done = flmarket("verify", "runs", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == (
        f"{failed}: not checked: {reason}\n"
        f"{interrupted.relative_to(tmp_path)}: not checked: interrupted, or still being played\n"
    )
    assert done.stderr == "0 of 2 runs are valid; 2 could not be checked in full\n"


HERMIT = """
from flmarket import Offer, Policy, policy

@policy("hermit")
class Hermit(Policy):
    def act(self, observation):
        return Offer.none()
"""


@pytest.mark.slow
def test_all_that_needs_no_plugin_is_checked_and_the_rest_is_named(one_service: str, tmp_path: Path) -> None:
    class Miser(Policy):
        def act(self, observation: Observation) -> Offer:
            return Offer.none()

    (tmp_path / "mine.py").write_text(HERMIT)
    (tmp_path / "small.toml").write_text(one_service)
    run(tmp_path / "small.toml", [Miser, "random"], out=tmp_path / "runs", progress=False)
    done = flmarket("run", "small.toml", "--policy", "hermit", "--plugin", "mine.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    hermit, miser, random = sorted(path.parent.relative_to(tmp_path) for path in tmp_path.rglob("meta.json"))

    done = flmarket("verify", "runs", cwd=tmp_path)
    assert (done.returncode, done.stdout.count(": valid: 4 rounds, ")) == (0, 3), done.stdout

    done = flmarket("verify", "runs", "--rerun", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout.count(": valid: 4 rounds, ") == 3
    assert done.stdout.count("same bytes again") == 1
    assert f"{random}: valid: 4 rounds, " in done.stdout
    needed = "uses policy 'hermit' of the plug-in file mine.py; load that file"
    assert f"{hermit}: not played again: {needed}\n" in done.stdout
    assert (
        f"{miser}: not played again: uses policy 'miser' of a notebook or script ({__name__}), so this run can be "
        "played again only there; put the definition into a file, load that as a plug-in file, and play a new run\n"
    ) in done.stdout
    assert done.stderr == "3 of 3 runs are valid; 2 could not be checked in full\n"

    done = flmarket("verify", str(hermit), str(random), "--rerun", "--plugin", "mine.py", cwd=tmp_path)
    assert (done.returncode, done.stdout.count("same bytes again")) == (0, 2), done.stdout

    (tmp_path / hermit / "offers.csv").unlink()
    done = flmarket("verify", "runs", cwd=tmp_path)
    assert done.returncode == 1
    assert f"{hermit}: offers.csv: is missing\n" in done.stdout
    assert done.stdout.count(": valid: 4 rounds, ") == 2


MECHANISM = """
from flmarket import Clearing, Mechanism, allocate, mechanism

@mechanism("mine")
class Mine(Mechanism):
    def clear(self, book):
        core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
        return Clearing(core, book.payments)
"""


def test_a_mechanism_that_is_not_here_is_named(one_service: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MECHANISM)
    (tmp_path / "small.toml").write_text(one_service)
    mine = "--plugin", "mine.py"
    done = flmarket("run", "small.toml", "--set", "market.mechanism=mine", *mine, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = flmarket("verify", "runs", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.endswith(
        ": not checked: who is served and paid what, as mechanism 'mine' is unknown: load its file\n"
    )
    assert flmarket("verify", "runs", *mine, cwd=tmp_path).stdout.endswith(" paid\n")
