"""Label mixes from a Dirichlet distribution: docs/decisions/data.md, "Label mixes"."""

import math
from functools import cache

from audit.draws import pair, standard_normal
from audit.files import LABELS


@cache
def mix_counts(
    size: int, concentration: float, seed: int, purpose: str, number: int, place: int, client: int
) -> tuple[int, ...]:
    """Return how many images of each label a data set has; its mix was drawn in a round for the service at a place."""
    logs = [_log_gamma(concentration, seed, purpose, number, place, client, label) for label in range(LABELS)]
    parts = [math.exp(value - max(logs)) for value in logs]
    total = math.fsum(parts)
    ideal = [size * part / total for part in parts]
    counts = [math.floor(value) for value in ideal]
    order = sorted(range(LABELS), key=lambda label: counts[label] - ideal[label])
    for label in order[: size - sum(counts)]:
        counts[label] += 1
    return tuple(counts)


def emd_of(counts: tuple[int, ...]) -> float:
    """Return the distance of label counts from even ones (eq. 1), a ratio of whole numbers."""
    size = sum(counts)
    return sum(abs(count * LABELS - size) for count in counts) / (size * LABELS)


def _log_gamma(a: float, seed: int, purpose: str, number: int, place: int, client: int, label: int) -> float:
    """Return the logarithm of a gamma variable of shape a, but for a constant: Marsaglia and Tsang, 2000."""

    def numbers(attempt: int) -> list[float]:
        found = pair(seed, (purpose,), number, place, client, label + LABELS * attempt)
        return [(math.floor(value * 2.0**52) + 0.5) / 2.0**52 for value in found]

    d = (a + 1 if a < 1 else a) - 1 / 3
    attempt = 0
    while True:
        attempt += 1
        first, second = numbers(attempt)
        x = standard_normal(first)
        root = 1 + x / math.sqrt(9 * d)
        if root > 0 and math.log(second) < x * x / 2 + d * (1 - root**3 + math.log(root**3)):
            return math.log(root**3) + (math.log(numbers(0)[0]) / a if a < 1 else 0.0)
