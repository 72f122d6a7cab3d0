"""Logs of any length are verified in the memory that a block of their rounds takes."""

import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.loader import load
from support.runs import played

VERIFY = """
import sys
from pathlib import Path
from flmarket.analysis.verification.verify import verify
from scenarios.logs.directory import RunDirectory

verdict = verify(RunDirectory(Path(sys.argv[1])))
[peak] = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(len(verdict.problems), verdict.rounds, int(peak) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks the kernel of Linux for the peak")
def test_fifty_megabytes_of_logs_are_verified_in_half_a_gigabyte(tmp_path: Path) -> None:
    """Ten services with money for hundreds of clients each."""
    scenario = load("crowd", ["rounds=20", "training.backend=surrogate"])
    rich = {"budget": 20_000.0, "target_accuracy": 1.0}
    services = tuple(service.model_copy(update=rich) for service in scenario.services)
    run = played(scenario.model_copy(update={"services": services}), tmp_path, "random")
    assert sum(path.stat().st_size for path in run.path.glob("*.csv")) > 45e6
    command = [sys.executable, "-c", VERIFY, str(run.path)]
    problems, rounds, peak = map(
        int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    )
    assert (problems, rounds) == (0, 20)
    assert peak < 500e6
