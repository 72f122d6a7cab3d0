"""Plug-ins that end, crash or hang their process: each fails its own run, with a line that names it, and no other."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import flmarket
from scenarios.build import Shelf
from scenarios.loader import dumps, load, parse
from scenarios.logs.directory import RunDirectory, State
from scenarios.running.batch import run_all
from scenarios.running.planning import plan
from scenarios.running.process import Worker
from support import shell
from support.tiers import slow

POLICIES = """\
import ctypes, os, signal, sys
import numpy as np
from flmarket import Offer, Policy, policy


class Unprintable(Exception):
    def __repr__(self):
        raise SystemExit(0)

    __str__ = __repr__


class NoArray:
    def __array__(self, *_, **__):
        raise SystemExit(0)


class Quiet(Policy):
    def act(self, observation):
        return Offer.none()


def hostile(name):
    def register(act):
        policy(name)(type(name, (Quiet,), {"act": lambda self, seen: act(seen) if seen.round == 2 else Offer.none()}))
    return register


@hostile("exits")
def exits(seen):
    sys.exit(0)


@hostile("generator-exit")
def generator_exit(seen):
    raise GeneratorExit


@hostile("unprintable")
def unprintable(seen):
    raise Unprintable


@hostile("no-array")
def no_array(seen):
    return Offer(NoArray(), [1.0])


@hostile("leaves")
def leaves(seen):
    print("goodbye")
    os._exit(0)


@hostile("crashes")
def crashes(seen):
    os.kill(os.getpid(), signal.SIGSEGV)


@hostile("killed")
def killed(seen):
    os.kill(os.getpid(), signal.SIGKILL)


@hostile("spins")
def spins(seen):
    while True:
        pass


@hostile("holds-the-lock")
def holds_the_lock(seen):
    ctypes.PyDLL(None).sleep(1000)


@policy("learns-to-exit")
class LearnsToExit(Quiet):
    def learn(self, observation, offer, feedback):
        sys.exit(0)

    def state(self):
        return {}


@policy("forgetful")
class Forgetful(Quiet):
    @property
    def resumable(self):
        sys.exit(0)


@policy("sees")
class Sees(Quiet):
    @property
    def sees_offers(self):
        raise Unprintable
"""

CATCHABLE = {
    "exits": "failed to act in round 2: SystemExit(0) (mine.py:31)",
    "generator-exit": "failed to act in round 2: GeneratorExit() (mine.py:36)",
    "unprintable": "failed to act in round 2: Unprintable (which raises SystemExit when it is printed) (mine.py:41)",
    "no-array": "clients and payments must be lists of the same length: SystemExit: 0 (mine.py:15)",
    "learns-to-exit": "failed to learn in round 1: SystemExit(0) (mine.py:79)",
    "forgetful": "failed to declare whether it is resumable: SystemExit(0) (mine.py:89)",
    "sees": "failed to declare whether it sees_offers in round 1: Unprintable (which raises SystemExit when it is "
    "printed) (mine.py:96)",
}
FATAL = {
    "leaves": "its process ended with status 0 (policy 'leaves' of service 'alpha', round 2: act())",
    "crashes": "its process was ended by signal 11 (policy 'crashes' of service 'alpha', round 2: act())",
    "killed": "its process was ended by signal 9 (policy 'killed' of service 'alpha', round 2: act())",
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
    wanted = [word for name in [*CATCHABLE, *FATAL, "random"] for word in ("--policy", name)]
    done = shell.process("run", "market.toml", "--plugin", "mine.py", "--jobs", jobs, *wanted, cwd=folder)
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    for name, message in (CATCHABLE | FATAL).items():
        [line] = [line for line in lines if line.startswith(f"small ({name}) seed 0: failed: ")]
        assert message in line
        assert run_directory(folder, name).state is State.INCOMPLETE
    assert run_directory(folder, "random").state is State.COMPLETE
    assert "seed-0000/rounds.csv" in done.stdout


@pytest.mark.slow
def test_the_log_of_a_run_has_what_its_policy_printed_and_how_its_process_ended(folder: Path) -> None:
    wanted = [word for name in ("leaves", "crashes") for word in ("--policy", name)]
    shell.process("run", "market.toml", "--plugin", "mine.py", *wanted, cwd=folder)
    left = (run_directory(folder, "leaves").path / "run.log").read_text()
    assert "goodbye\n" in left
    assert f"ERROR failed: {FATAL['leaves']}" in left
    crashed = (run_directory(folder, "crashes").path / "run.log").read_text()
    assert "Fatal Python error: Segmentation fault" in crashed
    assert 'File "mine.py", line 57 in crashes' in crashed


def test_in_python_what_can_be_caught_fails_its_run_and_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flmarket.load_plugin("mine.py")
    with pytest.raises(flmarket.BatchFailed) as caught:
        flmarket.run("market.toml", [*CATCHABLE, "random"])
    assert [path.parent.name for path in caught.value.complete] == ["random"]
    said = capsys.readouterr().err
    assert all(message in said for message in CATCHABLE.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spins", "holds-the-lock"])
def test_a_policy_that_hangs_is_ended_by_the_decision_timeout(name: str, folder: Path) -> None:
    command = ["run", "market.toml", "--plugin", "mine.py", "--policy", name, "--policy", "random"]
    done = shell.process(*command, "--decision-timeout", "1.5", cwd=folder)
    assert done.returncode == 1
    message = (
        f"small ({name}) seed 0: failed: policy '{name}' of service 'alpha', round 2: act() did not return within "
        "1.5 s (--decision-timeout) (log: "
    )
    assert message in done.stderr
    assert run_directory(folder, "random").state is State.COMPLETE


@pytest.mark.slow
def test_in_python_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flmarket.load_plugin("mine.py")
    with pytest.raises(flmarket.BatchFailed):
        flmarket.run("market.toml", "holds-the-lock", decision_timeout=1)
    assert "round 2: act() did not return within 1 s (decision_timeout=)" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("in_init", "at_import", "message"),
    [
        (
            "os._exit(0)",
            "",
            "scenario 'small' cannot be played: its process ended with status 0 "
            "(policy 'mine' of service 'alpha': __init__())\n",
        ),
        *slow(
            ("pass", "sys.exit(0)", "mine.py:15: SystemExit: 0\n"),
            ("sys.exit(0)", "", "policy 'mine' of service 'alpha': SystemExit: 0 (mine.py:9)\n"),
            (
                "time.sleep(1000)",
                "",
                "scenario 'small' cannot be played: policy 'mine' of service 'alpha': __init__() did not return within "
                "2 s (--decision-timeout)\n",
            ),
        ),
    ],
)
def test_what_cannot_be_loaded_or_created_ends_no_batch_in_silence(
    in_init: str, at_import: str, message: str, folder: Path
) -> None:
    (folder / "mine.py").write_text(DEFINITION.replace("IN_INIT", in_init).replace("AT_IMPORT", at_import))
    command = ["run", "market.toml", "--plugin", "mine.py", "--policy", "mine", "--decision-timeout", "2"]
    done = shell.process(*command, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.endswith(message)
    assert not (folder / "runs").exists()


@pytest.mark.slow
def test_a_policy_that_takes_long_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no timeout, too: a line says what the batch waits for."""
    monkeypatch.setattr("scenarios.running.record.PATIENCE", 0.5)
    (folder / "mine.py").write_text(
        DEFINITION.replace("IN_INIT", "pass").replace("AT_IMPORT", "").replace("return", "time.sleep(1); return")
    )
    done = shell.flmarket("run", "market.toml", "--plugin", "mine.py", "--policy", "mine", "--rounds", "1", cwd=folder)
    assert done.returncode == 0
    line = (
        "small (mine) seed 0: policy 'mine' of service 'alpha', round 1: act() has not returned for 0.5 s; "
        "--decision-timeout SECONDS ends such a run"
    )
    assert done.stderr.count(line) == 1


def test_ray_refuses_the_decision_timeout(folder: Path) -> None:
    done = shell.flmarket("run", "market.toml", "--engine", "ray", "--decision-timeout", "5", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == (
        "--decision-timeout is not for --engine ray: a task cannot end a policy that hangs; play with --jobs, or "
        "cancel the task\n"
    )


def test_a_cluster_is_handed_no_run_whose_policy_ends_the_process_that_creates_it(folder: Path) -> None:
    """Ray's workers would try it again and again; this machine's own worker has tried it before."""
    (folder / "mine.py").write_text(DEFINITION.replace("IN_INIT", "os._exit(0)").replace("AT_IMPORT", ""))
    flmarket.load_plugin("mine.py")
    shelf, played = Shelf(), []
    runs = plan([load("market.toml")], ["mine"], [0], folder / "runs", shelf)
    cluster = SimpleNamespace(play=lambda *_, **__: played.append("run"))
    with Worker() as first, pytest.raises(flmarket.InputError, match="its process ended with status 0") as refused:
        run_all(runs, shelf, SimpleNamespace(), cluster=cluster, first=first)  # type: ignore[arg-type]
    assert str(refused.value) == (
        "scenario 'small' cannot be played: its process ended with status 0 "
        "(policy 'mine' of service 'alpha': __init__())"
    )
    assert not played


REMEMBERS = """\
import numpy as np
from flmarket import Offer, Policy, policy


class NoArray:
    def __array__(self, *_, **__):
        raise SystemExit(0)


@policy("remembers")
class Remembers(Policy):
    def act(self, observation):
        return Offer.none()

    def state(self):
        return STATE

    def restore(self, state):
        raise SystemExit(0)
"""


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("[1, 2]", "state() must return a dict of arrays by name, not list"),
        ("{1: np.zeros(2)}", "state() must name arrays by printable text, not by 1"),
        ("{'\\ud800': np.zeros(2)}", "state() must name arrays by printable text, not by '\\ud800'"),
        ("{'a': np.array([None])}", "its array 'a' is of object; use numbers or truth values"),
        ("{'a': 'text'}", "its array 'a' is of <U4; use numbers or truth values"),
        ("{'a': np.zeros(2, np.longdouble)}", "its array 'a' is of float128; use numbers or truth values"),
        ("{'a': [[1], [1, 2]]}", "ValueError("),
        ("{'a': NoArray()}", "SystemExit(0) (mine.py:7)"),
    ],
)
def test_a_state_that_cannot_be_stored_fails_its_run(
    state: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("scenarios.running.checkpoint.INTERVAL", 0)
    (folder / "mine.py").write_text(REMEMBERS.replace("STATE", state))
    flmarket.load_plugin("mine.py")
    with pytest.raises(flmarket.BatchFailed):
        flmarket.run("market.toml", ["remembers", "random"])
    failed = "failed: policy 'remembers' of service 'alpha' failed to return its state: "
    assert failed + message in capsys.readouterr().err
    assert run_directory(folder, "random").state is State.COMPLETE


def test_a_state_that_cannot_be_restored_fails_its_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("scenarios.running.checkpoint.INTERVAL", 0)
    text = REMEMBERS.replace("STATE", "{'a': np.zeros(2)}").replace(
        "return Offer", "1 / (observation.round - 3); return Offer"
    )
    (folder / "mine.py").write_text(text)
    flmarket.load_plugin("mine.py")
    for message in ("failed to act in round 3: ", "failed to restore its state: SystemExit(0) (mine.py:19)"):
        with pytest.raises(flmarket.BatchFailed):
            flmarket.run("market.toml", "remembers")
        assert message in capsys.readouterr().err


def test_a_batch_in_which_a_run_is_neither_complete_nor_failed_is_no_success(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.running.pool.Pool.play", lambda *_, **__: [])
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
        seen = 0

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(shape.channels * shape.height * shape.width, labels)

        def forward(self, x):
            Module.seen += 1
            if Module.seen > 5:
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
    assert "failed: model 'mine' of service 'alpha' failed: SystemExit(0) (mine.py:19)" in done.stderr


def test_the_listing_of_policies_names_what_is_wrong_with_one(folder: Path) -> None:
    (folder / "mine.py").write_text("""\
from flmarket import Offer, Policy, policy


class Meta(type(Policy)):
    @property
    def privileged(cls):
        raise SystemExit(0)


@policy("mine")
class Mine(Policy, metaclass=Meta):
    def act(self, observation):
        return Offer.none()
""")
    done = shell.flmarket("policies", "--plugin", "mine.py", cwd=folder)
    assert done.returncode == 0
    assert "policy 'mine': privileged: SystemExit: 0 (mine.py:7)" in done.stdout


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
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == "no worker process can be started: File too large"


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


FORKS = """\
import os
from flmarket import Offer, Policy, policy


@policy("forks")
class Forks(Policy):
    def act(self, observation):
        if observation.round == 2:
            os.fork()
        return Offer.none()


@policy("interrupts")
class Interrupts(Policy):
    def __init__(self, context):
        super().__init__(context)
        if context.rounds == 1:
            raise KeyboardInterrupt

    def act(self, observation):
        raise KeyboardInterrupt
"""


@pytest.mark.slow
def test_a_process_that_a_policy_forks_plays_no_run(folder: Path) -> None:
    (folder / "mine.py").write_text(FORKS)
    wanted = ["--policy", "forks", "--policy", "random", "--seeds", "3", "--jobs", "1"]
    done = shell.process("run", "market.toml", "--plugin", "mine.py", *wanted, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("complete in") == 6
    verified = shell.process("verify", "runs", "--rerun", "--plugin", "mine.py", cwd=folder)
    assert verified.returncode == 0, verified.stderr


@pytest.mark.slow
def test_a_keyboard_interrupt_of_a_policy_says_whose_it_is(folder: Path) -> None:
    (folder / "mine.py").write_text(FORKS)
    command = ["run", "market.toml", "--plugin", "mine.py", "--policy", "interrupts"]
    done = shell.process(*command, cwd=folder)
    assert done.returncode == 1
    assert "policy 'interrupts' of service 'alpha' failed to act in round 1: KeyboardInterrupt() (mine.py:21)" in (
        done.stderr
    )
    done = shell.process(*command, "--rounds", "1", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.endswith("policy 'interrupts' of service 'alpha': KeyboardInterrupt (mine.py:18)\n")
