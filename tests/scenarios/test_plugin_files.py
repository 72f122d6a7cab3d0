"""Plug-in files: what they register, what is wrong with those that cannot be used, and where they travel."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from des.mechanism import MECHANISMS
from fl.data.registry import DATASETS
from fl.training.models import MODELS
from flmarket.analysis.verification.rerun import rerun
from flmarket.core.code_digests import package_digest
from flmarket.core.errors import InputError
from flmarket.core.plugins import PluginError
from learning.policy import POLICIES
from scenarios.build import Shelf
from scenarios.loader import ScenarioError, parse
from scenarios.logs.directory import META, RunDirectoryError
from scenarios.logs.run_state import RunState
from scenarios.plugin_files import (
    PluginFile,
    _package_record,
    load_plugin,
    loaded,
    packed,
    plugins_of,
    registered,
    require_loaded,
    unpack,
)
from scenarios.running import worker
from scenarios.running.batch import run_all
from scenarios.running.batch_run import AfterRound
from scenarios.running.cluster import fingerprint, play_there
from scenarios.running.planning import plan, split_by_completion
from scenarios.running.run_options import RunOptions, TrainOptions
from scenarios.running.runner import execute
from scenarios.train import plan_training
from scenarios.train import run as run_training
from support.observers import Observer

SPENDER = """
    from flmarket import Policy, fill_budget, policy

    @policy("big-spender")
    class BigSpender(Policy):
        summary = "pays a markup of MARKUP"

        def act(self, observation):
            payments = observation.own_bids + MARKUP
            everyone, available = range(observation.clients), observation.available
            return fill_budget(everyone, payments, observation.budget, available=available)
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("text", "mine.py")``: a plug-in file."""

    def write(text: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text))
        return path

    return write


@pytest.fixture
def spender(write: Write) -> Path:
    return write(SPENDER.replace("MARKUP", "0.5"))


def test_a_file_registers_every_kind_of_plugin(write: Write) -> None:
    path = write("""
        import numpy as np
        from flmarket import Mechanism, Policy, dataset, mechanism, model, policy

        @policy("hermit")
        class Hermit(Policy):
            def act(self, observation):
                raise NotImplementedError

        @model("tiny")
        def tiny(labels):
            from torch import nn
            return nn.Linear(1, labels)

        @dataset("noise")
        def noise():
            return np.zeros((4, 8, 8), np.uint8), np.arange(4), np.zeros((4, 8, 8), np.uint8), np.arange(4)

        @mechanism("free")
        class Free(Mechanism):
            def clear(self, book):
                raise NotImplementedError
    """)
    module = load_plugin(path)
    assert POLICIES.names() == [*POLICIES.builtin, "hermit"]
    names = [registry.names()[-1] for registry in (MODELS, DATASETS, MECHANISMS)]
    assert names == ["tiny", "noise", "free"]
    assert registered("mechanism", "free") is module.Free
    assert [file.path for file in loaded()] == [str(path)]
    assert load_plugin(str(path)) is module  # once more changes nothing
    assert POLICIES.names() == [*POLICIES.builtin, "hermit"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", "mine.py:1: '(' was never closed"),
        ("x = 1\ny = = 2\n", "mine.py:2: invalid syntax"),
        ("x = 1\n", "mine.py: registers nothing; put @policy(NAME) or another decorator on what it defines"),
        ("import no_such_package\n", "mine.py:1: ModuleNotFoundError: No module named 'no_such_package'"),
        ("def f():\n    return 1 / 0\n\nf()\n", "mine.py:2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit('no')\n", "mine.py:2: SystemExit: no"),
        (
            "from flmarket import model\n\n@model('a')\ndef a(labels): ...\n\n@model('a')\ndef b(labels): ...\n",
            "mine.py:6: model 'a': is registered twice",
        ),
        (
            "from flmarket import policy\n\n@policy('p')\nclass P: ...\n",
            "mine.py:3: policy 'p': <class 'flmarket_plugin_{}.P'> is not a subclass of flmarket.Policy",
        ),
        (
            "from flmarket import policy, Policy\n\n@policy('lcfa')\nclass P(Policy): ...\n",
            "mine.py:3: policy 'lcfa': the name belongs to a built-in policy; choose another one",
        ),
        (
            "from flmarket import policy, Policy\n\n@policy('idle')\nclass Idle(Policy): ...\n",
            "mine.py:3: policy 'idle': Idle does not define act",
        ),
        (
            "from flmarket import mechanism, Mechanism\n\n@mechanism('idle')\nclass Idle(Mechanism): ...\n",
            "mine.py:3: mechanism 'idle': Idle does not define clear",
        ),
        (
            "from flmarket import policy, Policy\n\n@policy\nclass P(Policy): ...\n",
            'mine.py:3: the decorator needs the name of the policy: write ("name") after it',
        ),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used(
    text: str, message: str, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write("").write_text(text)
    monkeypatch.chdir(tmp_path)
    before = [registry.names() for registry in (POLICIES, MODELS)]
    with pytest.raises(PluginError) as caught:
        load_plugin("mine.py")
    assert str(caught.value) == message.replace("{}", PluginFile.read("mine.py").sha256[:16])
    assert [registry.names() for registry in (POLICIES, MODELS)] == before
    assert not loaded()


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "mine.py", "no such file; a plug-in is a Python file"),
        (tmp_path, "cannot be read: Is a directory"),
    ):
        with pytest.raises(PluginError) as caught:
            load_plugin(path)
        assert str(caught.value) == f"{path}: {message}"
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\nx = 'ü'\n".encode("latin-1"))
    with pytest.raises(PluginError, match=r"latin\.py: is not UTF-8 text: "):
        load_plugin(tmp_path / "latin.py")
    (tmp_path / "null.py").write_bytes(b"x = 'a\0b'\n")
    with pytest.raises(PluginError, match=r"null\.py:.* null bytes"):
        load_plugin(tmp_path / "null.py")


def test_two_files_cannot_have_one_name(spender: Path, write: Write) -> None:
    other = write(SPENDER.replace("MARKUP", "1.0"), "other.py")
    load_plugin(spender)
    with pytest.raises(PluginError) as caught:
        load_plugin(other)
    assert str(caught.value) == f"{other}:4: policy 'big-spender': is already registered by {spender}"
    assert POLICIES.load("big-spender").summary == "pays a markup of 0.5"


def test_a_new_text_of_a_file_takes_the_place_of_the_old_one(spender: Path, write: Write) -> None:
    load_plugin(spender)
    load_plugin(write(SPENDER.replace("MARKUP", "1.0").replace("big-spender", "bigger-spender")))
    assert POLICIES.names() == [*POLICIES.builtin, "bigger-spender"]
    write("1 / 0")
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        load_plugin(spender)
    assert POLICIES.names() == [*POLICIES.builtin, "bigger-spender"]


def test_a_scenario_names_plugins_but_never_loads_them(one_service: str, spender: Path) -> None:
    text = one_service.replace('"random"', '"big-spender"')
    with pytest.raises(ScenarioError, match="unknown policy 'big-spender'; choose from bwk, contribution, "):
        parse(text)
    load_plugin(spender)
    assert plugins_of(parse(text)) == {
        "policy big-spender": {"file": "mine.py", "sha256": PluginFile.read(spender).sha256}
    }
    assert not plugins_of(parse(one_service))


@pytest.mark.slow
def test_a_plugin_travels_to_other_processes_and_machines(
    one_service: str, spender: Path, tmp_path: Path, shelf: Shelf, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    load_plugin(spender)
    scenario = parse(one_service)
    here, there = (plan([scenario], ["big-spender"], [0, 1], tmp_path / place, shelf) for place in ("here", "there"))
    assert not run_all(here, shelf, Observer(), RunOptions(workers=0)).failed
    spender.unlink()  # what was read counts, whatever becomes of the file
    result = run_all(there, shelf, observer := Observer(), RunOptions(jobs=2, workers=0))
    assert not result.failed, observer.notified
    assert files_of(tmp_path / "here") == files_of(tmp_path / "there")
    asked = json.dumps(worker.play_message(here[0], workers=0, fresh=False) | {"fingerprint": fingerprint()})
    POLICIES._registered.clear()  # as on another machine
    returned = play_there(asked)
    assert returned["error"] is None
    assert returned["files"]["rounds.csv"] == (here[0].directory.path / "rounds.csv").read_bytes()


def test_a_run_records_its_plugins_and_another_text_is_refused(
    one_service: str, spender: Path, write: Write, tmp_path: Path, shelf: Shelf
) -> None:
    scenario = parse(one_service)
    out = tmp_path / "runs"
    load_plugin(spender)
    runs = plan([scenario], ["big-spender", "lcfa"], [0], out, shelf)
    assert not run_all(runs, shelf, Observer(), RunOptions(workers=0)).failed
    spent, other = (json.loads((run.directory.path / META).read_text()) for run in runs)
    assert spent["plugins"] == {"policy big-spender": PluginFile.read(spender).record}
    assert other["plugins"] == {}
    assert split_by_completion(runs) == ([], runs)
    assert not rerun(runs[0].directory, shelf)

    load_plugin(write(SPENDER.replace("MARKUP", "1.0")))
    with pytest.raises(RunDirectoryError) as caught:
        split_by_completion(runs)
    assert str(caught.value) == (
        f"{runs[0].directory.path / META}: belongs to a run with a different version of mine.py, which defines "
        "policy 'big-spender'; start over with the option fresh-changed, or choose another folder"
    )
    assert split_by_completion(runs, fresh="changed") == (runs[:1], runs[1:])
    assert split_by_completion(runs[1:]) == ([], runs[1:])  # the one that does not use the file is as it was
    with pytest.raises(PluginError, match=r"was played with a different version of mine\.py, which defines policy"):
        rerun(runs[0].directory, shelf)

    POLICIES._registered.clear()
    with pytest.raises(PluginError) as refused:
        rerun(runs[0].directory, shelf)
    assert str(refused.value) == (
        f"{runs[0].directory.path}: uses policy 'big-spender' of the plug-in file mine.py; load that file"
    )


IMPORTING = SPENDER.replace("from flmarket", "from helper import MARKUP\n    from flmarket").replace(
    '"pays a markup of MARKUP"', '"pays a markup"'
)


def test_an_edit_of_what_a_plugin_file_imports_is_another_version(
    one_service: str, write: Write, tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "helper", raising=False)  # another test's
    helper = write("MARKUP = 0.5\n", "helper.py")
    load_plugin(spender := write(IMPORTING))
    runs = plan([parse(one_service)], ["big-spender"], [0], tmp_path / "runs", shelf)
    assert not run_all(runs, shelf, Observer(), RunOptions(workers=0)).failed
    helper.write_text("MARKUP = 1.0\n")
    assert split_by_completion(runs) == ([], runs)  # this process has loaded the old one
    sent = packed(runs[0].scenario)
    POLICIES._registered.clear()  # as in another process
    monkeypatch.delitem(sys.modules, "helper")
    with pytest.raises(PluginError, match=r"mine\.py: helper, which it imports, differs"):
        unpack(sent)
    load_plugin(spender)
    with pytest.raises(RunDirectoryError, match=r"a different version of mine\.py, which defines policy 'big-spender'"):
        split_by_completion(runs)
    assert split_by_completion(runs, fresh="changed") == (runs, [])


def test_a_plugin_file_may_say_itself_where_what_it_imports_is(
    one_service: str, write: Write, tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "lab").mkdir()
    helper = write("MARKUP = 0.5\n", "lab/shares.py")
    add = f"import sys\n    sys.path.insert(0, {str(helper.parent)!r})\n    from shares import"
    load_plugin(spender := write(IMPORTING.replace("from helper import", add)))
    runs = plan([parse(one_service)], ["big-spender"], [0], tmp_path / "runs", shelf)
    assert not run_all(runs, shelf, Observer(), RunOptions(workers=0)).failed
    sent = packed(runs[0].scenario)
    POLICIES._registered.clear()  # as in another process
    unpack(sent)
    assert split_by_completion(runs) == ([], runs)
    helper.write_text("MARKUP = 1.0\n")
    POLICIES._registered.clear()
    monkeypatch.delitem(sys.modules, "shares")
    load_plugin(spender)
    assert split_by_completion(runs, fresh="changed") == (runs, [])


def test_an_edit_of_an_installed_package_is_another_version(
    one_service: str,
    install_package: Callable[..., None],
    tmp_path: Path,
    shelf: Shelf,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = dedent(SPENDER).replace('@policy("big-spender")', "").replace("MARKUP", "0.5")
    install_package("acme", text, "flmarket.policies", spender="acme:BigSpender")
    (run,) = plan([parse(one_service)], ["spender"], [0], tmp_path / "runs", shelf)
    assert not run_all([run], shelf, Observer(), RunOptions(workers=0)).failed
    record = run.directory.meta()["plugins"]["policy spender"]
    assert (record["file"], record["package"]) == ("acme 1.5", "acme:BigSpender")
    sent = packed(run.scenario)
    unpack(sent)
    module = Path(sys.modules["acme"].__file__)
    module.write_text(text.replace("0.5", "1.0"))
    assert split_by_completion([run]) == ([], [run])  # this process has loaded the old one
    _package_record.cache_clear()  # as in another process
    with pytest.raises(RunDirectoryError, match=r"a different version of acme 1\.5, which defines policy 'spender'"):
        split_by_completion([run])
    with pytest.raises(PluginError, match=r"acme 1\.5, which defines policy 'spender', differs from"):
        unpack(sent)
    module.write_text(text)
    _package_record.cache_clear()
    assert split_by_completion([run]) == ([], [run])
    (module.parent / "acme-1.5.dist-info" / "RECORD").write_text("acme/core.so,sha256=abc,10\n")
    _package_record.cache_clear()
    package_digest.cache_clear()
    assert split_by_completion([run], fresh="changed") == ([run], [])
    with pytest.raises(PluginError, match=r"was played with a different version of acme 1\.5, which defines"):
        rerun(run.directory, shelf)


TYPED = """
import sys, flmarket
class Mine(flmarket.Policy):
    def act(self, observation):
        if len(sys.argv) > 2 and observation.round == 2:
            raise KeyboardInterrupt
        return flmarket.Offer.none()
flmarket.policy("mine")(Mine)
import scenarios.running.checkpoint as checkpoint
checkpoint.INTERVAL = 0.0
print(flmarket.run("quickstart", policies=["mine"], rounds=3, out=sys.argv[1], progress=False))
print(flmarket.run("quickstart", policies=["mine"], rounds=3, out=sys.argv[1], progress=False))
"""


@pytest.mark.slow
def test_a_run_of_a_policy_whose_source_cannot_be_read_is_complete_for_its_process_alone(tmp_path: Path) -> None:
    def typed(*arguments: str, out: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-", out, *arguments]
        return subprocess.run(command, input=TYPED, cwd=tmp_path, capture_output=True, text=True)

    assert typed(out="whole").returncode == 0
    assert "KeyboardInterrupt" in typed("stop", out="runs").stderr
    assert typed(out="runs").stderr.splitlines()[-1] == (
        "scenarios.logs.directory.ChangedError: runs/quickstart-612f2868/mine/seed-0000: contains an interrupted run "
        "with policy 'mine', which may be another one now (what defines it cannot be read: OSError: could not get "
        "source code; put it into a file), so its results could not be the same; start over with the option "
        "fresh-changed, or choose another folder"
    )


def test_a_run_is_not_resumed_with_another_text(
    one_service: str, spender: Path, write: Write, tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.running.checkpoint.INTERVAL", 0.0)
    load_plugin(spender)
    (run,) = plan([parse(one_service)], ["big-spender"], [0], tmp_path / "runs", shelf)

    def stop(report) -> None:
        if report.round == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(run, shelf, AfterRound(stop), workers=0)
    assert run.directory.state is RunState.INCOMPLETE
    load_plugin(write(SPENDER.replace("MARKUP", "1.0")))
    with pytest.raises(RunDirectoryError) as caught:
        execute(run, shelf, workers=0)
    assert str(caught.value) == (
        f"{run.directory.path}: contains an interrupted run with a different version of mine.py, which defines policy "
        "'big-spender', so its results could not be the same; start over with the option fresh-changed, or choose "
        "another folder"
    )
    log = run.directory.path / "run.log"
    assert log.read_text().endswith(f"ERROR failed: {caught.value}\n")  # without a traceback
    execute(run, shelf, workers=0, fresh="changed")
    assert run.directory.meta()["plugins"]["policy big-spender"]["sha256"] == PluginFile.read(spender).sha256
    assert "after round" not in log.read_text()  # it did not continue


def test_records_of_a_kind_that_there_is_not() -> None:
    with pytest.raises(InputError, match=r"run 7: uses colour 'red' of the plug-in file c\.py; load that file"):
        require_loaded({"colour red": {"file": "c.py", "sha256": "0"}}, "run 7")


def test_a_policy_of_a_notebook_is_missed_by_its_name() -> None:
    with pytest.raises(InputError) as caught:
        require_loaded({"policy markup": {"file": "__main__", "sha256": "0"}}, "run 7")
    assert str(caught.value) == (
        "run 7: uses policy 'markup' of a notebook or script (__main__), so this run can be played again only there; "
        "put the definition into a file, load that as a plug-in file, and play a new run"
    )


def test_an_agent_says_which_plugins_it_was_trained_against(
    two_services: str, spender: Path, tmp_path: Path, shelf: Shelf
) -> None:
    load_plugin(spender)
    scenario = parse(two_services, overrides=["rounds=1", "training.backend=surrogate", "training.local_epochs=2"])
    plan = plan_training([scenario], TrainOptions(episodes=1, rotate=True, rivals=["big-spender"]))
    run_training(plan, 0, tmp_path / "agent.safetensors", shelf)
    described = json.loads((tmp_path / "agent.json").read_text())
    assert described["plugins"] == {"policy big-spender": PluginFile.read(spender).record}
