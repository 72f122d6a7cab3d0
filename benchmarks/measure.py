"""The method of the benchmarks: contestants take turns in one process, and only ratios of medians are claimed.

Taking turns spreads a disturbance of the machine over all contestants; a ratio of two figures from different runs means
nothing on a shared machine.
"""

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from des import allocation
from fl.arithmetic import draws, elementary
from fl.training import fused
from flmarket.core.cores import usable_cores

RESULTS = Path(__file__).parent / "results"


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
    def best(self) -> float:
        """The least disturbed repetition. It shows what shared cores may hide, such as two workers' gain."""
        return min(self.seconds)

    @property
    def cpu(self) -> float:
        """The middle repetition's computing time, which other programs disturb less than the clock."""
        return statistics.median(self.computing)

    @property
    def spread(self) -> float:
        """(Third - first quartile) / median: how much the machine was disturbed."""
        first, _, third = statistics.quantiles(self.seconds, n=4) if len(self.seconds) > 1 else (0.0, 0.0, 0.0)
        return (third - first) / self.median


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the collector out of what is timed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def numpy_alone() -> Iterator[None]:
    """Let NumPy draw the world, compute exp and log, and award cores, as where the extension was not built."""
    modules = (draws, elementary, allocation)
    kept = [module._native for module in modules]
    for module in modules:
        module._native = None
    try:
        yield
    finally:
        for module, native in zip(modules, kept, strict=True):
            module._native = native


def take_turns(contestants: Mapping[str, Callable[[], Any]], repeat: int) -> dict[str, Timing]:
    """Time each contestant ``repeat`` times, in alternation, after one call each that does not count."""
    for call in contestants.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    computing: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeat):
        for name, call in contestants.items():
            with no_garbage_collection():
                start, cpu = time.perf_counter(), time.process_time()
                call()
                seconds[name].append(time.perf_counter() - start)
                computing[name].append(time.process_time() - cpu)
    return {name: Timing(tuple(seconds[name]), tuple(computing[name])) for name in contestants}


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the code."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": usable_cores(),
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
    """Prints tables, and appends one JSON line for each figure to ``benchmarks/results/<name>.jsonl``."""

    def __init__(self, name: str, *, save: bool) -> None:
        self._path = RESULTS / f"{name}.jsonl"
        self._lines: list[dict[str, Any]] = [{"machine": machine(), "command": " ".join(["python", *sys.argv])}]
        self._save = save
        self._console = Console()

    def table(self, title: str, rows: list[dict[str, Any]]) -> None:
        """Show rows of equal keys, and keep them."""
        table = Table(title=title, title_justify="left")
        for index, name in enumerate(rows[0]):
            table.add_column(name, justify="right" if index else "left")
        for row in rows:
            table.add_row(*(_text(value) for value in row.values()))
            self._lines.append({"table": title} | row)
        self._console.print(table)

    def close(self) -> None:
        """Write the JSON lines: a file holds one run, the latest."""
        self._lines[0]["machine"]["load_at_end"] = [round(x, 2) for x in os.getloadavg()]
        if self._save:
            RESULTS.mkdir(exist_ok=True)
            self._path.write_text("".join(json.dumps(line) + "\n" for line in self._lines), encoding="utf-8")
            self._console.print(f"wrote {self._path}", markup=False, highlight=False, soft_wrap=True)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    parts = {key.strip(): value.strip() for key, value in found.items()}
    return f"{parts.get('model name', '?')} (family {parts.get('cpu family')}, model {parts.get('model')})"


def _revision() -> str | None:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False)
    return done.stdout.strip() or None
