"""Two processes on one directory: one of them is refused or both are right, and the bytes are those of one alone."""

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from attack.campaign import Campaign
from attack.kills import BATCH, undisturbed
from attack.shell import differences, end, flmarket, results, start


def attempt(random: Random, folder: Path) -> Iterator[str]:
    """Start the same batch twice, a moment apart, with other numbers of jobs."""
    _, expected = undisturbed("run", *BATCH)
    commands = [("run", *BATCH, "--out", "out", "--jobs", str(random.choice((1, 2)))) for _ in range(2)]
    first = start(*commands[0], folder=folder)
    time.sleep(random.uniform(0, 3))
    second = start(*commands[1], folder=folder)
    for process, command in ((first, commands[0]), (second, commands[1])):
        yield from end(process, command).wrong(0, 1, 2)
    yield from flmarket(*commands[0], folder=folder).wrong(0)
    yield from differences(expected, results(folder / "out"))


CAMPAIGNS = (
    Campaign("two-at-once", "the same batch started twice on one folder: refused or right, never mixed", 40, attempt),
)
