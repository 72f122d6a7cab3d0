"""``flmarket bench``: makes figures of the pages again, and says whether the difference matters."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from flmarket.cli.console import note, result
from flmarket.core.errors import InputError, RunError
from flmarket.core.installation import ROOT, command
from flmarket.core.names import unknown

CLAIMS = Path(__file__).parents[1] / "claims.toml"
BRACES = re.compile(r"\{([^}]*)\}")
CHECKOUT = ("benchmarks", "examples", "research")
NUMBER = r"(\d[\d,]*(?:\.\d+)?|\.\d+)"


class Claim(NamedTuple):
    """Figures that a page states, and the commands that make them; ``claims.toml`` says more."""

    page: str
    commands: Sequence[str]
    words: Sequence[str]
    prints: Sequence[str]
    within: float = 0.0  # the relative difference up to which a figure is the same; 0: to its last digit

    @property
    def portable(self) -> bool:
        """Whether the commands need nothing but an installed flmarket."""
        return not any(f"{folder}/" in it for it in self.commands for folder in CHECKOUT)


class Figure(NamedTuple):
    """A figure as a page says it, and as it came out."""

    words: str
    said: list[str]
    here: list[str]  # empty where the commands did not print it
    matters: bool


def claims() -> dict[str, Claim]:
    import tomllib

    found = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))
    return {name: Claim(**{"prints": it["words"]} | it) for name, it in found.items()}


def compare(claim: Claim, output: str) -> Iterator[Figure]:
    """Look for each of a claim's figures in what its commands printed."""
    text = " ".join(output.split())
    for words, prints in zip(claim.words, claim.prints, strict=True):
        said = BRACES.findall(words)
        parts = BRACES.split(" ".join(prints.split()))[::2]
        found = re.search(NUMBER.join(re.escape(it).replace(r"\.\.\.", "[^|]*?") for it in parts), text)
        # Braces in `prints` may say which figure of `words` stands there, where the order is another.
        places = [int(it or i) for i, it in enumerate(BRACES.findall(prints))] if prints != words else range(len(said))
        here = [one for _, one in sorted(zip(places, found.groups(), strict=True))] if found else []
        matters = not here or any(_differ(*pair, claim.within) for pair in zip(said, here, strict=True))
        yield Figure(BRACES.sub(r"\1", words), said, here, matters)


def _differ(said: str, here: str, within: float = 0.0) -> bool:
    one, other = (Decimal(it.replace(",", "")) for it in (said, here))
    return abs(other - one) > Decimal(within) * abs(one) if within else other.quantize(one) != one


def bench(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="What to make again; all are listed without.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List what can be made again.")] = False,
) -> None:
    """Make figures of the pages again: what they say, what comes out here, and whether the difference matters.

    Exit status 1 says that it does. What needs a checkout of the repository is marked in the list.
    """
    known = claims()
    if listed or name is None:
        for key, claim in known.items():
            place = "" if claim.portable else ", in a checkout"
            result("\n    $ ".join([f"{key}: {claim.page}{place}", *claim.commands]))
        return
    if name not in known:
        raise InputError(unknown("figure", name, known))
    claim = known[name]
    if not claim.portable and not (ROOT / "benchmarks").is_dir():
        raise InputError(f"{name}: is made in a checkout of the repository; this flmarket is in {ROOT}")
    figures = list(compare(claim, _output(claim)))
    for figure in figures:
        same = figure.here and not any(map(_differ, figure.said, figure.here))
        verdict = "the same" if same else "matters" if figure.matters else "differs, which does not matter"
        result(f"\n{claim.page}: {' '.join(figure.words.split())}")
        result(f"  page: {', '.join(figure.said)}\n  here: {', '.join(figure.here) or 'was not printed'}\n  {verdict}")
    if any(figure.matters for figure in figures):
        raise typer.Exit(1)


def _output(claim: Claim) -> str:
    """Run the commands, in a folder of their own; return what they print and how long they take."""
    from resource import RUSAGE_CHILDREN, getrusage
    from tempfile import TemporaryDirectory

    begun, before, output = time.perf_counter(), getrusage(RUSAGE_CHILDREN), ""
    with TemporaryDirectory() as folder:
        for name in () if claim.portable else CHECKOUT:
            Path(folder, name).symlink_to(ROOT / name)
        for line in claim.commands:
            note(f"$ {line}")
            program, first, *words = shlex.split(line)
            own = program == "flmarket"
            done = subprocess.run(  # noqa: S603 - our own commands
                command("flmarket.cli.main", first, *words) if own else [sys.executable, str(ROOT / first), *words],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            output += done.stdout
            if done.returncode:
                raise RunError(f"'{line}' failed with exit status {done.returncode}")
    after = getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{output}\ntook {time.perf_counter() - begun:.1f} s, {cpu:.1f} s of CPU"
