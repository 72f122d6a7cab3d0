"""Disks and clocks that fail: a clear error or the right bytes, and the same command gets there once all is well."""

import errno
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from attack.campaign import Campaign
from attack.kills import BATCH, undisturbed
from attack.shell import differences, flmarket, results


@cache
def library() -> Path | None:
    """Return the compiled faults, or None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    target = Path(mkdtemp(prefix="attack-faults-")) / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(target), str(source), "-ldl"], check=True)
    return target


def attempt(random: Random, folder: Path) -> Iterator[str]:
    """Run a batch on a disk that fails from some call on, then without faults."""
    if (faults := library()) is None:
        return
    call = random.choice(("fsync", "rename", "write", "short", "slow", "clock"))
    extra = {"LD_PRELOAD": str(faults)}
    if call == "slow":
        extra["FAULT_SLOW"] = "50000"
    elif call == "clock":
        extra["FAULT_CLOCK"] = str(random.choice((-86_400, 3_600)))
    else:
        number = random.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT))
        extra |= {"FAULT_CALL": call, "FAULT_AT": str(random.randint(1, 60)), "FAULT_ERRNO": str(number)}
    _, expected = undisturbed("run", *BATCH)
    full = ("run", *BATCH, "--out", "out", "--jobs", str(random.choice((1, 2))))
    what = f"{extra}, {full[-1]} jobs: "
    done = flmarket(*full, folder=folder, extra=extra)
    harmless = call in ("short", "slow", "clock")
    for problem in done.wrong(*((0,) if harmless else (0, 1, 2))):
        yield what + problem
    if done.status == 0:
        yield from (what + problem for problem in differences(expected, results(folder / "out")))
    again = flmarket(*full, folder=folder)
    for problem in again.wrong(0):
        yield f"{what}without faults: {problem}"
    yield from (f"{what}without faults: {problem}" for problem in differences(expected, results(folder / "out")))


CAMPAIGNS = (
    Campaign(
        "faulty-disks",
        "fsync, rename or write fail from some call on, writes are short, fsync is slow, the clock jumps: an error or "
        "the right bytes, and the right bytes afterwards",
        100,
        attempt,
    ),
)
