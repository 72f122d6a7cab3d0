"""A plug-in that is another policy with one option set: `mahdrl` that is told no learning curve.

    flmarket run paper --plugin examples/untold.py --policy mahdrl-untold --policy mahdrl --seeds 5

A service that plays `mahdrl` knows how its own data set is learned, from the learning curve that was fitted to it
before. No other policy looks at that, and on the surrogate it is the curve that the market follows. Here it plays as if
nobody had fitted one. research/notebook/leaderboard.md has both.
"""

import flmarket
from learning.mahdrl.agent import Mahdrl
from learning.policy import PolicyContext


@flmarket.policy("mahdrl-untold")
class Untold(Mahdrl):
    """`mahdrl` as if nobody had fitted a learning curve to the service's data set."""

    summary = "mahdrl, told no learning curve"

    def __init__(self, context: PolicyContext, *, checkpoint: str | None = None) -> None:
        """Load the agent; ``checkpoint`` as in ``Mahdrl``."""
        super().__init__(context, checkpoint=checkpoint, curve=False)
