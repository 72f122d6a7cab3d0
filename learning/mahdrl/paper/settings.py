"""The hyper-parameters of `mahdrl-paper`: the paper's where it prints them, and else those of a trial.

docs/decisions/algorithm1.md describes the trial, what is ours, and what that is worth.
"""

from dataclasses import dataclass

from learning.mahdrl.settings import Count, NotNegative, Part, Positive, Rate


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of Algorithm 1."""

    hidden: tuple[Count, ...] = (120, 60)  # neurons of the hidden layers of actor and critic; the paper's
    replay: Count = 4000  # transitions kept for each agent; the paper's
    batch: Count = 32  # transitions in an update; the paper's
    discount: Part = 0.95  # gamma; the paper's
    soft: Rate = 0.01  # varsigma of eq. (12); the paper's
    # subtracted from the actor's output before the sigmoid, so that an untrained actor pays about 0.7 % above the bid
    # (with 2: 12 %), not 50 %; ours
    bias: NotNegative = 5.0
    # both learning rates of Adam are those of DDPG (Lillicrap et al., "Continuous control with deep reinforcement
    # learning", ICLR 2016)
    actor_rate: Positive = 1e-4
    critic_rate: Positive = 1e-3
    noise: NotNegative = 0.05  # the standard deviation per round of the random process xi, which is DDPG's; ours
    reversion: Part = 0.15  # its pull towards 0; DDPG's
