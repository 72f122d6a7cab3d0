"""The numbers that commands print, apart from the words around them, and verify's verdicts on damaged logs."""

import csv
import io
import json
import random
import re
from collections.abc import Callable, Container, Iterator
from pathlib import Path

Shell = Callable[..., str]
"""Runs ``flmarket ARGUMENTS`` in a folder and returns what it prints."""

SHORT = ("--set", "training.backend=surrogate", "--rounds", "8", "--quiet")
PLAYED = (
    ("run", "paper", *SHORT, "--policy", "random", "--policy", "hqfa", "--policy", "mahdrl", "--seeds", "4",
     "--out", "a"),
    ("run", "scarce", *SHORT, "--policy", "outbid", "--policy", "pacing", "--seeds", "3", "--out", "b"),
    ("run", "interests", "--rounds", "6", "--quiet", "--set", "sweep={}", "--set", "runs=[]",
     "--set", "clients.behaviour.kind=misreport", "--set", "clients.behaviour.options.size=0.5", "--out", "c"),
    ("run", "paper-budget", *SHORT, "--policy", "lcfa", "--policy", "hqfa", "--seeds", "3", "--out", "d"),
)  # fmt: skip
ASKED = {
    "report": ("report", "a", "--format", "csv"),
    "report of one baseline": ("report", "a", "--format", "csv", "--baseline", "random"),
    "report of a sweep": ("report", "d", "--format", "csv", "--baseline", "lcfa"),
    "report of misreports": ("report", "c", "--format", "csv"),
    "bounds": ("report", "b", "--format", "csv", "--bounds"),
    "explain a winner": ("explain", "{a}", "--round", "3", "--service", "mnist"),
    "explain a loser": ("explain", "{b}", "--round", "2", "--service", "emnist-poor"),
    "fork": ("fork", "{a}", "--round", "4", "--set", "services.mnist.budget=9", "--set", "clients.cores=1", "--quiet"),
    "verify": ("verify", "a", "b", "c"),
    "league": ("league", "scarce", "--policy", "hqfa", "--policy", "outbid", "--policy", "dearest", "--seeds", "2",
               "--rounds", "6", "--quiet", "--set", "training.backend=surrogate"),
    "suite": ("suite", "hqfa", "--markets", "starved,contested-outbid", "--seed", "7101", "--mode", "resident",
              "--quiet", "--out", "s"),
    "certificate": ("certify", "uniform-price", "--markets", "4", "--tries", "20", "--quiet"),
}  # fmt: skip
"""Commands by what they are about; ``{a}`` stands for the first run in that folder."""


SINCE = re.compile(r" of them \([\d, ]*\)|^\w.*flmarket replay .*$|^.*regret of truth.*$", re.MULTILINE)
"""What explain says since the numbers were recorded: which clients served, and the command that shows the round; and
certify: the regret of truth."""

DIGITS, NOTHING = 12, 1e-9
"""Significant digits of numbers, and what counts as 0: NumPy's sums differ in the last bits between kinds of CPU."""


def numbers(text: str) -> list[str]:
    """Return all numbers in a text, in order, to ``DIGITS``; of words and paths with digits in them, none."""
    found = re.findall(r"(?<![\w./-])[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?(?![\w/])", text)
    values = [float(number.replace(",", "")) for number in found]
    return [f"{value if abs(value) > NOTHING else 0.0:.{DIGITS}g}" for value in values]


def first_run(folder: Path) -> Path:
    """Return the first complete run below a folder, by its name."""
    return min(path.parent for path in folder.glob("*/*/seed-*/meta.json"))


def answers(shell: Shell, names: Container[str] = ASKED) -> Iterator[tuple[str, list[str]]]:
    """Play the runs, and yield the numbers of each command that is named."""
    for arguments in PLAYED:
        shell(*arguments)
    firsts = {name: str(first_run(Path(name))) for name in "abcd"}
    for name, arguments in ASKED.items():
        if name in names:
            yield name, numbers(SINCE.sub("", shell(*(argument.format(**firsts) for argument in arguments))))


def damaged(folder: Path, count: int, seed: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield single changes of a run's tables, and how each is undone; the run must be sealed again."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, nothing secret
    tables = sorted(folder.glob("*.csv"))
    for _ in range(count):
        path = rng.choice(tables)
        text = path.read_text(encoding="utf-8")
        header, *rows = csv.reader(io.StringIO(text))
        n, at = rng.randrange(len(rows)), rng.randrange(len(header))
        kind = rng.choice(["other", "digit", "drop", "twice"])
        before = rows[n][at]
        if kind == "other":
            others = sorted({row[at] for row in rows} - {before}) or ["7"]
            rows[n][at] = rng.choice(others)
        elif kind == "digit":
            rows[n][at] = before[:-1] + ("1" if before[-1:] != "1" else "2")
        elif kind == "drop":
            del rows[n]
        else:
            rows.insert(n, rows[n])
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([header, *rows])
        path.write_text(buffer.getvalue(), encoding="utf-8")
        told = f"{path.name} {n} {header[at]} {kind} {before!r}"
        yield told, lambda path=path, text=text: path.write_text(text, encoding="utf-8")


def seal(folder: Path) -> None:
    """Make meta.json record the files as they are now."""
    from scenarios.logs.directory import RunDirectory

    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    RunDirectory(folder).finish({key: value for key, value in meta.items() if key not in ("files", "sha256")})


def verdicts(folders: list[Path], count: int) -> Iterator[tuple[str, bool]]:
    """Yield what was changed in logs, and whether verify finds it."""
    from flmarket.analysis.verification.verify import verify
    from flmarket.core.errors import InputError
    from scenarios.logs.directory import RunDirectory

    for seed, folder in enumerate(folders):
        for told, undo in damaged(folder, count, seed):
            seal(folder)
            try:
                found = bool(verify(RunDirectory(folder)).problems)
            except InputError:
                found = True
            yield f"{folder.parts[-4]} {told}", found
            undo()
        seal(folder)
