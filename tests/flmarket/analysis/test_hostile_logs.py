"""Whatever is in a run's tables or its scenario: no traceback, but a message that names the file."""

import random
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from flmarket.analysis.log_frames import TableName
from flmarket.analysis.results.export import export, export_parquet
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.report_formats import markdown
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.loader import load
from scenarios.logs.columns import TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LogError
from scenarios.logs.run_state import RunState
from support.runs import played, reseal
from support.tiers import slow
from tui.state.bid_verdicts import RoundBook
from tui.state.feeds import DirectoryFeed
from tui.state.watched_run import Session

CELLS = [
    b"9" * 5000, b"x" * 140_000, b"5" * 25 + b".000000", b"9223372036854775808", b"1e308", b"1e999", b"nan", b"inf",
    b"-1", b"-0.0", b"", b"0", b"outbid", b"served", b"left", "\u0663".encode(), b"1_0",
]  # fmt: skip
BYTES = [b"\0", b"\xff", b'"', b"\n", b"\r", b",", b"\x1b[31m", b"\xef\xbb\xbf", b"-", b"e"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    overrides = ["rounds=3", "training.backend=surrogate", "timeline.deadline=8"]
    return played(load("scarce", overrides), tmp_path_factory.mktemp("good"), "random").path


@pytest.fixture
def run(good: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(good, tmp_path / good.parents[1].name / "random" / "seed-0000"))


def report(path: Path) -> None:
    markdown(make_report(read([path])))


def csv(path: Path) -> None:
    for table in TABLES:
        export([path], path.parent / f"{table}.csv", table)


def parquet(path: Path) -> None:
    pytest.importorskip("pyarrow")
    tables: list[TableName] = ["rounds", "offers", "events"]
    for table in tables:
        export_parquet([path], path.parent / "all.parquet", table)


def replay(path: Path) -> None:
    """Read the run as the screens do, and look at every order book."""
    session = Session("run")
    DirectoryFeed(session, path).read()
    assert session.state in {RunState.COMPLETE, RunState.UNREADABLE}
    if session.state is RunState.UNREADABLE:
        raise InputError(session.error)
    assert session.world is not None
    for number in range(1, len(session.history) + 1):
        try:
            logged = session.history[number]
            book = RoundBook(logged, session.world)
            assert all(book.line(m, client) for m in range(len(logged.services)) for client in book.clients_of(m))
            assert all(book.line(m, client) for client in range(book.clients) for m in book.services_of(client))
        except LogError as error:
            session.spoil(error)
            raise InputError(session.error) from error


ACTIONS: Mapping[str, Callable[[Path], object]] = {
    "verify": lambda path: verify(RunDirectory(path)),
    "report": report,
    "export": csv,
    "parquet": parquet,
    "replay": replay,
}


def damaged(rng: random.Random, content: bytes) -> bytes:
    """Return the bytes of a file after one change."""
    at = rng.randrange(len(content))
    end = min(len(content), at + rng.choice([1, 2, 8, 200]))
    lines = content.split(b"\n")
    row = rng.randrange(1, len(lines) - 1)
    match rng.randrange(8):
        case 0:
            return content[:at] + rng.randbytes(1) + content[at + 1 :]
        case 1:
            return content[:at] + content[end:]
        case 2:
            return content[:at] + rng.choice(BYTES) + content[at:]
        case 3:
            return content[:at] + content[at:end] * 2 + content[end:]
        case 4:
            return rng.choice([b"", lines[0], lines[0] + b"\n", content[:at], content.decode().encode("utf-16")])
        case 5:
            return b"\n".join([*lines[:row], *rng.choice([[], [lines[row]] * 2]), *lines[row + 1 :]])
        case _:
            cells = lines[row].split(b",")
            cells[rng.randrange(len(cells))] = rng.choice(CELLS)
            return b"\n".join([*lines[:row], b",".join(cells), *lines[row + 1 :]])


def refusal(action: str, run: Path) -> str:
    """Return why a run is refused; nothing if it is not. Any other exception is a failure of the test."""
    try:
        ACTIONS[action](run)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("changes", [10, *slow(40)])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("file", [*(f"{table}.csv" for table in TABLES), "scenario.toml"])
def test_damaged_files_are_named(file: str, action: str, changes: int, run: Path) -> None:
    rng = random.Random(f"{file} {action}")  # noqa: S311 - reproducible, nothing secret
    content = (run / file).read_bytes()
    refusals = []
    for _ in range(changes):
        (run / file).write_bytes(damaged(rng, content))
        if action != "replay":  # the screens believe files whose digests match
            reseal(run)
        refusals.append(refusal(action, run))
    assert [text for text in refusals if text and str(run) not in text] == []
    assert max(len(line) for text in refusals for line in text.split("\n")) < 1_000


@pytest.mark.parametrize(
    ("fits", "problem"),
    [
        (None, "is damaged: fits is not a table"),
        ({}, "fits: dqi/emnist-digits is not that of the run's hash"),
        ({"dqi/mnist": 3}, "is damaged: dqi/mnist is not a table"),
        ({"dqi/mnist": {"zeta": "x"}}, "is damaged: zeta is not of type float"),
        ({"dqi/mnist": {"a": 10**400}}, "fits: dqi/emnist-digits is not that of the run's hash"),
    ],
)
def test_fits_that_are_none_are_named(fits: object, problem: str, tmp_path: Path) -> None:
    overrides = ["rounds=1", "training.backend=surrogate", "dqi=fitted"]
    run = played(load("paper", overrides), tmp_path, "random")
    meta = run.meta()
    del meta["files"]
    run.finish({**meta, "fits": fits})
    try:
        found = verify(run).problems[0]
    except InputError as error:
        found = str(error)
    assert re.search(rf"meta\.json: {problem}", found)


@pytest.mark.parametrize("action", [name for name in ACTIONS if name != "replay"])
def test_control_characters_are_refused(action: str, run: Path) -> None:
    rounds = run / "rounds.csv"
    rounds.write_text(rounds.read_text().replace("emnist-poor", "a\x1b[31m"))
    reseal(run)
    if action == "verify":
        assert "control characters" in verify(RunDirectory(run)).problems[0]
    else:
        assert "control characters" in refusal(action, run)
