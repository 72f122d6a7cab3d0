"""The earth mover's distance (EMD, eq. 1) of label counts: its largest value, its value, and those a data set can have.

The paper's EMD is the L1 distance between two label distributions: 0 for an IID data set. Moving one image from a label
that has too few to one that has too many changes it by 2/D, so a data set of D images can only have certain EMDs.
``realised_emd`` says which one it will be: the wanted value where the integers allow it, else the nearest possible. It
depends on (D, EMD, L) alone.
"""

from functools import lru_cache

import numpy as np

from fl.arrays import FloatArray, IntArray


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
