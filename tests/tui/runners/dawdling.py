"""The formula runner, with a policy whose first offer takes until a file is there, where half a second is long."""

import runpy
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import learning.policies.lcfa
from scenarios.running import worker

SOURCE = """
def dawdle(policy, observation):
    while observation.round == 1 and not seen.exists(): time.sleep(0.01)
    return act(policy, observation)
"""
"""As a plug-in has it in a file of its own."""

worker.PATIENCE, worker._TICK = 0.5, 0.1
space = {"time": time, "seen": Path(sys.argv[1]), "act": learning.policies.lcfa.LowCostFirst.act}
exec(compile(SOURCE, "mine.py", "exec"), space)  # noqa: S102 - our own
learning.policies.lcfa.LowCostFirst.act = space["dawdle"]
runpy.run_path(str(Path(__file__).with_name("formula.py")), run_name="__main__")
