"""Makes figures of the pages again, and says whether the difference matters.

python benchmarks/claims.py            # what can be made again
python benchmarks/claims.py bounds     # exit status 1 says that a difference matters
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import NamedTuple

from flmarket.core.installation import command

ROOT = Path(__file__).parents[1]
CLAIMS = Path(__file__).with_name("claims.toml")
BRACES = re.compile(r"\{([^}]*)\}")
NUMBER = r"(\d[\d,]*(?:\.\d+)?|\.\d+)"


class Claim(NamedTuple):
    """Figures that a page states, and the commands that make them; ``claims.toml`` says more."""

    page: str
    commands: Sequence[str]
    words: Sequence[str]
    prints: Sequence[str]
    within: float = 0.0  # the relative difference up to which a figure is the same; 0: to its last digit


class Figure(NamedTuple):
    """A figure as a page says it, and as it came out."""

    words: str
    said: list[str]
    here: list[str]  # empty where the commands did not print it
    matters: bool


def claims() -> dict[str, Claim]:
    tables = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))
    return {name: Claim(**{"prints": table["words"]} | table) for name, table in tables.items()}


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


def output(claim: Claim) -> str:
    """Run the commands, in a folder of their own; return what they print and how long they take."""
    begun, before, text = time.perf_counter(), getrusage(RUSAGE_CHILDREN), ""
    with TemporaryDirectory() as folder:
        for name in ("benchmarks", "examples", "research"):
            Path(folder, name).symlink_to(ROOT / name)
        for line in claim.commands:
            print(f"$ {line}", file=sys.stderr)
            program, first, *words = shlex.split(line)
            own = program == "flmarket"
            done = subprocess.run(
                command("flmarket.cli.main", first, *words) if own else [sys.executable, str(ROOT / first), *words],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            text += done.stdout
            if done.returncode:
                sys.exit(f"'{line}' failed with exit status {done.returncode}")
    after = getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{text}\ntook {time.perf_counter() - begun:.1f} s, {cpu:.1f} s of CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = claims()
    parser.add_argument("name", nargs="?", choices=known, metavar="NAME", help="all are listed without one")
    name = parser.parse_args().name
    if name is None:
        for key, claim in known.items():
            print("\n    $ ".join([f"{key}: {claim.page}", *claim.commands]))
        return
    claim = known[name]
    figures = list(compare(claim, output(claim)))
    for figure in figures:
        same = figure.here and not any(map(_differ, figure.said, figure.here))
        verdict = "the same" if same else "matters" if figure.matters else "differs, which does not matter"
        print(f"\n{claim.page}: {' '.join(figure.words.split())}")
        print(f"  page: {', '.join(figure.said)}\n  here: {', '.join(figure.here) or 'was not printed'}\n  {verdict}")
    sys.exit(any(figure.matters for figure in figures))


if __name__ == "__main__":
    main()
