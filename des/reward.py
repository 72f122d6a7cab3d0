"""The paper's reward, Omega^accuracy, as rounds.csv has it and as policies are told it.

Learners do not learn from it as it is, because it rises by itself with the rounds: ``Rewards`` in
learning/mahdrl/paper.py centres it on the usual one of the same round, and learning/mahdrl/advantages.py credits a
decision with how much better the model did than usual instead.
"""

from typing import Any, overload

from des.observation import Status
from des.service import ServiceSpec, ServiceState
from fl.arithmetic.elementary import power, rounded
from fl.arrays import FloatArray


def reward(spec: ServiceSpec, state: ServiceState) -> float:
    """Return r = Omega^accuracy, and Omega^target once the target is met; 12 significant digits. 0 before it arrives.

    The reward of a service that has left is absorbing: it gets Omega^target in every remaining round, so that finishing
    early is never punished.
    """
    waits = state.status is Status.WAITING
    return 0.0 if waits else earned(spec.reward_base, min(state.accuracy, spec.target_accuracy))


@overload
def earned(base: float, accuracy: float) -> float: ...
@overload
def earned(base: FloatArray, accuracy: FloatArray) -> FloatArray: ...
def earned(base: Any, accuracy: Any) -> Any:
    """Return Omega^accuracy for accuracies up to the target, of one service or of many; 12 significant digits."""
    return rounded(power(base, accuracy))
