"""What each round added to a run, by its learning curve: known only where a curve stands for a model, and afterwards.

A run can be followed again with other images in one of its rounds, all others as they were. What that changes is what
the round was worth; no comparison of runs tells as much, because in them everything else differs, too.
"""

from collections.abc import Sequence

import numpy as np

from fl.arrays import FloatArray
from fl.surrogate import Curve, Trained, follow


def added(
    curve: Curve,  # the service's
    # [n] what it trained on in each; None where nobody served it, so that its model stayed as it was
    rounds: Sequence[Trained | None],
    instead: Trained,  # what it is compared with: images that it might have trained on in that round
) -> FloatArray:
    """Return what each round added to the accuracies of a service, summed over that round and all later ones, [n].

    Without luck and noise.
    """
    c, n = curve.noiseless(), len(rounds)
    # Runs followed side by side: in run j, round j is played with the other images; the last run is as it was.
    u, accuracy, worth = np.zeros(n + 1), np.full(n + 1, 1.0 - c.start), np.zeros(n)
    for j, images in enumerate(rounds):
        other = follow(c, u[j], 0.0, 0.0, instead, np.sqrt)
        if images is not None:
            u, accuracy = follow(c, u, 0.0, 0.0, images, np.sqrt)
        u[j], accuracy[j] = other
        worth += accuracy[-1] - accuracy[:-1]
    return worth
