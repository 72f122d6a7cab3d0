"""Data sets of an exact size and EMD: integer label counts, and the images that fill them (eq. 1 inverted).

Which EMD a data set gets is ``fl.data.emd.realised_emd``; which labels have too many is a random draw.
"""

import math
from collections.abc import Sequence

import numpy as np

from fl.arithmetic.draws import subsets, uniforms
from fl.arithmetic.elementary import log
from fl.arrays import FloatArray, IntArray, UInt32Array
from fl.data.emd import nearest_emd


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
    return np.concatenate([pool[own] for pool, own in zip(by_label, chosen, strict=True)])
