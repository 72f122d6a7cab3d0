"""Campaigns: attempts numbered from 0, each made of a seed and its number alone, their outcomes kept in one file."""

import json
import random
import shutil
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Campaign:
    """One kind of attack.

    Attributes:
        name: on the command line and in the table.
        what: what is tried and what must hold, in a sentence.
        goal: attempts that make a full campaign.
        attempt: makes one attempt with its own random numbers in an empty folder; yields what went wrong.
        weight: share of the time, relative to the others.
    """

    name: str
    what: str
    goal: int
    attempt: Callable[[random.Random, Path], Iterable[str]]
    weight: float = 1.0


class Record:
    """The outcomes so far: a line of JSON for each attempt."""

    def __init__(self, path: Path) -> None:
        """Read what is there; a line that a kill cut off is dropped."""
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.tried: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
        for line in path.read_text(encoding="utf-8").splitlines():
            self._count(json.loads(line))

    def add(self, campaign: str, number: int, seed: int, wrong: Sequence[str], seconds: float) -> None:
        """Keep the outcome of one attempt."""
        entry = {"campaign": campaign, "number": number, "seed": seed, "wrong": list(wrong), "seconds": seconds}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        self._count(entry)

    def _count(self, entry: dict[str, object]) -> None:
        name = str(entry["campaign"])
        self.tried[name] += 1
        self.wrong[name] += bool(entry["wrong"])
        self.seconds[name] += float(str(entry["seconds"]))


def try_one(campaign: Campaign, seed: int, number: int) -> tuple[list[str], float]:
    """Make one attempt; return what went wrong, and the seconds it took."""
    folder = Path(tempfile.mkdtemp(prefix=f"attack-{campaign.name}-"))
    begin = time.monotonic()
    try:
        wrong = list(campaign.attempt(random.Random(f"{seed}/{campaign.name}/{number}"), folder))  # noqa: S311
    except Exception:
        wrong = [traceback.format_exc()]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return wrong, round(time.monotonic() - begin, 3)


def run(
    campaigns: Sequence[Campaign], record: Record, *, seed: int, minutes: float, report: Callable[[str], None]
) -> None:
    """Make attempts until all goals are met or the time is up; the campaign that is furthest behind is next."""
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        open_ = [campaign for campaign in campaigns if record.tried[campaign.name] < campaign.goal]
        if not open_:
            return
        campaign = min(open_, key=lambda campaign: record.seconds[campaign.name] / campaign.weight)
        number = record.tried[campaign.name]
        wrong, seconds = try_one(campaign, seed, number)
        record.add(campaign.name, number, seed, wrong, seconds)
        for problem in wrong:
            report(f"{campaign.name} {number}: {problem}")


def table(campaigns: Sequence[Campaign], record: Record) -> str:
    """Return the outcomes as a Markdown table."""
    lines = ["| campaign | what is tried | tried | wrong |", "| --- | --- | ---: | ---: |"]
    for campaign in campaigns:
        tried, wrong = record.tried[campaign.name], record.wrong[campaign.name]
        lines.append(f"| `{campaign.name}` | {campaign.what} | {tried:,} | {wrong:,} |")
    return "\n".join(lines)
