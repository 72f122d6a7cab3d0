"""The formula runner, with a checkpoint after every round."""

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import scenarios.running.checkpoint

scenarios.running.checkpoint.INTERVAL = 0.0
runpy.run_path(str(Path(__file__).with_name("formula.py")), run_name="__main__")
