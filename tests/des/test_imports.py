"""The market, the policies, the data sets and the compiled kernel work without torch: a fresh interpreter shows it."""

import subprocess
import sys
from pathlib import Path

import pytest

from fl.training import fused

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "textual", "pettingzoo", "gymnasium")
MODULES = [
    "des.market",
    "learning.policy",
    "learning.policies.lcfa",
    "learning.evaluation",
    "fl.training.jobs",
    "fl.data.registry",
]


def test_federated_learning_alone_loads_the_base_and_nothing_of_the_market() -> None:
    others = "('des', 'learning', 'scenarios', 'tui', 'flmarket')"
    code = f"import sys, fl.training.jobs; print(sorted(m for m in sys.modules if m.partition('.')[0] in {others}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert all(name.startswith("'flmarket.core") for name in done.stdout.strip("[]\n").split(", ")[1:])


def test_no_torch() -> None:
    loaded = f"[m for m in sys.modules if m.partition('.')[0] in {HEAVY}]"
    code = f"import sys, {', '.join(MODULES)}; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.skipif(not fused.available(), reason="fl._fused is not built")
def test_the_compiled_kernel_trains_a_market_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys, flmarket\n"
        'digits = {f"services.{name}.dataset": "digits" for name in ("strokes", "scribbles")}\n'
        f'flmarket.run(flmarket.load("quickstart", {{"rounds": 1}} | digits), "mahdrl", out={str(tmp_path)!r})\n'
        "print([name for name in sys.modules if name.partition('.')[0] in ('torch', 'torchvision')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
