"""The formula runner, with a policy that takes three seconds for its first offer, where half a second is long."""

import runpy
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import learning.policies.lcfa
import scenarios.running.record

scenarios.running.record.PATIENCE = 0.5
act = learning.policies.lcfa.LowCostFirst.act


def dawdle(policy, observation):
    if observation.round == 1:
        time.sleep(3)
    return act(policy, observation)


learning.policies.lcfa.LowCostFirst.act = dawdle
runpy.run_path(str(Path(__file__).with_name("formula.py")), run_name="__main__")
