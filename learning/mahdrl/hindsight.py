"""Credit in hindsight: what a decision added to the run, as the market's learning curves tell when it is over.

A training on curves may know what no agent sees: the images that a service trained on. A decision in round n, which let
the service train on the images S_n, is credited with

    A_n = sum_{j >= n} (accuracy_j - accuracy_j with the usual images in place of S_n),

all other rounds as they were played, without luck and noise (``fl.hindsight``). So it is credited neither with what the
service did before and after, nor with how far it had come. The usual images are as many, of as many clients and as
lopsided as those the service has trained on in that market so far.

Credit counts in its usual size, the geometric mean of that in the round and that in the whole run: what is done first
moves the accuracies of all rounds, but what is done later must be learned, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from des.market import Market
from des.rows import Outcome, RoundReport
from fl.arrays import FloatArray, IntArray
from fl.hindsight import added
from fl.surrogate import Curve, SurrogateFederation, Trained
from learning.mahdrl.credit import LARGEST_GAIN, SMALLEST_SIZE, running_rate
from learning.mahdrl.networks import Tensors

SMALLEST_PART = 0.1  # no round's usual size counts as less than this part of the run's


@dataclass(slots=True)
class Lived:
    """What a training knows of an episode when it is over."""

    curves: Mapping[str, Curve]  # the learning curve of each service
    # by service, what it trained on in each round in which it took part; None where nobody served it
    rounds: dict[str, list[Trained | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, market: Market) -> Self | None:
        """Return what is known of a market before its first round; None if its services train models."""
        return cls(market.federation.curves) if isinstance(market.federation, SurrogateFederation) else None

    def add(self, report: RoundReport) -> None:
        """Take in a round."""
        images: dict[str, list[tuple[int, int, float]]] = {name: [] for name in report.feedback}
        for place, offer in enumerate(report.offers):
            if offer.outcome is Outcome.SERVED:
                held = offer if report.clients is None else report.clients[place]  # the truth, whatever was reported
                images[offer.service].append((held.data_size, offer.data_size, held.emd))
        for name, own in images.items():
            self.rounds.setdefault(name, []).append(Trained.on(own) if own else None)


class Usual:
    """What is usual for each service in each market: running means over episodes."""

    def __init__(self, services: int, rounds: int) -> None:
        # [M, 3] the mean logs of how many images and of how many equal clients, and the mean EMD
        self.images: FloatArray = np.zeros((services, 3))
        self.episodes: IntArray = np.zeros(services, dtype=np.int64)  # [M] episodes seen
        self.square: FloatArray = np.zeros((services, rounds))  # [M, N] the mean square of what a round added
        self.rounds: IntArray = np.zeros((services, rounds), dtype=np.int64)  # [M, N] how often each round was played

    def credit(self, service: int, curve: Curve, rounds: list[Trained | None]) -> FloatArray:
        """Return the credit [n] of an episode's rounds in its usual size, at most 3 of it; arguments as ``worth``."""
        worth, n = self.worth(service, curve, rounds), len(rounds)
        self.rounds[service, :n] += 1
        self.square[service, :n] += running_rate(self.rounds[service, :n]) * (worth**2 - self.square[service, :n])
        whole = float(np.sqrt(self.square[service, :n].mean()))
        own = np.maximum(np.sqrt(self.square[service, :n]), SMALLEST_PART * whole)
        scaled: FloatArray = np.clip(
            worth / np.maximum(np.sqrt(own * whole), SMALLEST_SIZE), -LARGEST_GAIN, LARGEST_GAIN
        )
        return scaled

    def worth(
        self,
        service: int,  # its row
        curve: Curve,  # its learning curve
        rounds: list[Trained | None],  # [n] what it trained on in each
    ) -> FloatArray:
        """Return A [n] of an episode's rounds, and take its images in; 0 where nobody served in all of it."""
        seen = np.array([_numbers(images) for images in rounds if images is not None])
        if not len(seen):
            return np.zeros(len(rounds))
        if not self.episodes[service]:
            self.images[service] = seen.mean(axis=0)
        size, clients, emd = self.images[service]
        samples = float(np.exp(size))
        instead = Trained(samples, samples, samples * emd, samples * samples / float(np.exp(clients)))
        self.episodes[service] += 1
        self.images[service] += running_rate(self.episodes[service]) * (seen.mean(axis=0) - self.images[service])
        return added(curve, rounds, instead)

    def state(self) -> Tensors:
        """Return what a checkpoint must hold, by name."""
        return {
            "usual.images": self.images,
            "usual.episodes": self.episodes,
            "usual.square": self.square,
            "usual.rounds": self.rounds,
        }

    def restore(self, state: Tensors) -> None:
        """Continue from a ``state``."""
        self.images[...] = state["usual.images"]
        self.episodes[...] = state["usual.episodes"]
        self.square[...] = state["usual.square"]
        self.rounds[...] = state["usual.rounds"]


def _numbers(images: Trained) -> list[float]:
    return [np.log(images.samples), np.log(images.weights**2 / images.squares), images.weighted / images.weights]
