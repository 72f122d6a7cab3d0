"""What `flmarket verify` finds of single changes to a run's tables, each with a meta.json that was made to fit.

    python benchmarks/verify_mutations.py [--each N] [--seed N]

Plays three runs: real training, deadlines and departures on the surrogate, and many services on few cores. Then
changes one cell at a time in each column (its last digit, another row's value, another word, empty for full and full
for empty, another spelling), or deletes, repeats or swaps rows; and prints what share of the changes is found.
"""

import argparse
import csv
import io
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache
from itertools import combinations
from pathlib import Path

from fl.errors import InputError
from scenarios.build import Shelf
from scenarios.judging.verify import verify
from scenarios.loader import load
from scenarios.logs.columns import AMOUNTS, TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.running.planning import plan
from scenarios.running.runner import execute

Rows = list[list[str]]

RUNS = (
    ("quickstart", "random", ("rounds=8",)),
    (
        "scarce", "random",
        ("rounds=6", "training.backend=surrogate", "timeline.deadline=8", "clients.departure_rate=0.2",
         "clients.speed=[0.5,1.0,2.0]"),
    ),
    ("paper", "lcfa", ("rounds=6", "training.backend=surrogate", "clients.cores=1")),
)  # fmt: skip
DELETED, REPEATED, NEIGHBOURS, SWAPPED = "deleted", "repeated", "swapped with the next one", "swapped with another one"
FREE = "of an outbid offer swapped with the next one of its service"
ROW_CHANGES = {"rounds": (DELETED, REPEATED, NEIGHBOURS, SWAPPED), "events": (DELETED, REPEATED, NEIGHBOURS, SWAPPED)}
ROW_CHANGES["offers"] = (DELETED, REPEATED, NEIGHBOURS, SWAPPED, FREE)


def reseal(path: Path) -> None:
    """Make meta.json record the files as they are now."""
    meta = json.loads((path / "meta.json").read_text())
    RunDirectory(path).finish({key: value for key, value in meta.items() if key not in ("files", "sha256")})


def is_found(path: Path) -> bool:
    """Whether verify names a problem, or refuses the run."""
    try:
        return bool(verify(RunDirectory(path)).problems)
    except InputError:
        return True


class Mutator:
    """Changes the tables of one run, one change at a time, and asks verify."""

    def __init__(self, run: Path, seed: int) -> None:
        self._run = run
        self._rng = random.Random(seed)  # noqa: S311 - reproducible, nothing secret
        self._rows = {
            name: list(csv.reader(io.StringIO(table.path(run).read_text()))) for name, table in TABLES.items()
        }

    def columns(self) -> Iterator[tuple[str, str, Sequence[int]]]:
        """Yield each column: its table, its name, and the rows in question. Amounts count by their event."""
        for name, table in TABLES.items():
            rows = range(1, len(self._rows[name]))
            for column in table.of(self._run).columns:
                if column.by is None:
                    yield name, column.name, rows
                    continue
                key = table.names.index(column.by[0])
                for kind in AMOUNTS:
                    yield name, f"{column.name} of {kind}", [n for n in rows if self._rows[name][n][key] == kind]

    def change_cells(self, table: str, label: str, places: Sequence[int], count: int) -> Iterator[tuple[str, bool]]:
        """Yield what was changed, and whether it was found, for ``count`` single cells of a column."""
        at = TABLES[table].names.index(label.partition(" ")[0])
        for _ in range(count if places else 0):
            rows = [list(row) for row in self._rows[table]]
            n = self._rng.choice(places)
            before, rows[n][at] = rows[n][at], self._other(table, at, rows[n][at], places)
            yield f"{table}.csv line {n + 1} {label}: {before!r} -> {rows[n][at]!r}", self._try(table, rows)

    def change_rows(self, table: str, how: str, count: int) -> Iterator[tuple[str, bool]]:
        """Yield what was changed, and whether it was found, for ``count`` changes of whole rows at most."""
        for _ in range(count):
            rows = [list(row) for row in self._rows[table]]
            if how in (DELETED, REPEATED):
                n = other = self._rng.randrange(1, len(rows))
                rows[n : n + 1] = [] if how == DELETED else [rows[n], rows[n]]
            elif pairs := self._pairs(table, how):
                n, other = self._rng.choice(pairs)
                rows[n], rows[other] = rows[other], rows[n]
            else:
                return
            before = self._rows[table]
            yield f"{table}.csv lines {n + 1}, {other + 1} {how}: {before[n]} {before[other]}", self._try(table, rows)

    @cache  # noqa: B019 - lives as long as the script
    def _pairs(self, table: str, how: str) -> list[tuple[int, int]]:
        """Return the different rows that a kind of swap is about, by their numbers."""
        rows = self._rows[table]
        numbers = range(1, len(rows))
        pairs = [(n, n + 1) for n in numbers[:-1]] if how != SWAPPED else list(combinations(numbers, 2))
        return [
            (one, other)
            for one, other in pairs
            if rows[one] != rows[other] and self._is_free(table, rows[one], rows[other]) == (how == FREE)
        ]

    @staticmethod
    def _is_free(table: str, one: Sequence[str], other: Sequence[str]) -> bool:
        """Whether only the policy knows which of two rows comes first."""
        return table == "offers" and one[:2] == other[:2] and "outbid" in (*one, *other)

    def _other(self, table: str, at: int, text: str, places: Sequence[int]) -> str:
        column = TABLES[table].columns[at]
        values = [self._rows[table][n][at] for n in places]
        choices = [value for value in {*values} if value not in {text, ""}]
        found = {self._rng.choice(sorted(choices))} if choices else set()
        if column.type.dtype == "string":
            words = column.type.name.replace("`", "").split(", ")
            found |= {*(words if len(words) > 1 else [f"{text}x"])}
        elif text:
            number = Decimal(text)
            step = Decimal(1).scaleb(min(0, int(number.as_tuple().exponent)))
            found |= {
                str(number + step),
                str(number - step),
                f"+{text}",
                f"0{text}",
                f"{text}e0",
                f"-{text}",
                f" {text}",
            }
        if column.empty:
            found.add("")
        return self._rng.choice(sorted(found - {text}))

    def _try(self, table: str, rows: Rows) -> bool:
        path = TABLES[table].path(self._run)
        before = path.read_bytes()
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        reseal(self._run)
        try:
            return is_found(self._run)
        finally:
            path.write_bytes(before)


def play(folder: Path) -> Iterator[Path]:
    """Play the runs; yield their directories."""
    for scenario, policy, overrides in RUNS:
        shelf = Shelf()
        [run] = plan([load(scenario, list(overrides))], [policy], [0], folder, shelf)
        execute(run, shelf)
        yield run.directory.path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=100, help="changes for each column and run")
    parser.add_argument("--seed", type=int, default=0, help="seed of the changes")
    parser.add_argument("--missed", action="store_true", help="print each change that is not found")
    arguments = parser.parse_args()
    tried: Counter[tuple[str, str]] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in play(Path(folder)):
            assert not is_found(path), "verify finds fault with a run as it was written"
            mutator = Mutator(path, arguments.seed)
            changes = [
                (t, f"`{c}`", mutator.change_cells(t, c, rows, arguments.each)) for t, c, rows in mutator.columns()
            ]
            changes += [
                (t, f"row {how}", mutator.change_rows(t, how, arguments.each)) for t in TABLES for how in ROW_CHANGES[t]
            ]
            for table, what, outcomes in changes:
                for description, seen in outcomes:
                    tried[table, what] += 1
                    found[table, what] += seen
                    if arguments.missed and not seen:
                        print(f"{path.parent.parent.name}: {description}", file=sys.stderr)
            shutil.rmtree(path)
    print("| table | changed | tried | found | share |\n| --- | --- | --- | --- | --- |")
    for (table, what), count in tried.items():
        share = found[table, what] / count
        print(f"| {table} | {what} | {count:,} | {found[table, what]:,} | {share:.1%} |")
    print(f"| all | | {tried.total():,} | {found.total():,} | {found.total() / tried.total():.1%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
