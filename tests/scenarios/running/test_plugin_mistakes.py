"""Plug-ins that raise, end, crash or hang: each fails its own run, with a line that names it, and no other."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import flmarket
from scenarios.build import Shelf
from scenarios.loader import dumps, load, parse
from scenarios.logs.directory import RunDirectory
from scenarios.logs.run_state import RunState
from scenarios.running import worker
from scenarios.running.batch import run_all
from scenarios.running.batch_run import Callback
from scenarios.running.planning import plan
from scenarios.running.processes import Process
from support import shell
from support.terminal import wait_for
from support.tiers import slow

LONG = "8"
"""Seconds in which a plug-in's code that does not hang returns, on a busy machine, too."""

POLICIES = """\
import ctypes, os, signal, sys
from flmarket import Offer, Policy, policy


class Idle(Policy):
    def act(self, observation):
        return Offer.none()


def in_round_2(name):
    def register(act):
        policy(name)(type(name, (Idle,), {"act": lambda self, seen: act(seen) if seen.round == 2 else Offer.none()}))
    return register


@in_round_2("divides")
def divides(seen):
    1 / 0


@in_round_2("exits")
def exits(seen):
    sys.exit(0)


@in_round_2("below-the-bid")
def below_the_bid(seen):
    return Offer([0], [0.0])


@in_round_2("leaves")
def leaves(seen):
    print("goodbye")
    os._exit(0)


@in_round_2("crashes")
def crashes(seen):
    os.kill(os.getpid(), signal.SIGSEGV)


@in_round_2("spins")
def spins(seen):
    # On one line: a stack shows whichever line of the loop is running.
    while True: pass


@in_round_2("holds-the-lock")
def holds_the_lock(seen):
    ctypes.PyDLL(None).sleep(1000)


@policy("learns-to-exit")
class LearnsToExit(Idle):
    def learn(self, observation, offer, feedback):
        sys.exit(0)


@policy("remembers")
class Remembers(Idle):
    def state(self):
        return {"a": None}


@policy("forgets")
class Forgets(Idle):
    def act(self, observation):
        return [] if observation.round == 3 else Offer.none()

    def state(self):
        return {"a": 1.0}

    def restore(self, state):
        self.count = state["b"]


@in_round_2("looks-at-data")
def looks_at_data(seen):
    return Offer([int(seen.privileged.data_size.argmax())], [9.0])
"""

CATCHABLE = {
    "divides": "policy 'divides' of service 'alpha' failed to act in round 2: ZeroDivisionError: division by zero "
    "(mine.py:18, in divides)",
    "exits": "policy 'exits' of service 'alpha' failed to act in round 2: SystemExit: 0 (mine.py:23, in exits)",
    "looks-at-data": "AttributeError: 'NoneType' object has no attribute 'data_size'; services see the clients' data "
    'with market.data = "public", a policy with privileged = True in any market (mine.py:79, in looks_at_data)',
    "below-the-bid": "policy 'below-the-bid' of service 'alpha', round 2, client 0: the payment 0.000000 is below the "
    "bid ",
    "learns-to-exit": "failed to learn in round 1: SystemExit: 0 (mine.py:56, in LearnsToExit.learn)",
    "remembers": "policy of service 'alpha': Remembers.state() (mine.py:61): its array 'a' is of object; use numbers "
    "or truth values",
    "forgets": "policy 'forgets' of service 'alpha', round 3: act() must return an Offer, not list; offered by "
    "Forgets.act() (mine.py:67)",
}
FATAL = {
    "leaves": "its process ended with status 0 (service alpha, round 2)",
    "crashes": "its process was ended by signal 11 (service alpha, round 2)",
}


@pytest.fixture
def folder(one_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plug-in file, mine.py, and a scenario, market.toml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(POLICIES)
    scenario = parse(one_service, overrides=["training.backend=surrogate", "training.local_epochs=2"])
    (tmp_path / "market.toml").write_text(dumps(scenario))
    return tmp_path


def run_directory(folder: Path, policy: str) -> RunDirectory:
    [path] = folder.glob(f"runs/*/{policy}/seed-0000")
    return RunDirectory(path)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_whatever_a_policy_does_fails_its_run_and_no_other(jobs: str, folder: Path) -> None:
    mistakes = {name: message for name, message in CATCHABLE.items() if name != "remembers"} | FATAL
    wanted = [word for name in [*mistakes, "random"] for word in ("--policy", name)]
    done = shell.process("run", "market.toml", "--plugin", "mine.py", "--jobs", jobs, *wanted, cwd=folder)
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    for name, message in mistakes.items():
        [line] = [line for line in lines if line.startswith(f"small ({name}) seed 0: failed: ")]
        assert message in line
        assert run_directory(folder, name).state is (RunState.INCOMPLETE if name in FATAL else RunState.FAILED)
    assert run_directory(folder, "random").state is RunState.COMPLETE
    left = (run_directory(folder, "leaves").path / "run.log").read_text()
    assert "goodbye\n" in left
    assert f"ERROR failed: {FATAL['leaves']}" in left
    crashed = (run_directory(folder, "crashes").path / "run.log").read_text()
    assert "Fatal Python error: Segmentation fault" in crashed
    assert 'File "mine.py", line 39 in crashes' in crashed


def test_in_python_what_can_be_caught_fails_its_run_and_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.running.checkpoint.INTERVAL", 0)
    flmarket.load_plugin("mine.py")
    with pytest.raises(flmarket.BatchFailed) as caught:
        flmarket.run("market.toml", [*CATCHABLE, "random"])
    assert [path.parent.name for path in caught.value.complete] == ["random"]
    said = capsys.readouterr().err
    assert not [message for message in CATCHABLE.values() if message not in said]
    with pytest.raises(flmarket.BatchFailed):
        flmarket.run("market.toml", "forgets")
    assert "failed: KeyError: 'b' (mine.py:74, in Forgets.restore)" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("name", "line"), [("spins", 45), ("holds-the-lock", 50)])
def test_a_policy_that_hangs_is_ended_by_the_decision_timeout(name: str, line: int, folder: Path) -> None:
    command = ["run", "market.toml", "--plugin", "mine.py", "--policy", name, "--policy", "random"]
    done = shell.process(*command, "--decision-timeout", LONG, cwd=folder)
    assert done.returncode == 1
    where = f"mine.py:{line}, in {name.replace('-', '_')} (service alpha, round 2),"
    assert f"small ({name}) seed 0: failed: {where} did not return within the decision timeout (log: " in done.stderr
    assert run_directory(folder, "random").state is RunState.COMPLETE


@pytest.mark.slow
def test_in_python_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flmarket.load_plugin("mine.py")
    with pytest.raises(flmarket.BatchFailed):
        flmarket.run("market.toml", "holds-the-lock", decision_timeout=float(LONG))
    assert (
        "mine.py:50, in holds_the_lock (service alpha, round 2), did not return within the decision timeout"
        in capsys.readouterr().err
    )


DEFINITION = """\
import os, sys, time
from flmarket import Offer, Policy, policy


@policy("mine")
class Mine(Policy):
    def __init__(self, context):
        super().__init__(context)
        IN_INIT

    def act(self, observation):
        return Offer.none()


AT_IMPORT
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("in_init", "at_import", "message"),
    [
        (
            "os._exit(0)",
            "",
            "scenario 'small' cannot be played: its process ended with status 0 (service alpha, policy mine)\n",
        ),
        *slow(
            ("pass", "sys.exit(0)", "mine.py:15: SystemExit: 0\n"),
            ("sys.exit(0)", "", "policy 'mine' of service 'alpha': SystemExit: 0 (mine.py:9, in Mine.__init__)\n"),
            (
                "time.sleep(1000)",
                "",
                "scenario 'small' cannot be played: mine.py:9, in __init__ (service alpha, policy mine), did not "
                "return within the decision timeout\n",
            ),
        ),
    ],
)
def test_what_cannot_be_loaded_or_created_ends_no_batch_in_silence(
    in_init: str, at_import: str, message: str, folder: Path
) -> None:
    (folder / "mine.py").write_text(DEFINITION.replace("IN_INIT", in_init).replace("AT_IMPORT", at_import))
    command = ["run", "market.toml", "--plugin", "mine.py", "--policy", "mine", "--decision-timeout", LONG]
    done = shell.process(*command, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.endswith(message)
    assert not (folder / "runs").exists()


@pytest.mark.slow
def test_a_worker_that_is_killed_while_scenarios_are_checked_fails_the_batch(folder: Path) -> None:
    kills = "os.kill(os.getpid(), 9)"  # as the system does where memory runs out
    (folder / "mine.py").write_text(DEFINITION.replace("IN_INIT", kills).replace("AT_IMPORT", ""))
    done = shell.process("run", "market.toml", "--plugin", "mine.py", "--policy", "mine", cwd=folder)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "scenario 'small' cannot be played: its process was ended by signal 9 (service alpha, policy mine)\n"
    )


def test_code_that_takes_long_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no timeout, too: a line says what the batch waits for."""
    monkeypatch.setattr(worker, "PATIENCE", 0.1)
    monkeypatch.setattr(worker, "_TICK", 0.01)
    monkeypatch.setattr(worker, "is_own", lambda file: file == __file__)
    said: list[str] = []
    threading.Thread(target=worker.report_slow, args=[said.append], daemon=True).start()
    wait_for(lambda: said)
    time.sleep(0.3)
    [line] = said
    assert line.startswith(f"{__file__}:")
    assert line.endswith(", in test_code_that_takes_long_is_reported_once, has not returned for 0.1 s")


def test_a_cluster_is_handed_no_run_whose_policy_ends_the_process_that_creates_it(folder: Path) -> None:
    """Ray's workers would try it again and again; this machine's own worker has tried it before."""
    (folder / "mine.py").write_text(DEFINITION.replace("IN_INIT", "os._exit(0)").replace("AT_IMPORT", ""))
    flmarket.load_plugin("mine.py")
    shelf, played = Shelf(), []
    runs = plan([load("market.toml")], ["mine"], [0], folder / "runs", shelf)
    cluster = SimpleNamespace(play=lambda *_, **__: played.append("run"))
    with Process() as first, pytest.raises(flmarket.InputError, match="its process ended with status 0"):
        run_all(runs, shelf, Callback(), cluster=cluster, first=first)  # type: ignore[arg-type]
    assert not played


def test_a_batch_in_which_a_run_is_neither_complete_nor_failed_is_no_success(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.running.pool.Pool.play", lambda *_, **__: (run for run in ()))
    done = shell.flmarket("run", "market.toml", "--seeds", "2", cwd=folder)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "2 of 2 runs ended without a result: small (as-configured) seed 0, small (as-configured) seed 1\n"
    )


MODEL = """\
import sys
from flmarket import model


@model("mine")
def mine(labels, shape):
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(shape.channels * shape.height * shape.width, labels)

        def forward(self, x):
            if self.training and len(x) > 5:  # a trial has no more
                sys.exit(0)
            return self.linear(x.flatten(1))

    return Module()
"""


@pytest.mark.slow
def test_a_model_that_exits_fails_its_run(folder: Path) -> None:
    (folder / "mine.py").write_text(MODEL)
    change = ["--set", "training.model=mine", "--set", "training.backend=real"]
    done = shell.process("run", "market.toml", "--plugin", "mine.py", *change, cwd=folder)
    assert done.returncode == 1
    assert "failed: model 'mine' of service 'alpha' failed to train client " in done.stderr
    assert " in round 1: SystemExit: 0 (mine.py:16, in Module.forward)" in done.stderr


FULL_DISK = """\
import errno, os
from flmarket import Offer, Policy, policy


def full(descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


os.fsync = full


@policy("idle")
class Idle(Policy):
    def act(self, observation):
        return Offer.none()
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_full_disk_fails_a_run_and_is_no_bad_input(jobs: str, folder: Path) -> None:
    """The plug-in stands for the disk: in the workers, as everywhere, what is written must reach it."""
    (folder / "disk.py").write_text(FULL_DISK)
    done = shell.process("run", "market.toml", "--plugin", "disk.py", "--seeds", "2", "--jobs", jobs, cwd=folder)
    assert done.returncode == 1
    assert done.stderr.count("cannot be written: No space left on device; the same command continues from what") == 2


NO_WRITES = """\
import resource
from flmarket import Offer, Policy, policy

resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@policy("idle")
class Idle(Policy):
    def act(self, observation):
        return Offer.none()
"""


@pytest.mark.slow
def test_where_no_file_can_be_written_at_all_a_batch_fails_with_a_line(folder: Path) -> None:
    (folder / "disk.py").write_text(NO_WRITES)
    done = shell.process("run", "market.toml", "--plugin", "disk.py", "--seeds", "2", "--jobs", "2", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("scenario.toml: cannot be written: File too large\n")


WANDERS = """\
import os, sys
from flmarket import Offer, Policy, policy


@policy("wanders")
class Wanders(Policy):
    def __init__(self, context):
        pass

    def act(self, observation):
        os.chdir("/")
        sys.stdin.close()
        sys.stdout.close()
        return Offer.none()
"""


@pytest.mark.slow
def test_a_policy_that_leaves_its_process_in_disorder_harms_no_later_run(folder: Path) -> None:
    (folder / "mine.py").write_text(WANDERS)
    command = ["run", "market.toml", "--plugin", "mine.py", "--policy", "wanders", "--policy", "random", "--seeds", "2"]
    done = shell.process(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("complete in") == 4
    assert run_directory(folder, "wanders").damage(digests=True) == []
