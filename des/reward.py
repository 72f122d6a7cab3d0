"""The paper's reward, Omega^accuracy, as rounds.csv has it and as policies are told it.

Learners do not learn from it as it is, because it rises by itself with the rounds: ``Rewards`` in
learning/mahdrl/paper.py centres it on the usual one of the same round, and learning/mahdrl/advantages.py credits a
decision with how much better the model did than usual instead.
"""

from typing import Any, overload

import numpy as np

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


def discounts(gamma: float, length: float, left: float) -> FloatArray:
    """Return what a reward counts in a round of so many slots, and in each slot, or part of one, that is ``left`` then.

    A reward comes in while its round lasts: that of a whole slot counts 1, that of a part of one as much less as it is
    shorter, discounted. So what an episode is worth does not hang on how many rounds events make of a slot.
    """
    now, rest = (it if gamma == 1 else (1 - gamma**it) / (1 - gamma) for it in (length, left % 1))
    whole = np.concatenate([[now], gamma ** (length + np.arange(int(left)))])
    return np.append(whole, gamma ** (length + int(left)) * rest) if rest else whole
