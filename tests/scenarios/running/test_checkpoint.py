"""Runs that are killed resume, and their files are byte for byte those of a run that never was."""

import resource
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from des.log_records import RoundReport
from des.observation import Feedback, Observation, Offer
from flmarket.core.errors import RunError
from flmarket.core.installation import versions
from learning.client_selection.selection import fill_budget
from learning.play_round import Stopped
from learning.policy import Policy, PolicyContext, policy
from scenarios.build import Shelf
from scenarios.file.schema import Scenario
from scenarios.loader import parse
from scenarios.logs.directory import RunDirectoryError
from scenarios.logs.run_state import RunState
from scenarios.running import checkpoint
from scenarios.running.batch_run import AfterRound, Run
from scenarios.running.planning import plan
from scenarios.running.runner import execute
from support.runs import RESULTS, interrupt

MakeRun = Callable[..., Run]

CHANGES = [
    "rounds=12",
    "clients.speed=[0.3, 1.0, 1.7]",
    "clients.departure_rate=0.1",
    "timeline.upload_seconds=0.1",
    "services.beta.target_accuracy=0.2",
]
INTERVENTIONS = """
[[interventions]]
round = 3
key = "clients.cores"
value = 2

[[interventions]]
round = 4
key = "services.alpha.budget"
value = 4.25

[[interventions]]
round = 5
key = "clients.offline"
value = [1, 2]
"""


@pytest.fixture
def every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)


@pytest.fixture(scope="module")
def scenario(two_services: str) -> Scenario:
    """A market with all that a checkpoint must keep: stragglers, departures, an exit, changes from outside."""
    return parse(two_services + INTERVENTIONS, overrides=CHANGES)


@pytest.fixture(scope="module")
def run_of(scenario: Scenario, shelf: Shelf) -> MakeRun:
    """``run_of(out, seed=..., policy=...)``: a run of the scenario, not yet begun."""

    def make(out: Path, *, seed: int = 0, policy: str | None = None) -> Run:
        [run] = plan([scenario], [policy] if policy else [], [seed], out, shelf)
        return run

    return make


def results(run: Run) -> dict[str, bytes]:
    return {name: (run.directory.path / name).read_bytes() for name in RESULTS}


@pytest.fixture(scope="module")
def whole(run_of: MakeRun, tmp_path_factory: pytest.TempPathFactory, shelf: Shelf) -> dict[str, bytes]:
    """The files of a run that nothing interrupted."""
    run = run_of(tmp_path_factory.mktemp("whole"))
    execute(run, shelf, workers=0)
    return results(run)


def replaced(path: Path, name: str) -> None:
    """Save a table as editors and rsync do: a copy takes its place."""
    content = (path / name).read_bytes()
    (path / ".copy").write_bytes(content)
    (path / ".copy").rename(path / name)


def changed(path: Path, name: str) -> None:
    content = (path / name).read_bytes()
    (path / name).write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + b"\n")


@pytest.mark.slow
@pytest.mark.parametrize("accident", [replaced, lambda path, name: (path / name).unlink(), changed])
@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_table_that_is_replaced_while_its_run_plays_fails_the_run_which_continues(
    whole: dict[str, bytes],
    run_of: MakeRun,
    tmp_path: Path,
    shelf: Shelf,
    monkeypatch: pytest.MonkeyPatch,
    accident: Callable[[Path, str], None],
    checkpoints: bool,
) -> None:
    if checkpoints:
        monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    run = run_of(tmp_path)

    def act(report: RoundReport) -> None:
        if report.round == 3:
            accident(run.directory.path, "offers.csv")

    with pytest.raises(
        RunError, match=r"offers\.csv: was replaced or changed by another program while the run was played"
    ):
        execute(run, shelf, AfterRound(act), workers=0)
    assert run.directory.state is RunState.FAILED
    if checkpoints and accident is changed:  # before the checkpoints were taken: nobody has what stood there
        with pytest.raises(RunDirectoryError, match="every checkpoint, or a table that belongs to it, is damaged"):
            execute(run, shelf, workers=0)
        return
    execute(run, shelf, workers=0)
    assert results(run) == whole


@pytest.mark.usefixtures("every_round")
@pytest.mark.parametrize("after", [1, 5, 11])
def test_a_run_goes_on_after_any_round(
    after: int, whole: dict[str, bytes], run_of: MakeRun, tmp_path: Path, shelf: Shelf
) -> None:
    run = run_of(tmp_path)
    interrupt(run, shelf, after)
    assert run.directory.state is RunState.INCOMPLETE
    played: list[int] = []
    execute(run, shelf, AfterRound(lambda report: played.append(report.round)), workers=2)
    assert played == list(range(after + 1, 13))
    assert results(run) == whole
    assert {entry.name for entry in run.directory.path.iterdir()} == {*RESULTS, "meta.json", "run.log"}


def test_a_run_that_is_stopped_between_rounds_goes_on_from_there_at_once(
    whole: dict[str, bytes], run_of: MakeRun, tmp_path: Path, shelf: Shelf
) -> None:
    """However little time has passed since the last checkpoint."""
    run = run_of(tmp_path)

    def stop(report: RoundReport) -> None:
        if report.round == 5:
            raise Stopped

    with pytest.raises(Stopped):
        execute(run, shelf, AfterRound(stop), workers=0)
    played: list[int] = []
    execute(run, shelf, AfterRound(lambda report: played.append(report.round)), workers=0)
    assert played == list(range(6, 13))
    assert results(run) == whole


def test_a_run_without_a_checkpoint_starts_over(
    whole: dict[str, bytes], run_of: MakeRun, tmp_path: Path, shelf: Shelf
) -> None:
    run = run_of(tmp_path)
    interrupt(run, shelf, 3)
    assert not (run.directory.path / "checkpoint").exists()  # the run is younger than five seconds
    execute(run, shelf, workers=0)
    assert results(run) == whole


def test_checkpoints_are_at_most_the_interval_apart_or_a_round(
    run_of: MakeRun, tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
    saved: list[tuple[float, int]] = []
    monkeypatch.setattr(checkpoint, "save", lambda folder, it: saved.append((clock[0], it.round)))

    def two_seconds_a_round(report: object) -> None:
        clock[0] += 2.0

    run = run_of(tmp_path)
    execute(run, shelf, AfterRound(two_seconds_a_round), workers=0)
    # The clock moves after the checkpoint of a round: rounds end at 0, 2, 4, ...
    assert [time for time, _ in saved] == [4, 8, 12, 16, 20]


@pytest.mark.usefixtures("every_round")
def test_a_run_with_a_damaged_newest_checkpoint_goes_on_from_the_one_before(
    whole: dict[str, bytes], run_of: MakeRun, tmp_path: Path, shelf: Shelf
) -> None:
    for name, damage in {
        "00000006.json": lambda content: content[: len(content) // 2],
        "00000006.safetensors": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    }.items():
        run = run_of(tmp_path / name)
        interrupt(run, shelf, 6)
        folder = run.directory.path / "checkpoint"
        assert sorted(path.name for path in folder.iterdir()) == [
            "00000005.json", "00000005.safetensors", "00000006.json", "00000006.safetensors",
        ]  # fmt: skip
        (folder / name).write_bytes(damage((folder / name).read_bytes()))
        execute(run, shelf, workers=0)
        assert "continue after round 5" in (run.directory.path / "run.log").read_text()
        assert results(run) == whole


@pytest.mark.usefixtures("every_round")
@pytest.mark.parametrize("change", [lambda it: it.write_bytes(b"my notes" + it.read_bytes()[8:]), Path.unlink])
def test_a_run_whose_tables_were_changed_is_refused_and_left_alone(
    change: Callable[[Path], object], run_of: MakeRun, tmp_path: Path, shelf: Shelf
) -> None:
    def tables() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in run.directory.path.glob("*.csv")}

    run = run_of(tmp_path)
    interrupt(run, shelf, 6)
    change(run.directory.path / "offers.csv")
    before = tables()
    with pytest.raises(
        RunDirectoryError,
        match=r"every checkpoint, or a table that belongs to it, is damaged; start over with the option fresh",
    ):
        execute(run, shelf, workers=0)
    assert tables() == before
    execute(run, shelf, workers=0, fresh=True)
    assert run.directory.state is RunState.COMPLETE


@pytest.mark.usefixtures("every_round")
def test_a_run_begun_with_another_version_is_refused_and_names_it(
    run_of: MakeRun, tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, now = run_of(tmp_path), versions()
    interrupt(run, shelf, 6)
    monkeypatch.setattr("scenarios.running.runner.versions", lambda: now | {"torch": "3.0"})
    with pytest.raises(RunDirectoryError) as caught:
        execute(run, shelf, workers=0)
    assert f"an interrupted run with other versions (torch {now['torch']}, here 3.0), so its" in str(caught.value)


@pytest.mark.usefixtures("every_round")
def test_the_directory_of_another_run_is_refused(run_of: MakeRun, tmp_path: Path, shelf: Shelf) -> None:
    run, other = run_of(tmp_path), run_of(tmp_path, seed=1)
    interrupt(run, shelf, 6)
    run.directory.path.rename(other.directory.path)
    before = {path: path.read_bytes() for path in other.directory.path.rglob("*.*") if path.name != "run.log"}
    with pytest.raises(RunDirectoryError, match=r"another seed \(0, here 1\)"):
        execute(other, shelf, workers=0)
    scenario = other.directory.path / "scenario.toml"
    scenario.write_text(scenario.read_text().replace("rounds = 12", "rounds = 13"))
    with pytest.raises(RunDirectoryError, match=r"scenario\.toml: contains an interrupted run of another scenario"):
        execute(other, shelf, workers=0)
    scenario.unlink()
    with pytest.raises(
        RunDirectoryError, match=r"contains checkpoint but no scenario\.toml, so it is not a run directory"
    ):
        execute(other, shelf, workers=0)
    del before[scenario]
    assert {path: path.read_bytes() for path in before} == before


def test_a_run_that_another_process_is_at_is_refused(run_of: MakeRun, tmp_path: Path, shelf: Shelf) -> None:
    run = run_of(tmp_path)
    with run.directory.locked(), pytest.raises(RunDirectoryError, match="another process is playing this run"):
        execute(run, shelf, workers=0)


class Counts(Policy):
    """Wants one client more in every round, so what it remembers matters."""

    def __init__(self, context: PolicyContext) -> None:
        super().__init__(context)
        self.seen = 0

    def act(self, observation: Observation) -> Offer:
        wanted = range(min(self.seen + 1, observation.clients))
        return fill_budget(wanted, observation.own_bids, observation.budget, available=observation.available)

    def learn(self, observation: Observation, offer: Offer, feedback: Feedback) -> None:
        self.seen += 1


class Remembers(Counts):
    def state(self) -> dict[str, npt.NDArray[np.int64]]:
        return {"seen": np.array([self.seen])}

    def restore(self, state: Mapping[str, npt.NDArray[np.int64]]) -> None:
        self.seen = int(state["seen"][0])


@pytest.mark.usefixtures("every_round")
@pytest.mark.parametrize(("name", "goes_on"), [("Remembers", True), ("Counts", False)])
def test_a_learner_goes_on_with_what_it_learned_or_starts_over(
    name: str, goes_on: bool, run_of: MakeRun, tmp_path: Path, shelf: Shelf
) -> None:
    policy("learner")(globals()[name])
    through, stopped = (run_of(tmp_path / part, policy="learner") for part in ("a", "b"))
    execute(through, shelf, workers=0)
    interrupt(stopped, shelf, 7)
    played: list[int] = []
    execute(stopped, shelf, AfterRound(lambda report: played.append(report.round)), workers=0)
    assert played[0] == (8 if goes_on else 1)
    assert results(stopped) == results(through)


@pytest.mark.usefixtures("every_round")
def test_a_full_disk_ends_a_run_with_a_clear_error_and_the_same_command_goes_on(
    whole: dict[str, bytes], run_of: MakeRun, tmp_path: Path, shelf: Shelf
) -> None:
    run = run_of(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    interrupt(run, shelf, 2)
    size = (run.directory.path / "events.csv").stat().st_size
    model = max(path.stat().st_size for path in (run.directory.path / "checkpoint").iterdir())
    for limit, culprit in ((size + 2_000, r"events\.csv"), (model // 2, r"safetensors")):
        if limit < size:
            continue
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        try:
            with pytest.raises(RunError, match=culprit + ".*cannot be written: File too large"):
                execute(run, shelf, workers=0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        # Incomplete where not even meta.json, which says why, has room.
        assert run.directory.state in (RunState.FAILED, RunState.INCOMPLETE)
    execute(run, shelf, workers=0)
    assert results(run) == whole
