"""Label mixes from Dirichlet(a, ..., a), the split by which most papers make clients' data differ.

A small concentration a gives a client images of one or two labels; a large one, of all alike. Source: Hsu, Qi and
Brown, "Measuring the effects of non-identical data distribution for federated visual classification", 2019.
"""

import math

import numpy as np

from fl.arithmetic.draws import Word, uniforms
from fl.arithmetic.elementary import exp, log, normal_quantile
from fl.arrays import BoolArray, FloatArray, IntArray, UInt32Array

LEAST, MOST = 0.001, 1_000_000.0
"""The concentrations that can be drawn from: beyond them all images have one label, or all labels as many."""


def label_mixes(
    key: UInt32Array,  # [..., 2] the stream (``fl.arithmetic.draws``)
    concentration: float,  # a, above 0
    labels: int,  # L
    # [...] three words of the counter, the fourth counts labels and attempts; the shapes of all of them and of the key
    # broadcast
    round_: Word,
    service: Word,
    client: Word,
) -> FloatArray:
    """Draw label distributions [L, ...] from Dirichlet(concentration, ..., concentration); their shares add up to 1."""
    shape = np.broadcast(key[..., 0], round_, service, client).shape
    words = [np.broadcast_to(np.asarray(word), shape).ravel() for word in (round_, service, client)]
    keys = np.broadcast_to(key, (*shape, 2)).reshape(-1, 2)
    logarithms = _log_gammas(keys, concentration, labels, *words)
    share: FloatArray = exp(logarithms - logarithms.max(axis=0))
    total = share[0].copy()
    for one in share[1:]:  # label by label: what NumPy's sum adds first depends on the processor
        total += one
    share /= total
    return share.reshape(labels, *shape)


# A draw from the distribution is the shares of independent gamma variables in their sum. Source of the rejection:
# Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26(3), 2000; for shapes below 1, a
# variable of shape a + 1 is multiplied by a power of a uniform one (their section 6). Attempt n of a variable takes the
# numbers at a counter of its own, so that each variable is what it is alone. Logarithms are kept, because at a
# concentration of 0.01 the variables would be 0 to a float.
def _log_gammas(keys: UInt32Array, a: float, labels: int, *words: IntArray) -> FloatArray:
    """Draw logarithms of gamma variables of shape ``a``, but for a constant, [L, counters]; arguments are flat."""
    boosted = a < 1.0
    d = (a + 1.0 if boosted else a) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    label = np.repeat(np.arange(labels), len(words[0]))
    place = np.tile(np.arange(len(words[0])), labels)

    def drawn(of: IntArray, attempt: int) -> FloatArray:
        """Return two numbers strictly between 0 and 1, [2, variables], for each of these variables."""
        at = place[of]
        pair = uniforms(keys[at], *(word[at] for word in words), attempt * labels + label[of])
        return (np.floor(pair * 2.0**52) + 0.5) * 2.0**-52

    logarithms, waiting, attempt = np.empty(label.size), np.arange(label.size), 0
    while waiting.size:
        attempt += 1
        first, second = drawn(waiting, attempt)
        normal = normal_quantile(first)
        root = 1.0 + c * normal
        cube, fits = root * root * root, root > 0.0
        logarithm = log(np.where(fits, cube, 1.0))
        accepted: BoolArray = fits & (log(second) < 0.5 * normal * normal + d * (1.0 - cube + logarithm))
        logarithms[waiting[accepted]] = logarithm[accepted]
        waiting = waiting[~accepted]
    if boosted:
        logarithms += log(drawn(np.arange(label.size), 0)[0]) / a
    return logarithms.reshape(labels, -1)


def mixed_counts(
    sizes: IntArray,  # [...] D, images
    shares: FloatArray,  # [L, ...] label distributions
) -> IntArray:
    """Return how many images of each label [L, ...] data sets have: whole numbers near to their shares of D.

    Each label gets its share, rounded down; what is left goes to the largest remainders, of equal ones to the first.
    """
    ideal = sizes * shares
    counts = np.floor(ideal).astype(np.int64)
    order = np.argsort(counts - ideal, axis=0, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(shares)).reshape(-1, *(1,) * sizes.ndim), axis=0)
    counts += rank < sizes - counts.sum(axis=0)
    return counts
