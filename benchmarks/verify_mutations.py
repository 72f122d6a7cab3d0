"""The single changes to a run's tables that `flmarket verify` finds, each with a meta.json that was made to fit.

    python benchmarks/verify_mutations.py [--each N] [--seed N] [--only RUN]

Prints what share of the changes to each column of thirteen runs (``RUNS``) is found.
"""

import argparse
import csv
import io
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import combinations
from pathlib import Path

import flmarket
from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.logs.columns import ALL_TABLES, AMOUNTS, tables_in
from scenarios.logs.directory import RunDirectory
from scenarios.running.planning import plan
from scenarios.running.runner import execute

Rows = list[list[str]]

SHORT = ("rounds=6", "training.backend=surrogate")
ALONE = ("sweep={}", "runs=[]")
RUNS = {
    "real training": ("quickstart", "random", ("rounds=8",)),
    "deadlines and departures": (
        "scarce", "random",
        (*SHORT, "timeline.deadline=8", "clients.departure_rate=0.2", "clients.speed=[0.5,1.0,2.0]"),
    ),
    "one core": ("paper", "lcfa", (*SHORT, "clients.cores=1")),
    "a changing world": (
        "changing", "pacing", ("rounds=9", "services.fashion-late.arrival=4", "services.mnist-one.total_budget=70")
    ),
    "clients that learn": ("interests", None, (*ALONE, "rounds=8", "clients.behaviour.kind=adaptive")),
    "clients that misreport": (
        "interests", None,
        (*ALONE, "rounds=6", "clients.behaviour.kind=misreport", "clients.behaviour.options.size=0.5",
         "clients.behaviour.options.share=0.5"),
    ),
    **{
        rule: ("mechanisms", None, (*ALONE, "rounds=6", f"market.mechanism={rule}"))
        for rule in ("uniform-price", "proportional-share", "iterated")
    },
    "vcg": ("mechanisms", None, (*ALONE, "rounds=2", "clients.count=6", "market.mechanism=vcg")),
    "a surrogate of the paper": ("paper-fitted", "hqfa", SHORT),
    "targets that are met": (
        "paper-fitted", "lcfa",
        (*SHORT, *(f"services.{name}.target_accuracy=0.13" for name in ("mnist", "fashion-mnist", "emnist"))),
    ),
}  # fmt: skip
"""By what there is in them: scenario, policy of all services, and changes."""
FORKED = "a surrogate of the paper"
FORK = {"clients.cores": 1, "services.mnist.budget": 12, "services.emnist.policy": "lcfa"}
"""The changes in the fourth round of that run, for a fork."""
DELETED, REPEATED, NEIGHBOURS, SWAPPED = "deleted", "repeated", "swapped with the next one", "swapped with another one"
FREE = "of an outbid offer swapped with the next one of its service"
ROW_CHANGES = dict.fromkeys(ALL_TABLES, (DELETED, REPEATED, NEIGHBOURS, SWAPPED))
ROW_CHANGES["offers"] += (FREE,)
SPELLING = "another spelling of a number"
Change = Callable[[dict[str, str]], Mapping[str, str]]
LIES: dict[str, tuple[str, Change]] = {
    "every DQI .1 higher": ("offers", lambda row: {"dqi": repr(float(row["dqi"]) + 0.1)}),
    "every job ends when it starts": ("offers", lambda row: {"end": row["start"]}),
    "every makespan is 123": ("rounds", lambda row: {"makespan": row["makespan"] and "123.0"}),
    "every evaluate event is .999": (
        "events", lambda row: {"amount": "0.999000"} if row["event"] == "evaluate" else {}
    ),
    "every bid event is a millionth": (
        "events", lambda row: {"amount": "0.000001"} if row["event"] == "bid" else {}
    ),
}  # fmt: skip
"""Whole columns rewritten: the table, and what becomes of each row."""


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


# Changes: a cell to another value that could stand there (another last digit, a little more, another row's value,
# another word, empty for full and full for empty), another spelling of a number, rows deleted, repeated or swapped, and
# whole columns rewritten (``LIES``).
class Mutator:
    """Changes the tables of one run, one change at a time, and asks verify."""

    def __init__(self, run: Path, seed: int) -> None:
        self.run = run
        self._rng = random.Random(seed)  # noqa: S311 - reproducible, nothing secret
        self.tables = tables_in(run)
        self._rows = {
            name: list(csv.reader(io.StringIO(table.path(run).read_text()))) for name, table in self.tables.items()
        }

    def table(self, name: str) -> Rows:
        """Return a table as it was played, its header first."""
        return self._rows[name]

    def columns(self) -> Iterator[tuple[str, str, Sequence[int]]]:
        """Yield each column: its table, its name, and the rows in question. Amounts count by their event."""
        for name, table in self.tables.items():
            rows = range(1, len(self._rows[name]))
            for column in table.columns:
                if column.by is None:
                    yield name, column.name, rows
                    continue
                key = table.names.index(column.by[0])
                for kind in AMOUNTS:
                    yield name, f"{column.name} of {kind}", [n for n in rows if self._rows[name][n][key] == kind]

    def change_cells(self, table: str, label: str, places: Sequence[int], count: int) -> Iterator[tuple[str, bool]]:
        """Yield what was changed, and whether it was found, for ``count`` single cells of a column."""
        at = self.tables[table].names.index(label.partition(" ")[0])
        for _ in range(count if places else 0):
            rows = [list(row) for row in self._rows[table]]
            n = self._rng.choice(places)
            if (value := self._other(table, at, rows[n][at], places)) is None:
                continue
            before, rows[n][at] = rows[n][at], value
            yield f"{table}.csv line {n + 1} {label}: {before!r} -> {rows[n][at]!r}", self._try(table, rows)

    def respell(self, table: str, count: int) -> Iterator[tuple[str, bool]]:
        """Yield the same for numbers that are written in another way."""
        own = self.tables[table]
        names = own.names
        numbers = [at for at, column in enumerate(own.columns) if column.type.dtype != "string"]
        for _ in range(count):
            rows = [list(row) for row in self._rows[table]]
            n, at = self._rng.randrange(1, len(rows)), self._rng.choice(numbers)
            if before := rows[n][at]:
                rows[n][at] = self._rng.choice([f"+{before}", f"0{before}", f"{before}e0", f" {before}"])
                yield f"{table}.csv line {n + 1} {names[at]}: {before!r} -> {rows[n][at]!r}", self._try(table, rows)

    def lie(self, name: str) -> bool:
        """Return whether a whole column rewritten is found."""
        table, change = LIES[name]
        names, *rows = self._rows[table]
        lines = [{**row, **change(row)} for row in (dict(zip(names, row, strict=True)) for row in rows)]
        return self._try(table, [names, *([line[name] for name in names] for line in lines)])

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

    def _other(self, table: str, at: int, text: str, places: Sequence[int]) -> str | None:
        """Return another value that could stand there; None if there is none."""
        column = self.tables[table].columns[at]
        values = [self._rows[table][n][at] for n in places]
        found = {value for value in {*values} if value not in {text, ""}}
        found = {self._rng.choice(sorted(found))} if found else set()
        if column.type.dtype == "string":
            words = column.type.name.replace("`", "").split(", ")
            found |= {*(words if len(words) > 1 else [f"{text}x"])}
        elif text:
            number = Decimal(text)
            step = Decimal(1).scaleb(min(0, int(number.as_tuple().exponent)))
            # The sign of the step matters where a value has a limit; a hundredth more is still a likely value.
            others = (number + step, number - step, (number * Decimal("1.01")).quantize(step))
            found |= {str(other) for other in others if other >= 0}
        if column.empty:
            found.add("")
        found.discard(text)
        return self._rng.choice(sorted(found)) if found else None

    def _try(self, table: str, rows: Rows) -> bool:
        path = self.tables[table].path(self.run)
        before = path.read_bytes()
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        reseal(self.run)
        try:
            return is_found(self.run)
        finally:
            path.write_bytes(before)
            reseal(self.run)


def play(folder: Path, names: Sequence[str] = (*RUNS,)) -> Iterator[tuple[str, Path]]:
    """Play the runs, and the fork; yield what there is in them, and their directories."""
    for name in names:
        (scenario, policy, overrides), shelf = RUNS[name], Shelf()
        [run] = plan([load(scenario, list(overrides))], [policy] if policy else [], [0], folder, shelf)
        execute(run, shelf)
        if name == FORKED:  # before anybody changes what it is made of
            [forked] = flmarket.fork(run.directory.path, 4, FORK, workers=0, progress=False)
            yield "a fork", forked.run.directory.path
        yield name, run.directory.path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=100, help="changes for each column and run")
    parser.add_argument("--seed", type=int, default=0, help="seed of the changes")
    parser.add_argument("--only", choices=RUNS, help="one of the runs, by what there is in it; all if not given")
    parser.add_argument("--missed", action="store_true", help="print each change that is not found")
    arguments = parser.parse_args()
    tried: Counter[tuple[str, str]] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, path in play(Path(folder), [arguments.only] if arguments.only else [*RUNS]):
            assert not is_found(path), f"verify finds fault with a run as it was written: {name}"
            mutator = Mutator(path, arguments.seed)
            changes = [
                (t, f"`{c}`", mutator.change_cells(t, c, rows, arguments.each)) for t, c, rows in mutator.columns()
            ]
            for t in mutator.tables:
                changes.append((t, SPELLING, mutator.respell(t, arguments.each)))
                changes += [(t, f"row {how}", mutator.change_rows(t, how, arguments.each)) for how in ROW_CHANGES[t]]
            changes += [(table, lie, iter([(lie, mutator.lie(lie))])) for lie, (table, _) in LIES.items()]
            for table, what, outcomes in changes:
                for description, seen in outcomes:
                    tried[table, what] += 1
                    found[table, what] += seen
                    if arguments.missed and not seen:
                        print(f"{name}: {description}", file=sys.stderr)
    print("| table | changed | tried | found | share |\n| --- | --- | --- | --- | --- |")
    for (table, what), count in sorted(tried.items(), key=lambda item: [*ALL_TABLES].index(item[0][0])):
        share = found[table, what] / count
        print(f"| {table} | {what} | {count:,} | {found[table, what]:,} | {share:.1%} |")
    print(f"| all | | {tried.total():,} | {found.total():,} | {found.total() / tried.total():.1%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
