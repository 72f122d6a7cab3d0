"""Single changes to a run's tables, with a meta.json that was made to fit: `flmarket verify` finds them.

`benchmarks/verify_mutations.py` makes more of them, of more runs, and prints the table of docs/reliability.md.
"""

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from flmarket.analysis.verification import verify
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.row_rules import totals
from flmarket.core.errors import InputError
from scenarios.loader import load
from scenarios.logs.columns import ROUNDS
from scenarios.logs.directory import RunDirectory
from support.runs import played
from support.tiers import slow

ROOT = Path(__file__).parents[4]


def import_script() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "benchmarks")
        return importlib.import_module("verify_mutations")


SCRIPT = import_script()
PLAYED = ("real training", "a changing world", "clients that learn", "proportional-share", SCRIPT.FORKED)


@pytest.fixture(scope="module")
def script() -> Any:
    return SCRIPT


@pytest.fixture(scope="module")
def mutator(script: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of a run with everything in it: offers that are outbid, missed deadlines, clients that leave, and secrets."""
    overrides = ["rounds=4", "training.backend=surrogate", "timeline.deadline=8", "clients.departure_rate=0.2"]
    secrets = ["clients.cost.noise=0.3", "market.bids=own", "market.dqi=rank", "market.dqi_noise=0.1"]
    run = played(load("scarce", [*overrides, *secrets]), tmp_path_factory.mktemp("runs"), "random")
    assert not script.is_found(run.path)
    return script.Mutator(run.path, 0)


@pytest.fixture(scope="module")
def others(script: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of runs with real training, a changing world, clients with interests, another mechanism; and of a fork."""
    runs = dict(script.play(tmp_path_factory.mktemp("others"), PLAYED))
    assert runs.keys() == {*PLAYED, "a fork"}
    assert not any(script.is_found(path) for path in runs.values())
    return {name: script.Mutator(path, 0) for name, path in runs.items()}


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, *slow(3)])
def test_every_change_of_a_cell_is_found(mutator: Any, number: int) -> None:
    columns = [*mutator.columns()]
    outcomes = [it for column in columns for it in mutator.change_cells(*column, number)]
    assert [change for change, found in outcomes if not found] == []
    assert len(outcomes) > 33 * number


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PLAYED, "a fork"])
def test_every_change_of_a_cell_of_other_runs_is_found(others: dict[str, Any], name: str) -> None:
    of = others[name]
    outcomes = [it for table, label, rows in of.columns() for it in of.change_cells(table, label, rows, 1)]
    # Nothing in a log follows from the accuracy on test images: another row's is found by --rerun alone (docs/logs.md).
    assert [change for change, found in outcomes if not found and " test_accuracy: " not in change] == []
    assert len(outcomes) > 40


@pytest.mark.slow
def test_sums_of_offers_are_derived_without_any_code_of_the_market(
    script: Any, mutator: Any, others: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So `tests/audit`, which shares no code with the packages, leaves them to verify."""
    entered: set[tuple[str, str]] = set()  # file and function of all that ran until a change was found

    def is_found(path: Path) -> bool:
        logs, calls = Logs.read_whole(RunDirectory(path)), set()

        def note(frame: FrameType, _event: str, _given: object) -> None:
            calls.add((frame.f_code.co_filename, frame.f_code.co_qualname))

        sys.setprofile(note)
        try:
            found = next(totals(logs), None) is not None
        finally:
            sys.setprofile(None)
        if found:
            entered.update(calls)
        return found

    monkeypatch.setattr(script, "is_found", is_found)
    sums = [column.name for column in ROUNDS.columns if column.rule == "totals"]
    for of in (mutator, *others.values()):
        columns = [(table, label, rows) for table, label, rows in of.columns() if table == "rounds" and label in sums]
        outcomes = [it for column in columns for it in of.change_cells(*column, 1)]
        missed = [re.findall("'(.*?)'", change) for change, found in outcomes if not found]
        assert [pair for pair in missed if len({float(text or "nan") for text in pair}) > 1] == []  # not spelling alone
        assert len(outcomes) >= len(sums) == 11
    assert (str(ROOT / "flmarket/analysis/verification/row_rules.py"), "totals") in entered
    of_the_market = {(Path(file).name, name) for file, name in entered if Path(file).is_relative_to(ROOT / "des")}
    # Contracts are followed for the budgets of rounds; the amounts of the finding are written, once there is one.
    sums = {(file, name) for file, name in of_the_market if file != "contracts.py"}
    assert sums <= {("money.py", "text"), ("money.py", "to_micro")}


@pytest.fixture
def judged_twice(script: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], bool]:
    """Every run that is judged whole is judged in blocks of a round or two as well, with the same findings."""

    def findings(path: Path, lines: int) -> object:
        monkeypatch.setattr(verify, "BLOCK", lines)
        try:
            verdict = verify.verify(RunDirectory(path))
        except InputError as error:
            return str(error)
        return sorted(map(told, verdict.problems)), verdict.unchecked, verdict.offers, verdict.paid

    def told(problem: str) -> str:
        """At the edge of a block there is no next event to name: the line alone is the same."""
        return problem.partition(": is ")[0] if re.match(r"events\.csv.*, but should be ", problem) else problem

    def is_found(path: Path) -> bool:
        whole = findings(path, 50_000)
        assert findings(path, 60) == whole
        return not isinstance(whole, tuple) or whole[0] != []

    monkeypatch.setattr(script, "is_found", is_found)
    return is_found


@pytest.mark.slow
def test_runs_are_as_good_in_blocks_as_whole(mutator: Any, others: dict[str, Any], judged_twice: Any) -> None:
    """What clients have learned, a price that was posted, curves and money go from one block to the next."""
    for of in (mutator, *others.values()):
        assert len([*Logs.blocks(RunDirectory(of.run), 60)]) > 3
        assert not judged_twice(of.run)


@pytest.mark.usefixtures("judged_twice")
@pytest.mark.slow
def test_changes_of_rows_and_of_columns_are_found_in_blocks_as_whole(script: Any, mutator: Any) -> None:
    outcomes = [
        it for table in mutator.tables for how in script.ROW_CHANGES[table] for it in mutator.change_rows(table, how, 1)
    ]
    assert len(outcomes) > 10
    assert all(mutator.lie(lie) for lie in script.LIES)


@pytest.mark.slow
@pytest.mark.usefixtures("judged_twice")
@pytest.mark.parametrize("name", ["everything", *PLAYED, "a fork"])
def test_every_change_is_found_in_blocks_as_whole(script: Any, mutator: Any, others: dict[str, Any], name: str) -> None:
    of = {"everything": mutator, **others}[name]
    outcomes = [it for table, label, rows in of.columns() for it in of.change_cells(table, label, rows, 2)]
    for table in of.tables:
        outcomes += of.respell(table, 3)
        outcomes += [it for how in script.ROW_CHANGES[table] for it in of.change_rows(table, how, 3)]
    assert len(outcomes) > 100
    assert all(of.lie(lie) for lie in script.LIES)


@pytest.mark.slow
@pytest.mark.parametrize("lie", SCRIPT.LIES)
def test_a_whole_column_rewritten_is_found(others: dict[str, Any], lie: str) -> None:
    assert [name for name, of in others.items() if not of.lie(lie)] == []


def test_a_lie_is_one(mutator: Any) -> None:
    """What is rewritten differs from what was there, in the column that the lie is about alone."""
    change: Callable[[dict[str, str]], dict[str, str]]
    for table, change in SCRIPT.LIES.values():
        names, *rows = mutator.table(table)
        lines = [dict(zip(names, row, strict=True)) for row in rows]
        assert any({**line, **change(line)} != line for line in lines)
        assert len({key for line in lines for key in change(line)}) == 1


def test_another_spelling_of_a_number_is_found(mutator: Any) -> None:
    outcomes = [it for table in mutator.tables for it in mutator.respell(table, 5)]
    assert [change for change, found in outcomes if not found] == []


@pytest.mark.slow
def test_every_change_of_rows_is_found_but_one_that_only_the_policy_knows(script: Any, mutator: Any) -> None:
    for table in mutator.tables:
        for how in script.ROW_CHANGES[table]:
            outcomes = list(mutator.change_rows(table, how, 3))
            wanted = how != script.FREE
            assert [change for change, found in outcomes if found != wanted] == []
            assert outcomes
