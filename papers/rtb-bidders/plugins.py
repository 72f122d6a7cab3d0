"""What papers on auction-based federated learning compare with: bidders of display advertising, for owners of data.

An owner's images stand for the click rate, the true cost of an owner's work for the reserve price. The second price is
the mechanism's. None of the bidders plans: each bids for the owner on offer what its rule says, while its money lasts.
"""

import numpy as np

from flmarket import Observation, Offer, Policy, PolicyContext, RunTables, measure, policy


class Bidder(Policy):
    """Bids for one owner after another; rules say how much."""

    def __init__(self, context: PolicyContext, *, level: float) -> None:
        """``level`` is the rule's parameter, which training seeds choose."""
        super().__init__(context)
        self.level = level

    def bid(self, images: np.ndarray, mean: float, rng: np.random.Generator) -> np.ndarray:
        """Return the bids for owners with so many images each, where owners have ``mean`` on average."""
        raise NotImplementedError

    def act(self, observation: Observation) -> Offer:
        images = observation.privileged.data_size
        owners = np.flatnonzero(observation.available)  # one, or none that serves this service
        # For all owners at once: the generator of a round begins anew with each of its owners.
        bids = np.minimum(self.bid(images, images.mean(), observation.rng())[owners], observation.budget)
        good = bids >= observation.own_bids[owners]
        return Offer(owners[good], bids[good])


@policy("const")
class Const(Bidder):
    """Bids the same for each owner."""

    def bid(self, images: np.ndarray, mean: float, rng: np.random.Generator) -> np.ndarray:
        return np.full(len(images), self.level)


@policy("rand")
class Rand(Bidder):
    """Bids a number drawn anew for each owner, below a bound."""

    def bid(self, images: np.ndarray, mean: float, rng: np.random.Generator) -> np.ndarray:
        return self.level * rng.random(len(images))


@policy("mcpc")
class Mcpc(Bidder):
    """Bids what images have cost in training, for each image: no budget is in it."""

    def bid(self, images: np.ndarray, mean: float, rng: np.random.Generator) -> np.ndarray:
        return self.level * images


@policy("lin")
class Lin(Bidder):
    """Bids in proportion to an owner's images: ``level`` for one with as many as owners have on average.

    ``bm`` without features to learn from, u / (1 + lambda) for an owner worth u, is this by another name.
    """

    def bid(self, images: np.ndarray, mean: float, rng: np.random.Generator) -> np.ndarray:
        return self.level * images / mean


@policy("ortb")
class Ortb(Bidder):
    """Bids sqrt(c u / lambda + c^2) - c, from a chance b / (c + b) to win at b, and the bid as the cost."""

    def __init__(self, context: PolicyContext, *, level: float, c: float) -> None:
        """``level`` is mean / lambda: the c / lambda of the formula is for images in units of their mean."""
        super().__init__(context, level=level)
        self.c = c

    def bid(self, images: np.ndarray, mean: float, rng: np.random.Generator) -> np.ndarray:
        return np.sqrt(self.c * self.level * images / mean + self.c**2) - self.c


@measure("images", better="more", per_service="mean", digits=0)
def images(run: RunTables) -> object:
    """Images of the owners that a service has bought."""
    return run.rounds.groupby("service")["samples"].sum()
