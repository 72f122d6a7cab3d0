"""The market, the policies and the data sets load without torch: a fresh interpreter shows it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ["des.market", "learning.policy", "learning.policies.lcfa", "fl.training.jobs", "fl.data.registry"]


def test_federated_learning_alone_loads_the_base_and_nothing_of_the_market() -> None:
    others = "('des', 'learning', 'scenarios', 'tui', 'flmarket')"
    code = f"import sys, fl.training.jobs; print(sorted(m for m in sys.modules if m.partition('.')[0] in {others}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert all(name.startswith("'flmarket.core") for name in done.stdout.strip("[]\n").split(", ")[1:])


@pytest.mark.parametrize("module", MODULES)
def test_no_torch(module: str) -> None:
    code = f"import sys, {module}; print([m for m in sys.modules if m.partition('.')[0] in ('torch', 'textual')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
