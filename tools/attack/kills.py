"""Kills: a command that is killed at any instant, and started again, ends with the bytes of one that was not."""

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from attack.campaign import Campaign
from attack.shell import differences, end, flmarket, results, start

REAL = ("quickstart", "--rounds", "8", "--workers", "1")
BATCH = ("scarce", "--rounds", "40", "--set", "training.backend=surrogate", "--policy", "hqfa", "--policy", "lcfa",
         "--seeds", "2")  # fmt: skip
ONGOING = ("stragglers", "--set", "training.local_epochs=8", "--set", "services.*.target_accuracy=1.0")
TRAIN = ("scarce", "--backend", "surrogate", "--set", "rounds=6", "--episodes", "6", "--evaluate-every", "3",
         "--resume")  # fmt: skip

EVENTS = "timeline.decide=[]", 'timeline.decide=["free", "model"]'
"""After which services decide again there."""

CPUS: tuple[Mapping[str, str], ...] = (
    {},
    {"FLMARKET_KERNEL": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "OPENBLAS_CORETYPE": "Haswell"},
)
"""This machine, and one without AVX-512."""


@cache
def undisturbed(*arguments: str) -> tuple[float, dict[str, bytes]]:
    """Return how long a command takes, and what it writes."""
    folder = Path(mkdtemp(prefix="attack-undisturbed-"))
    begin = time.monotonic()
    done = flmarket(*arguments, "--out", target(arguments), folder=folder)
    seconds = time.monotonic() - begin
    if done.status:
        raise RuntimeError(done.errors)
    return seconds, written(folder / "out")


def target(arguments: Sequence[str]) -> str:
    """Return the --out of a command: a folder, or an agent's file in it."""
    return "out/agent.safetensors" if arguments[0] == "train" else "out"


def written(out: Path) -> dict[str, bytes]:
    """Return the results below a folder: of runs, or of a training."""
    agents = {path.name: path.read_bytes() for path in out.rglob("*.safetensors") if "state" not in path.name}
    return results(out) | agents


def killed(
    random: Random,
    folder: Path,
    *arguments: str,
    signals: tuple[int, ...],
    machines: Sequence[Mapping[str, str]] = CPUS[:1],  # each start is on one of them
) -> Iterator[str]:
    """Kill a command at random instants until it gets through; yield what differs from one that was left alone."""
    seconds, expected = undisturbed(*arguments)
    full = (*arguments, "--out", target(arguments))
    for _ in range(random.randint(1, 3)):
        process = start(*full, folder=folder, extra=random.choice(machines))
        time.sleep(random.uniform(0.1, seconds))
        chosen = random.choice(signals)
        # The whole session, or only the first process: its workers must not outlive it.
        if random.random() < 0.5:
            os.killpg(process.pid, chosen)
        else:
            process.send_signal(chosen)
        done = end(process, full)
        if done.status not in (0, 1, 130, 143, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT):
            yield f"signal {chosen}: status {done.status}: {done.errors[-1000:]}"
        if "Traceback" in done.errors:
            yield f"signal {chosen}: a traceback: {done.errors[-2000:]}"
    time.sleep(0.5)  # workers of a killed process end by themselves
    done = flmarket(*full, folder=folder, extra=random.choice(machines))
    yield from done.wrong(0)
    yield from differences(expected, written(folder / "out"))
    left = [path for path in (folder / "out").rglob("*") if path.name == "checkpoint" or path.name.endswith(".part")]
    yield from (f"{path.relative_to(folder)} was left behind" for path in left)


HARD, ANY = (signal.SIGKILL,), (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

CAMPAIGNS = (
    Campaign(
        "kill-run", "`run` of real training, killed 1 to 3 times at any instant: the bytes of an undisturbed run", 60,
        lambda random, folder: killed(random, folder, "run", *REAL, signals=ANY),
    ),
    Campaign(
        "kill-batch", "`run --jobs 2` of four runs, killed likewise", 60,
        lambda random, folder: killed(random, folder, "run", *BATCH, "--jobs", "2", signals=ANY),
    ),
    Campaign(
        "kill-ongoing", "`run` of a continuous market, killed likewise while clients are at work, on two CPUs", 60,
        lambda random, folder: killed(
            random, folder, "run", *ONGOING, "--set", random.choice(EVENTS), "--workers", random.choice("124"),
            signals=ANY, machines=CPUS,
        ),
    ),
    Campaign(
        "kill-train", "`train` killed likewise: the agents of an undisturbed training", 30,
        lambda random, folder: killed(random, folder, "train", *TRAIN, signals=HARD),
    ),
)  # fmt: skip
