"""Damaged logs: whoever reads them names the damage or shows what is there, and nothing damaged counts as whole."""

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from attack.campaign import Campaign
from flmarket.analysis.results.export import export
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from scenarios.logs.reading import LogError
from scenarios.logs.run_state import RunState
from scenarios.running.batch_run import Run
from scenarios.running.planning import plan, split_by_completion
from scenarios.running.runner import execute
from support.runs import reseal
from tui.state.feeds import DirectoryFeed
from tui.state.watched_run import Session

BATCH = 50
"""Damages of one attempt."""
CELLS = (b"nan", b"inf", b"", b"-1", b"\x1b[2J", b"=1+1", b"1e999")
FILES = ("scenario.toml", "rounds.csv", "offers.csv", "events.csv", "run.log", "meta.json")


@cache
def played() -> Run:
    """Return a complete run."""
    scenario = load("scarce", ["rounds=4", "training.backend=surrogate"])
    [run] = plan([scenario], ["hqfa"], [0], Path(mkdtemp(prefix="attack-run-")), Shelf())
    execute(run, Shelf())
    return run


def damaged(content: bytes, random: Random) -> bytes:
    """Return a file's content with something wrong in it."""
    place = random.randrange(max(1, len(content)))
    match random.randrange(9):
        case 0:
            return b""
        case 1:
            return content[:place]
        case 2:
            return content[:place] + bytes([content[place] ^ (1 << random.randrange(8))]) + content[place + 1 :]
        case 3:
            return content[:place] + random.randbytes(random.randint(1, 64)) + content[place:]
        case 4:
            return content[:place] + b"\x00" * 4096 + content[place + 4096 :]  # a block that a disk lost
        case 5:
            return content[:place] + b"9" * 6_000 + content[place:]
        case 6:
            return content[:place] + b'"' + content[place:] + b"x" * 200_000  # beyond what csv reads in one value
        case 7:
            lines = content.splitlines(keepends=True)
            one, other = random.randrange(len(lines)), random.randrange(len(lines))
            lines[one], lines[other] = lines[other], lines[one]
            return b"".join(lines)
        case _:
            cells = content.split(b",")
            cells[random.randrange(len(cells))] = random.choice(CELLS)
            return b",".join(cells)


def readers(run: Run, folder: Path) -> dict[str, Callable[[], object]]:
    """Return everything that reads a run."""
    path = run.directory.path

    def replay() -> None:
        session = Session("replay")
        DirectoryFeed(session, path).read()
        if session.state is not RunState.UNREADABLE:
            for logged in session.history:
                _ = logged.offers, logged.events

    return {
        "report": lambda: make_report(read([path])),
        "income": lambda: [result.income for result in read([path])],
        "export": lambda: export([path], folder / "all.csv", "offers"),
        "replay": replay,
    }


def attempt(random: Random, folder: Path) -> Iterator[str]:
    """Damage one file of a run, often enough; every second time as somebody who recomputes the digests."""
    whole = played().directory.path
    path = folder / "runs" / whole.parent.parent.name / whole.parent.name / whole.name
    run = Run(played().scenario, played().policy, played().seed, RunDirectory(path), played().digest, played().sweep)
    for number in range(BATCH):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        name = random.choice(FILES)
        before = (path / name).read_bytes()
        content = damaged(before, random)
        (path / name).write_bytes(content)
        if content == before or (name == "run.log" and content.startswith(before)):
            continue
        sealed = number % 2 == 1 and name != "meta.json"
        if sealed:
            reseal(path)
        what = f"{name} {'resealed ' if sealed else ''}({content[:80]!r}..., {len(content)} bytes)"
        try:
            if not sealed and split_by_completion([run])[1]:
                yield f"run would skip it as complete: {what}"
        except InputError as error:
            if str(path) not in str(error) or not str(error).isprintable():
                yield f"run: does not name the run, or is not printable: {error!r}: {what}"
        try:
            if not sealed and not verify(run.directory).problems:
                yield f"verify calls it valid: {what}"
            if sealed:
                verify(run.directory)
        except InputError as error:
            if str(path) not in str(error):
                yield f"verify: does not name the run: {error}: {what}"
        for reader, look in readers(run, folder).items():
            try:
                look()
            except (InputError, LogError):
                pass
            except Exception as error:
                yield f"{reader}: {error!r}: {what}"


CAMPAIGNS = (
    Campaign(
        "damaged-logs",
        f"{BATCH} times a file of a complete run is damaged, half of the time with new digests: without them it is "
        "never skipped or called valid; report, export, verify and replay answer without a traceback",
        100,
        attempt,
    ),
)
