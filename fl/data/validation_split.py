"""The validation split: training images that no client is ever given, on which a run measures accuracy as it goes.

Rewards, exits and policies react to these images; the test images are left for what is reported. The split depends on
the seed and the data set alone. It is stratified, to the image: so the number of images left of the rarest label is
known for every seed before anything is drawn, and a small split lacks no label by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fl.arithmetic.draws import draw_key, subsets
from fl.arrays import IntArray

LARGEST_SHARE = 0.5  # of the training images; clients need most of them


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The training images of a data set, as a run splits them."""

    held_out: IntArray  # indices of the images that accuracy is measured on, ascending; empty if there is no split
    by_label: tuple[IntArray, ...]  # for each label, the indices of the images that clients draw from, ascending


def split(
    pools: Sequence[IntArray],  # for each label, the indices of its training images
    dataset: str,  # name of the data set
    share: float,  # the share of training images to hold out, 0 for none
    seed: int,  # the run's seed
) -> Split:
    """Return a run's split of a data set."""
    if not share:
        return Split(np.empty(0, dtype=np.int64), tuple(pools))
    sizes = np.array([len(pool) for pool in pools])
    total = held_out(int(sizes.sum()), share)
    if not total:
        raise ValueError(f"a share of {share} of {sizes.sum()} training images is not one image")
    chosen = subsets(draw_key(seed, "validation", dataset), _per_label(sizes, total), sizes)
    held = np.concatenate([pool[indices] for pool, indices in zip(pools, chosen, strict=True)])
    left = tuple(np.delete(pool, indices) for pool, indices in zip(pools, chosen, strict=True))
    return Split(np.sort(held), left)


def _per_label(sizes: IntArray, total: int) -> IntArray:
    """Return [L] how many images of each label are held out: in proportion, the largest remainders rounded up."""
    counts, rest = np.divmod(total * sizes, sizes.sum())
    counts[np.argsort(-rest, kind="stable")[: total - int(counts.sum())]] += 1
    result: IntArray = counts
    return result


def held_out(images: int, share: float) -> int:
    """Return how many of a data set's training images a split holds out: the share, rounded down."""
    return int(_exact(share) * images)


def left_at_least(rarest: int, share: float) -> int:
    """Return how many images of each label are left for clients, at least, if the rarest label has ``rarest``."""
    return int((1 - _exact(share)) * rarest)


def _exact(share: float) -> Fraction:
    """Return a share as it is written: 0.1 is a tenth, which no 64-bit number is."""
    return Fraction(str(share))
