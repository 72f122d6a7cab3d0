"""The method of the benchmarks: contestants take turns in one process, and ratios of neighbouring repetitions count.

Taking turns spreads a disturbance of the machine over all contestants; a ratio of two figures from different runs means
nothing on a shared machine. What is measured is kept in results/speed.jsonl, a line for each figure and machine, and

    python benchmarks/measure.py

puts the ten figures that matter most into docs/performance.md, and all of them into docs/measurements.md, in a table
for each machine.
"""

import gc
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
import torch
from scipy.stats import quantile_test

from fl.training import fused
from flmarket.core.installation import usable_cores

RESULTS = Path(__file__).parent / "results" / "speed.jsonl"
DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
TEN = (
    "the reference workload, against the plain loop at its best",
    "the reference workload, flmarket",
    "the reference workload, against Flower on Ray, by the clock",
    "the reference workload, against FedLab, by CPU time",
    "a round of `resnet8`, against plain processes (channels last)",
    "the market of `paper` on the surrogate, all `random`",
    "1024 markets as `vector_env`, against the SimPy environment",
    "a market of 10,000 clients and 50 services, a round",
    "`flmarket run quickstart --fresh`",
    "a shown round, 20 x 3",
)
"""What most users will want to know first."""
Figure = dict[str, Any]


@dataclass(frozen=True)
class Timing:
    """Seconds that one contestant took in each repetition: on the clock, and of computing on all cores together."""

    seconds: tuple[float, ...]
    computing: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle repetition."""
        return statistics.median(self.seconds)

    @property
    def cpu(self) -> float:
        """The middle repetition's computing time, which other programs disturb less than the clock."""
        return statistics.median(self.computing)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the collector out of what is timed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def take_turns(contestants: Mapping[Any, Callable[[], Any]], repeat: int) -> dict[Any, Timing]:
    """Time each contestant ``repeat`` times, in alternation, after one call each that does not count."""
    for call in contestants.values():
        call()
    seconds: dict[Any, list[float]] = {name: [] for name in contestants}
    computing: dict[Any, list[float]] = {name: [] for name in contestants}
    for _ in range(repeat):
        for name, call in contestants.items():
            with no_garbage_collection():
                start, cpu = time.perf_counter(), time.process_time()
                call()
                seconds[name].append(time.perf_counter() - start)
                computing[name].append(time.process_time() - cpu)
    return {name: Timing(tuple(seconds[name]), tuple(computing[name])) for name in contestants}


def waited_for() -> float:
    """Return the seconds of CPU of all processes that this one has started and waited for."""
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def processes_under(roots: Sequence[int]) -> dict[int, float]:
    """Return the processes that descend from some, with these, and the seconds of CPU that each has taken."""
    parents, taken = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid] = int(fields[1])
            taken[pid] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    found, new = set[int](), set(roots) & taken.keys()
    while new:
        found |= new
        new = {pid for pid, parent in parents.items() if parent in new}
    return {pid: taken[pid] for pid in found}


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the code."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": usable_cores(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "load": [round(x, 2) for x in os.getloadavg()],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_instructions": torch.backends.cpu.get_cpu_capability(),
        "numpy": np.__version__,
        "kernel": fused.kernel_name() if fused.available() else "reference",
        "git": _revision(),
    }


class Report:
    """Keeps the figures of a script, and prints them as ``docs/measurements.md`` has them."""

    def __init__(self, *, save: bool) -> None:
        self._machine, self._save = machine(), save
        self._figures: list[Figure] = []
        self.part = ""  # of the script, which ``--only`` picks

    def figure(self, what: str, unit: str, samples: Sequence[float]) -> None:
        """Keep the median of some samples, with the distribution-free 95 % interval that six and more have."""
        ends = quantile_test(samples, p=0.5).confidence_interval(0.95) if len(samples) > 1 else (math.nan, math.nan)
        low, high = (None if math.isnan(end) else float(end) for end in ends)
        value = {"what": what, "value": statistics.median(samples), "unit": unit, "low": low, "high": high}
        command = f"python benchmarks/{Path(sys.argv[0]).name}" + f" --only {self.part}" * bool(self.part)
        self._figures.append(value | {"n": len(samples), "command": command})

    def times(self, what: str, slow: Sequence[float], fast: Sequence[float]) -> None:
        """Keep how many times as fast the second is, by pairs of neighbouring repetitions."""
        self.figure(what, "times", [one / other for one, other in zip(slow, fast, strict=True)])

    def close(self) -> None:
        """Print the figures as the page has them; in ``RESULTS``, they replace those of its commands here."""
        self._machine["load_at_end"] = [round(x, 2) for x in os.getloadavg()]
        for figure in self._figures:
            figure["machine"] = self._machine
            print(row(figure))
        if self._save:
            made = {(place(figure), figure["command"]) for figure in self._figures}
            others = [figure for figure in kept() if (place(figure), figure["command"]) not in made]
            RESULTS.write_text("".join(json.dumps(it) + "\n" for it in [*others, *self._figures]), encoding="utf-8")


def kept() -> list[Figure]:
    """Return the figures of all machines."""
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()] if RESULTS.exists() else []


def place(figure: Figure) -> str:
    """Return the machine that a figure is of."""
    where = figure["machine"]
    parts = [where["cpu"], f"{where['cores']} cores", where["kernel"].removeprefix("fused-"), where["system"]]
    return ", ".join(filter(None, [where.get("gpu"), *parts]))


def row(figure: Figure) -> str:
    """Return a figure's line of the page's table."""
    where = figure["machine"]
    begun, ended = where["load"][0], where["load_at_end"][0]
    made = f"{where['time'][:10]}, {where['git']}, load {min(begun, ended):.0f} to {max(begun, ended):.0f}"
    return f"| {figure['what']} | {estimate(figure)} | {figure['n']} | {made} | `{figure['command']}` |"


def estimate(figure: Figure) -> str:
    """Return a figure's value with its unit and interval."""
    text = f"{_text(figure['value'])} {figure['unit']}".strip()
    if figure["low"] is not None:
        text += f" [{_text(figure['low'])}, {_text(figure['high'])}]"
    return text


def ten(figures: list[Figure]) -> str:
    """Return the table of the figures that matter most, a column for each machine."""
    by_machine: dict[str, dict[str, str]] = {}
    for figure in figures:
        if figure["what"] in TEN:
            by_machine.setdefault(place(figure), {})[figure["what"]] = estimate(figure)
    names = [name.removesuffix(", Linux x86_64") for name in by_machine]
    lines = [f"| what | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]
    for what in TEN:
        lines.append(f"| {what} | {' | '.join(cells.get(what, '') for cells in by_machine.values())} |")
    return "\n".join(lines)


def tables(figures: list[Figure]) -> str:
    """Return a table for each machine."""
    parts = []
    for name in dict.fromkeys(map(place, figures)):
        rows = [row(figure) for figure in figures if place(figure) == name]
        parts += [
            f"### {name}",
            "\n".join(["| what | measured | n | when | command |", "|---|---|---|---|---|", *rows]),
        ]
    return "\n\n".join(parts)


def _text(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    parts = {key.strip(): value.strip() for key, value in found.items()}
    return f"{parts.get('model name', '?')} (family {parts.get('cpu family')}, model {parts.get('model')})"


def _revision() -> str | None:
    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=RESULTS.parents[2], check=False)  # noqa: S607

    changed = git("diff", "--quiet", "HEAD", "--", ":!docs", f":!{RESULTS.relative_to(RESULTS.parents[2])}").returncode
    return git("describe", "--always").stdout.strip() + "-dirty" * bool(changed) or None


def renewed(page: Path, content: str) -> str:
    """Return a page's text with what stands between its two marks replaced."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{content}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    for name, content in (("performance.md", ten(kept())), ("measurements.md", tables(kept()))):
        (DOCS / name).write_text(renewed(DOCS / name, content), encoding="utf-8")
