"""`flmarket fork`: forks are runs like any other, compared with their original; errors are one line."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.fork import fork
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.running.run_options import PlayOptions
from support.runs import interrupt, planned, played
from support.scenarios import TWO_SERVICES
from support.shell import flmarket

MARKET = f"""\
name = "small"
{TWO_SERVICES}[[services]]
name = "early"
dataset = "strokes"
budget = 20
target_accuracy = 0.2
reward_base = 60
policy = "hqfa"
"""

TABLES = ("rounds.csv", "offers.csv", "events.csv")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "small.toml").write_text(MARKET)
    done = flmarket("run", "small.toml", "--seed", "3", cwd=folder)
    assert done.returncode == 0, done.stderr
    return next(folder.rglob("rounds.csv")).parent


def forks_in(out: Path) -> list[Path]:
    return sorted((path.parent for path in out.rglob("meta.json")), key=lambda path: path.stat().st_mtime)


def content(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in ("scenario.toml", *TABLES)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        ["services.alpha.budget=3"],
        ["services.alpha.policy=ucb", "clients.cores=2"],
        ['market.mechanism={ mechanism = "posted-price", options = { price_per_sample = 0.08 } }'],
        ["clients.offline=[0, 3]"],
    ],
)
def test_a_fork_is_what_its_scenario_plays_from_the_first_round_on(
    changes: list[str], original: Path, tmp_path: Path
) -> None:
    """Byte for byte, and ``verify`` accepts it."""
    asked = [word for change in changes for word in ("--set", change)]
    done = flmarket("fork", str(original), "--round", "5", *asked, "--out", str(tmp_path / "forks"))
    assert done.returncode == 0, done.stderr
    [fork] = forks_in(tmp_path / "forks")
    for name in TABLES:
        mine, its = ((run / name).read_text().splitlines() for run in (original, fork))
        shared = [line for line in its if not line[0].isdigit() or int(line.partition(",")[0]) < 5]
        assert shared == mine[: len(shared)]
        assert name == "events.csv" or its != mine
    again = flmarket("run", str(fork / "scenario.toml"), "--seed", "3", "--out", str(tmp_path / "again"))
    assert again.returncode == 0, again.stderr
    [whole] = forks_in(tmp_path / "again")
    assert content(whole) == content(fork)
    assert flmarket("verify", str(fork), "--rerun").returncode == 0


def test_forks_go_beside_their_original_and_a_second_call_plays_nothing(original: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(original.parents[2], runs)
    run = runs / original.relative_to(original.parents[2])
    changes = ["--set", "clients.cores=2", "--set", "services.beta.budget=1", "--each"]
    command = ("fork", str(run), "--round", "4", *changes)
    first = flmarket(*command)
    assert first.returncode == 0, first.stderr
    assert len(list(runs.glob("small-*/as-configured/seed-0003"))) == 3
    second = flmarket(*command)
    assert second.stderr.count("already complete, skipped") == 2
    assert second.stdout == first.stdout


def test_differences_are_said_with_their_first_round(original: Path, tmp_path: Path) -> None:
    done = flmarket("fork", str(original), "--round", "5", "--set", "services.alpha.budget=0", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    [fork] = forks_in(tmp_path)
    assert f"services.alpha.budget=0 from round 5 on: {fork}" in done.stdout
    assert "  round 5: alpha no longer wanted client " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--round", "9", "--set", "clients.cores=2"), "has rounds 1 to 8; choose one"),
        (("--round", "0", "--set", "clients.cores=2"), "has rounds 1 to 8; choose one"),
        (
            ("--round", "3", "--set", "services.gamma.budget=2"),
            "services.gamma.budget=2: unknown service 'gamma'; choose from early, beta, alpha",
        ),
        (("--round", "3", "--set", "services.alpha.dataset=digits"), "cannot be changed in the middle of a run"),
        (("--round", "3", "--set", "services.alpha.budget=-1"), "value: must be greater than or equal to 0, not -1"),
        (
            ("--round", "3", "--set", "services.alpha.policy=hqffa"),
            "policy=hqffa: unknown policy 'hqffa'; did you mean 'hqfa'?",
        ),
        (("--round", "3", "--set", "services.alpha.policy=lcfa"), "services.alpha.policy has this value in round 3"),
        (("--round", "3", "--set", "services.alpha.budget=10"), "services.alpha.budget has this value in round 3"),
        (("--round", "3", "--set", "market.mechanism=pay-as-offered"), "market.mechanism has this value in round 3"),
        (("--round", "8", "--set", "services.early.budget=1"), "early has left the market before round 8"),
        (("--round", "3", "--set", "clients.cores"), "must be KEY=VALUE"),
        (("--round", "3", "--set", "clients.cores=2", "--set", "clients.cores=3"), "changes a key twice"),
        (("--round", "3", "--set", "clients.cores=2", "--set", "clients.cores=2", "--each"), "two forks are the same"),
        (("--round", "3", "--set", "services.alpha.policy=mahdrl:none.safetensors"), "none.safetensors"),
    ],
)
def test_one_line_for_whatever_is_wrong(
    arguments: tuple[str, ...], problem: str, original: Path, tmp_path: Path
) -> None:
    done = flmarket("fork", str(original), *arguments, "--out", str(tmp_path))
    assert done.returncode == 2
    assert problem in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def spoiled(original: Path, folder: Path, spoil: Callable[[Path], object]) -> Path:
    shutil.copytree(original.parents[2], folder / "runs")
    run = folder / "runs" / original.relative_to(original.parents[2])
    spoil(run)
    return run


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (
            lambda run: (run / "meta.json").unlink(),
            "interrupted, or still being played; it can be forked when it is complete",
        ),
        (lambda run: (run / "offers.csv").write_text("round\n"), "offers.csv: is damaged"),
        (lambda run: (run / "scenario.toml").unlink(), "not a run directory"),
    ],
)
def test_a_run_that_is_incomplete_or_damaged_is_refused(
    spoil: Callable[[Path], object], problem: str, original: Path, tmp_path: Path
) -> None:
    run = spoiled(original, tmp_path, spoil)
    done = flmarket("fork", str(run), "--round", "3", "--set", "clients.cores=2")
    assert done.returncode == 2
    assert problem in done.stderr


def test_a_run_whose_plug_in_is_missing_is_refused(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "import flmarket\n"
        '@flmarket.policy("mine")\n'
        "class Mine(flmarket.Policy):\n"
        "    def act(self, observation):\n"
        "        return flmarket.Offer.none()\n"
    )
    (tmp_path / "small.toml").write_text(MARKET)
    run = ("run", "small.toml", "--policy", "mine", "--plugin", "mine.py", "--seeds", "1")
    assert flmarket(*run, cwd=tmp_path).returncode == 0
    [made] = forks_in(tmp_path / "runs")
    fork = ("fork", str(made), "--round", "3", "--set", "services.alpha.policy=hqfa")
    done = flmarket(*fork, cwd=tmp_path)
    assert done.returncode == 2
    assert "load that file" in done.stderr
    done = flmarket(*fork, "--plugin", "mine.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    fork_run = forks_in(tmp_path / "runs")[-1]
    assert fork_run.parent.name == "mine"
    assert list(json.loads((fork_run / "meta.json").read_text())["plugins"]) == ["policy mine"]


def test_a_run_that_does_not_come_out_the_same_here_is_refused(original: Path, tmp_path: Path) -> None:
    """As one that was played elsewhere: what its tables say of the shared rounds is not what is played here."""

    def spoil(run: Path) -> None:
        rows = (run / "rounds.csv").read_text().splitlines()
        cells = rows[2].split(",")
        cells[6] = "0.123456"
        (run / "rounds.csv").write_text("\n".join([*rows[:2], ",".join(cells), *rows[3:], ""]))
        meta = RunDirectory(run).meta()
        RunDirectory(run).finish({key: value for key, value in meta.items() if key not in ("files", "sha256")})

    run = spoiled(original, tmp_path, spoil)
    done = flmarket("fork", str(run), "--round", "3", "--set", "clients.cores=2", "-q")
    assert done.returncode == 2
    assert "cannot be continued here: line 3 of rounds.csv comes out differently" in done.stderr


def killed(work: str, folder: Path) -> None:
    """Do something in a process that is killed when the checkpoint of round 6 is there."""
    program = """
import os, signal
from pathlib import Path
from flmarket.analysis.what_if.fork import fork
from scenarios.loader import load
from scenarios.running import batch, checkpoint
from scenarios.running.run_options import PlayOptions, RunOptions
checkpoint.INTERVAL = 0.0
save = checkpoint.save
def then_die(folder, taken):
    save(folder, taken)
    if taken.round == 6:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.save = then_die
"""
    done = subprocess.run([sys.executable, "-c", program + work], check=False, timeout=120, cwd=folder)
    assert done.returncode == -signal.SIGKILL


def test_a_fork_that_is_killed_resumes_to_the_same_bytes(original: Path, tmp_path: Path) -> None:
    """Its policy began in the fork: what it has learned since is in the fork's own checkpoint."""
    killed(
        f"fork(Path({str(original)!r}), 4, [{{'services.alpha.policy': 'ucb'}}], PlayOptions(), Path('forks'))",
        tmp_path,
    )
    asked = ("fork", str(original), "--round", "4", "--set", "services.alpha.policy=ucb", "--out")
    for out in ("forks", "whole"):
        done = flmarket(*asked, str(tmp_path / out))
        assert done.returncode == 0, done.stderr
    [made], [whole] = forks_in(tmp_path / "forks"), forks_in(tmp_path / "whole")
    assert "continue after round 6" in (made / "run.log").read_text()
    assert content(made) == content(whole)


def test_forks_of_an_interrupted_run_begin_at_its_checkpoint(original: Path, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(MARKET)
    killed('batch.play_batch([load("small.toml")], [], [3], RunOptions(), progress=False)', tmp_path)
    [run] = [path.parent for path in (tmp_path / "runs").rglob("rounds.csv")]
    done = flmarket("fork", str(run), "--round", "6", "--set", "clients.cores=2")
    assert done.returncode == 0, done.stderr
    [made] = forks_in(tmp_path / "runs")
    assert "continue after round 5" in (made / "run.log").read_text()
    whole = flmarket(
        "fork", str(original), "--round", "6", "--set", "clients.cores=2", "--out", str(tmp_path / "whole")
    )
    assert whole.returncode == 0, whole.stderr
    [other] = forks_in(tmp_path / "whole")
    assert content(other) == content(made)


def test_a_trace_that_has_changed_since_is_refused(tmp_path: Path) -> None:
    """Even if the rounds that a fork shares come out alike: later ones would differ without any change."""
    (tmp_path / "small.toml").write_text(MARKET.replace("cores = 1", 'cores = 1\navailability = "there.csv"'))
    trace = "client,from,to\n" + "".join(f"{client},1,8\n" for client in range(6))
    (tmp_path / "there.csv").write_text(trace)
    done = flmarket("run", "small.toml", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [run] = [path.parent for path in tmp_path.rglob("meta.json")]
    (tmp_path / "there.csv").write_text(trace.replace("5,1,8", "5,1,4"))
    done = flmarket("fork", str(run), "--round", "3", "--set", "clients.cores=2", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"{run}: there.csv is not the trace with which the run was played\n"


@pytest.mark.slow
def test_the_csv_file_is_there_although_nobody_reads_the_rest(original: Path, tmp_path: Path) -> None:
    """As with ``| head -1``: it used to be written last, and so never."""
    reading, writing = os.pipe()
    os.close(reading)
    command = ["fork", str(original), "--round", "3", "--set", "clients.cores=2", "--csv", "all.csv", "--out", "forks"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "flmarket.cli.main", *command, "--quiet"],
        stdout=writing, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=200,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    table = pd.read_csv(tmp_path / "all.csv")
    assert list(table.columns) == [
        *("changes", "kind", "name", "measure", "original", "fork", "difference", "first_round", "rounds")
    ]
    assert set(table.changes) == {"clients.cores=2"}


@pytest.mark.parametrize(
    "change",
    [
        {"services.buffers.budget": 3},
        pytest.param({"clients.cores": 2, "clients.offline": [0, 1, 2, 3]}, marks=pytest.mark.slow),
        pytest.param({"market.mechanism": "uniform-price"}, marks=pytest.mark.slow),
        pytest.param({"services.periodic.policy": "hqfa"}, marks=pytest.mark.slow),
    ],
)
def test_work_that_goes_on_goes_on_in_a_fork_whether_its_original_is_complete_or_was_killed(
    change: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = load("stragglers", {"training.backend": "surrogate", "rounds": 7})
    whole, killed = played(scenario, tmp_path / "whole").path, planned(scenario, tmp_path / "killed")
    monkeypatch.setattr("scenarios.running.checkpoint.INTERVAL", 0.0)
    interrupt(killed, Shelf(), 5)
    found = []
    for name, run in (("whole", whole), ("killed", killed.directory.path)):
        [made] = fork(run, 5, [change], PlayOptions(workers=0), tmp_path / f"{name}-forks", progress=False)
        found.append(content(made.path) | {"models.csv": (made.path / "models.csv").read_bytes()})
        assert verify(RunDirectory(made.path)).problems == []
    assert found[0] == found[1]
    from_the_start = played(load(made.path / "scenario.toml"), tmp_path / "again").path
    assert content(from_the_start) == content(made.path)
    offers = pd.read_csv(made.path / "offers.csv")
    assert ((offers["round"] < 5) & (offers["end"] > 8.0)).any()  # clients are at work as the fork begins
