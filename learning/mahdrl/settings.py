"""The hyper-parameters of `mahdrl`. Light: no torch, so that whoever plays an agent can read them."""

from dataclasses import dataclass

from learning.mahdrl.brain import Design
from learning.mahdrl.ranges import Count, Positive, Rate


@dataclass(frozen=True, slots=True)
class Settings(Design):
    """Hyper-parameters of `mahdrl`: what the agent sees and may do (``Design``), and how it learns."""

    share: bool = True  # one network for all services, instead of one for each
    # the critic values the clients that were served; otherwise all that were chosen, as in Algorithm 1
    served: bool = True
    # credit is what a service did better than the mean of the other learners in the same round
    difference: bool = False
    average: Rate = 0.003  # rate at which the networks that are played follow those that learn; 1: they are the same
    learning_rate: Positive = 1e-3  # Adam's, for all networks
    batch: Count = 32  # transitions of each service in an update
    replay: Count = 4000  # transitions of each service that are kept
    updates: Positive = 1.0  # updates for each round played
    horizon: Count = 20  # of the advantage; see ``credit.advantages``
    # credit begins where the service stood before the decision, and counts in the usual size of such gains in its
    # market: for trainings in many markets, without noise (backend ``noiseless``)
    gain: bool = False
    # credit is what a decision added to the accuracies of the whole run, as the market's learning curves tell in
    # hindsight (``hindsight``), in the usual size of that in its market; nothing else is credit then. Only for
    # trainings on curves (backend ``noiseless`` or ``surrogate``).
    hindsight: bool = False
    # the advantage counts by how much the accuracy deviates; otherwise steps of -log(1 - accuracy) count the same early
    # and late
    weighted: bool = True
    scale: Positive = 3.0  # of the advantage
