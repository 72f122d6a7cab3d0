"""Golden digests: the SHA-256 of the tables that built-in scenarios write, which must be the same on every machine.

``digests.json`` holds one for each scenario and policy. ``make golden`` computes them anew and writes the file. There
are two reasons to do so: a change that is meant to change logs (then the changelog says that it does), and a new
scenario or policy. A digest that changes on another machine alone, or with another version of NumPy or torch, is a
defect, not a reason.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from learning.policy import POLICIES
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.logs.columns import TABLES
from scenarios.running.planning import plan
from scenarios.running.runner import execute

FILE = Path(__file__).with_name("digests.json")

SEED = 0

SETTINGS = {
    "paper": ["training.backend=surrogate"],
    "scarce": ["training.backend=surrogate"],
    "private": [],  # on the surrogate; draws what the others do not
    "quickstart": ["rounds=20"],  # real training, on images that come with flmarket
}
"""The scenarios, and what is set in them."""

ONLY_IN_PAPER = "mahdrl-paper"
"""Its agents play the services that they were trained for."""


class Case(NamedTuple):
    """One run."""

    scenario: str
    policy: str


def cases() -> Iterator[Case]:
    """Yield every scenario with every policy that comes with flmarket and can play it."""
    for scenario in SETTINGS:
        for policy in POLICIES.names():
            if policy != ONLY_IN_PAPER or scenario == "paper":
                yield Case(scenario, policy)


def digest(case: Case) -> str:
    """Play a run and return the SHA-256 of its tables, one after the other in the order of ``TABLES``."""
    shelf = Shelf()
    with tempfile.TemporaryDirectory(prefix="flmarket-golden-") as folder, _without_own_fits(Path(folder) / "fits"):
        [run] = plan([load(case.scenario, SETTINGS[case.scenario])], [case.policy], [SEED], Path(folder), shelf)
        execute(run, shelf)
        tables = [table.path(run.directory.path).read_bytes() for table in TABLES.values()]
    return hashlib.sha256(b"".join(tables)).hexdigest()


@contextmanager
def _without_own_fits(empty: Path) -> Iterator[None]:
    """Use the fits that come with flmarket alone."""
    before = os.environ.get("FLMARKET_FITS")
    os.environ["FLMARKET_FITS"] = str(empty)
    try:
        yield
    finally:
        os.environ.pop("FLMARKET_FITS")
        if before is not None:
            os.environ["FLMARKET_FITS"] = before


def recorded() -> dict[str, dict[str, str]]:
    """Return the digests in the file, by scenario and policy."""
    found: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return found
