"""The earth mover's distance (EMD, eq. 1) of label counts, and data sets of an exact size and EMD (eq. 1 inverted).

The paper's EMD is the L1 distance between two label distributions: 0 for an IID data set. Moving one image from a label
that has too few to one that has too many changes it by 2/D, so a data set of D images can only have certain EMDs.
``realised_emd`` says which one it will be: the wanted value where the integers allow it, else the nearest possible. It
depends on (D, EMD, L) alone.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from fl.arithmetic.draws import subsets, uniforms
from fl.arithmetic.elementary import log
from fl.arrays import FloatArray, IntArray, UInt32Array


def largest_emd(labels: int) -> float:
    """Return the largest EMD from a uniform reference: all images carry one of ``labels`` labels."""
    return 2.0 * (1.0 - 1.0 / labels)


def counted_emd(counts: IntArray) -> FloatArray:
    """Return the EMD (eq. 1) from a uniform reference [...] of data sets with label counts [L, ...]; whole sums."""
    labels, size = len(counts), np.maximum(counts.sum(axis=0), 1)  # nothing is at no distance
    distance: FloatArray = np.abs(counts * labels - size).sum(axis=0) / (size * labels)
    return np.minimum(distance, largest_emd(labels))  # which is a rounded number, too


@lru_cache(maxsize=4096)
def nearest_emd(size: int, emd: float, labels: int) -> tuple[float, tuple[tuple[int, int], ...]]:
    """Return the nearest possible EMD and the (over-full labels, images in them) pairs that give it.

    With s labels above D/L holding T images together, the EMD is 2 * (T - s*D/L) / D; an EMD of 0 needs D/L whole.
    The labels above hold at least floor(D/L)+1 images each, the others at most floor(D/L).
    """
    base, rest = divmod(size, labels)
    candidates: list[tuple[float, int, int]] = [(0.0, 0, 0)] if rest == 0 else []
    for over in range(1, labels):
        least = max(over * (base + 1), size - (labels - over) * base)
        wanted = over * size / labels + emd * size / 2.0
        for total in {int(np.floor(wanted)), int(np.ceil(wanted)), least, size}:
            if least <= total <= size:
                # In units of images / L, so that equal EMDs compare equal.
                realised = 2.0 * (total * labels - over * size) / (labels * size)
                candidates.append((realised, over, total))
    nearest, *_ = min(candidates, key=lambda candidate: (round(abs(candidate[0] - emd), 12), candidate))
    # EMDs a rounding error apart are the same EMD.
    pairs = {(over, total) for realised, over, total in candidates if abs(realised - nearest) < 1e-12}
    return nearest, tuple(sorted(pairs))


def realised_emd(size: int, emd: float, labels: int) -> float:
    """Return the EMD that a data set of ``size`` images over ``labels`` labels gets when ``emd`` is wanted."""
    return nearest_emd(size, emd, labels)[0]


def largest_count(size: int, emd: float, labels: int) -> int:
    """Return the most images of one label that such a data set can need."""
    base = size // labels
    _, pairs = nearest_emd(size, emd, labels)
    # One over-full label takes everything that its s - 1 companions, at their least, leave. With none, D/L is whole.
    return max((total - (over - 1) * (base + 1) if over else base) for over, total in pairs)


def label_counts(size: int, emd: float, labels: int, key: UInt32Array, round_: int = 0, client: int = 0) -> IntArray:
    """Draw the images per label [L] of a data set with exactly ``realised_emd(size, emd, labels)``.

    The direction (which labels have too many or too few, and by how much) is a draw from the Dirichlet distribution
    with concentration 1, in which all directions are alike, rescaled to the EMD.
    """
    if size < 1 or labels < 2:
        raise ValueError("a data set needs at least one image and two labels")
    _, pairs = nearest_emd(size, emd, labels)
    # Exponentially distributed numbers, in proportion to their sum, are such a draw.
    share = -log(1.0 - uniforms(key, round_, 0, client, np.arange(labels))[0])
    share /= math.fsum(share.tolist())
    if pairs[0][0] == 0:
        return np.full(labels, size // labels, dtype=np.int64)
    # Of the possible numbers of over-full labels, the one nearest to the draw's own.
    drawn = int((share > 1.0 / labels).sum())
    over, total = min(pairs, key=lambda pair: (abs(pair[0] - drawn), pair[0]))
    base = size // labels
    order = np.argsort(-share, kind="stable")
    above, below = order[:over], order[over:]
    counts = np.empty(labels, dtype=np.int64)
    # Excess over the least an over-full label holds, in proportion to the draw.
    free = total - over * (base + 1)
    counts[above] = base + 1 + apportioned(free, share[above], np.full(over, free))
    # Shortfall from the most an under-full label may hold, in proportion to how little was drawn.
    gap = np.maximum(share[above].min() - share[below], 1e-12)
    counts[below] = base - apportioned((labels - over) * base - (size - total), gap, np.full(labels - over, base))
    return counts


def apportioned(total: int, weights: FloatArray, limit: IntArray) -> IntArray:
    """Split ``total`` into whole parts nearest to the proportions of ``weights``, none above its ``limit``."""
    parts = np.zeros(weights.size, dtype=np.int64)
    while (left := total - int(parts.sum())) > 0:
        open_ = parts < limit
        ideal = np.where(open_, left * weights / math.fsum(weights[open_].tolist()), 0.0)
        step = np.minimum(np.floor(ideal).astype(np.int64), limit - parts)
        if not step.any():  # less than one whole image each: the largest remainders get one
            step[np.argsort(-ideal, kind="stable")[: min(left, int(open_.sum()))]] = 1
        parts += step
    return parts


def draw_images(
    counts: IntArray,  # [L] images wanted of each label
    by_label: Sequence[IntArray],  # for each label, the indices of its images in the training split
    key: UInt32Array,  # the stream of the service's images (``fl.arithmetic.draws``)
    round_: int = 0,  # of the data set
    client: int = 0,  # of the data set
) -> IntArray:  # [D] indices into the training split
    """Draw the training images of a data set, without replacement, in label order."""
    for label, (count, pool) in enumerate(zip(counts, by_label, strict=True)):
        if count > len(pool):
            raise ValueError(f"label {label} has {len(pool)} images, {count} are wanted")
    chosen = subsets(key, counts, np.array([len(pool) for pool in by_label]), round_, 1, client)
    return np.concatenate([pool[indices] for pool, indices in zip(by_label, chosen, strict=True)])
