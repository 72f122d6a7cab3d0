"""Kills of more than a plain command: the process that plays for a screen, a calibration, workers of a Ray cluster."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from attack.campaign import Campaign
from attack.kills import BATCH, undisturbed
from attack.shell import PATIENCE, differences, end, environment, flmarket, results, start
from flmarket.core.installation import command
from scenarios.loader import builtin_text
from scenarios.running.steering import Start

ROUNDS = 12
SMALL = """
name = "small"
rounds = 12
dqi = "fitted"
clients = { count = 6, cores = 1, data_size = [20, 40], emd = [0.2, 1.0], cost = { per_sample = 0.05, per_emd = 0.5 } }
training = { model = "mlp", local_epochs = 1, learning_rate = 0.1 }

[[services]]
name = "digits"
dataset = "digits"
budget = 5
target_accuracy = 0.9
reward_base = 60
policy = "random"
"""


@cache
def played_headlessly() -> dict[str, bytes]:
    """Return the results of the run that is watched."""
    folder = Path(mkdtemp(prefix="attack-headless-"))
    done = flmarket("run", "quickstart", "--rounds", str(ROUNDS), "--out", "out", folder=folder)
    if done.status:
        raise RuntimeError(done.errors)
    return results(folder / "out")


def watched(random: Random, folder: Path) -> Iterator[str]:
    """Steer a runner at random, kill it or let go of it, and finish its run on the command line."""
    text = builtin_text("quickstart").replace("rounds = 60", f"rounds = {ROUNDS}")
    process = subprocess.Popen(
        command("scenarios.running.worker"), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        start = asdict(Start(text, "quickstart", "out", speed=random.choice((None, 5.0))))
        process.stdin.write(json.dumps({"do": "watch", "plugins": [], **start}) + "\n")
        for _ in range(random.randint(0, 5)):
            process.stdin.flush()
            time.sleep(random.uniform(0, 1))
            do = random.choice(("pause", "resume", "step", "quit"))
            process.stdin.write(json.dumps({"do": do}) + "\n")
        time.sleep(random.uniform(0, 2))
    if random.random() < 0.5:
        process.kill()
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        yield "the runner outlives whoever started it"
    yield from flmarket("run", "quickstart", "--rounds", str(ROUNDS), "--out", "out", folder=folder).wrong(0)
    yield from differences(played_headlessly(), results(folder / "out"))


CALIBRATION = ("calibrate", "dqi", "small.toml", "--epochs", "2", "--repetitions", "1", "--out", "out")


def calibrated(folder: Path) -> dict[str, bytes]:
    """Return what a calibration has measured and fitted."""
    names = ("dqi-points.csv", "dqi.json")
    return {path.name: path.read_bytes() for path in (folder / "out").glob("*") if path.name in names}


@cache
def calibrated_undisturbed() -> tuple[float, dict[str, bytes]]:
    """Return how long a calibration takes, and what it comes to."""
    folder = Path(mkdtemp(prefix="attack-calibration-"))
    (folder / "small.toml").write_text(SMALL)
    begin = time.monotonic()
    done = flmarket(*CALIBRATION, folder=folder, extra={"FLMARKET_FITS": str(folder / "fits")})
    if done.status:
        raise RuntimeError(done.errors)
    return time.monotonic() - begin, calibrated(folder)


def calibrating(random: Random, folder: Path) -> Iterator[str]:
    """Kill a calibration, then let it finish."""
    seconds, expected = calibrated_undisturbed()
    (folder / "small.toml").write_text(SMALL)
    extra = {"FLMARKET_FITS": str(folder / "fits")}
    for _ in range(random.randint(1, 3)):
        process = start(*CALIBRATION, folder=folder, extra=extra)
        time.sleep(random.uniform(0.1, seconds))
        os.killpg(process.pid, signal.SIGKILL)
        end(process)
    yield from flmarket(*CALIBRATION, folder=folder, extra=extra).wrong(0)
    yield from differences(expected, calibrated(folder))


def on_ray(random: Random, folder: Path) -> Iterator[str]:
    """Kill workers or the driver of a batch on a local Ray cluster, then finish it without Ray."""
    if find_spec("ray") is None:
        return
    seconds, expected = undisturbed("run", *BATCH)
    full = ("run", *BATCH, "--out", "out", "--engine", "ray", "--workers", "1")
    process = start(*full, folder=folder, extra={"RAY_USAGE_STATS_ENABLED": "0"})
    driver = random.random() < 0.6
    time.sleep(random.uniform(3, 12 + seconds))
    if driver:
        process.kill()
    else:
        for worker in workers_of(process.pid):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
    done = end(process, full)
    if not driver:
        yield from done.wrong(0, 1)
    if done.status == 0:
        yield from differences(expected, results(folder / "out"))
    yield from flmarket("run", *BATCH, "--out", "out", folder=folder).wrong(0)
    yield from differences(expected, results(folder / "out"))


def workers_of(pid: int) -> list[int]:
    """Return the Ray workers among a process and all below it."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(") ")[2].split()[1])

    def below(process: int) -> bool:
        while process in parents:
            if process == pid:
                return True
            process = parents[process]
        return False

    found = []
    for process in parents:
        with suppress(OSError):
            if below(process) and b"ray::" in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(process)
    return found


CAMPAIGNS = (
    Campaign(
        "kill-watched", "the process that plays for the TUI: steered, killed or let go of; then `run`", 40, watched,
    ),
    Campaign(
        "kill-calibrate", "`calibrate dqi` killed 1 to 3 times: the fits of an undisturbed one", 20, calibrating,
    ),
    Campaign("kill-ray", "`run --engine ray`: workers or the driver killed; finished without Ray", 10, on_ray, 0.7),
)  # fmt: skip
