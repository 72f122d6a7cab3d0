"""The hyper-parameters of `mahdrl`. Light: no torch, so that whoever plays an agent can read them."""

from dataclasses import dataclass

from learning.mahdrl.brain import Design
from learning.mahdrl.ranges import Count, Positive, Rate


@dataclass(frozen=True, slots=True)
class Settings(Design):
    """Hyper-parameters of `mahdrl`: what the agent sees and may do (``Design``), and how it learns.

    Attributes:
        share: one network for all services, instead of one for each.
        served: the critic values the clients that were served; otherwise all that were chosen, as in Algorithm 1.
        difference: credit is what a service did better than the mean of the other learners in the same round.
        average: rate at which the networks that are played follow those that learn; 1: they are the same.
        learning_rate: Adam's, for all networks.
        batch: transitions of each service in an update.
        replay: transitions of each service that are kept.
        updates: updates for each round played.
        horizon, scale: the advantage's; see ``credit.advantages``.
        gain: credit begins where the service stood before the decision, and counts in the usual size of such gains in
            its market: for trainings in many markets, without noise (backend ``noiseless``).
        hindsight: credit is what a decision added to the accuracies of the whole run, as the market's learning curves
            tell in hindsight (``hindsight``), in the usual size of that in its market; nothing else is credit then.
            Only for trainings on curves (backend ``noiseless`` or ``surrogate``).
        weighted: the advantage counts by how much the accuracy deviates; otherwise steps of -log(1 - accuracy) count
            the same early and late.
    """

    share: bool = True
    served: bool = True
    difference: bool = False
    average: Rate = 0.003
    learning_rate: Positive = 1e-3
    batch: Count = 32
    replay: Count = 4000
    updates: Positive = 1.0
    horizon: Count = 20
    gain: bool = False
    hindsight: bool = False
    weighted: bool = True
    scale: Positive = 3.0
