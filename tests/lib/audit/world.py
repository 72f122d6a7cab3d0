"""All that a run's seed gives each client in each round: data, labels, costs, speeds, departures."""

import math
from functools import cache

from audit.draws import pair, standard_normal, whole
from audit.runs import LABELS, MICRO, Run


@cache
def nearest_emd(size: int, wanted: float) -> float:
    """Return, of the values that eq. (1) can take on ``size`` images of ten labels, the one nearest to the wanted one.

    With s labels above size / 10 that hold T images together, the distance is 2 (T - s size / 10) / size.
    """
    possible = {0.0} if size % LABELS == 0 else set()
    least = size // LABELS
    for above in range(1, LABELS):
        fewest = max(above * (least + 1), size - (LABELS - above) * least)
        possible |= {2.0 * (total * LABELS - above * size) / (LABELS * size) for total in range(fewest, size + 1)}
    return min(possible, key=lambda value: (round(abs(value - wanted), 12), value))


@cache
def quality(size: int, emd: float, eta: tuple[float, ...]) -> float:
    """Return the DQI of a data set: eq. (6)."""
    one, two, three, four, five, six = eta
    alpha = four * math.exp(-(((emd + five) / six) ** 2))
    return alpha - one * math.exp(-two * (three * size) ** alpha)


class World:
    """The world of a run's seed, drawn as it is asked for."""

    def __init__(self, run: Run) -> None:
        """Read what the world is drawn from."""
        clients = run.scenario["clients"]
        self._seed, self._places = run.meta["seed"], {name: m for m, name in enumerate(run.services)}
        self._lasting = clients.get("lasting", {})
        self._clients = [
            {**clients, **group, **{key: {**clients[key], **group.get(key, {})} for key in ("cost", "label_mix")}}
            for group in clients.get("groups", [])
            for _ in range(group["count"])
        ]
        self._clients += [clients] * (clients["count"] - len(self._clients))

    def _pairs(self, client: int) -> list[tuple[int, float]]:
        own = self._clients[client]
        # Where labels are drawn, the EMD follows from them, and a size alone is held.
        emds = own["emd"] if "dirichlet" not in own["label_mix"] else [0.0]
        return [(size, nearest_emd(size, emd)) for size in own["data_size"] for emd in emds]

    def held(self, number: int, service: str, client: int) -> tuple[int, float]:
        """Return how many images a client has for a service, and their EMD."""
        since = self.since(number, service, client)
        stream, when = ("quality", number) if since is None else ("lasting", since)
        pairs = self._pairs(client)
        size, emd = pairs[whole(self._seed, (stream,), len(pairs), when, self._places[service], client)]
        counts = self.mix(number, service, client, size)
        return size, emd if counts is None else emd_of(counts)

    def mix(self, number: int, service: str, client: int, size: int) -> tuple[int, ...] | None:
        """Return how many images of each label a client has; None where the EMD was drawn, not the labels."""
        if (concentration := self._clients[client]["label_mix"].get("dirichlet")) is None:
            return None
        since = self.since(number, service, client)
        drawn = ("labels", number) if since is None else ("lasting labels", since)
        return mix_counts(size, concentration, self._seed, *drawn, self._places[service], client)

    def since(self, number: int, service: str, client: int) -> int | None:
        """Return the round in which data that lasts was drawn; None if it is the round's own."""
        persistence = self._lasting.get("persistence", 0.0)
        if (
            not persistence
            or pair(self._seed, ("persistence",), number, self._places[service], client)[0] >= persistence
        ):
            return None
        drift = self._lasting.get("drift", 0.0)
        drifted = (n for n in range(number, 0, -1) if pair(self._seed, ("drift",), n, 0, client)[0] < drift)
        return next(drifted, 0)

    def cost(self, number: int, service: str, client: int) -> int:
        """Return what a data set costs its client in a round, in millionths."""
        size, emd = self.held(number, service, client)
        cost = self._clients[client]["cost"]
        plain = max(0, round((cost["per_sample"] * size - cost["per_emd"] * emd) * MICRO))
        noise = cost.get("noise", 0.0)
        if not noise:
            return plain
        return round(plain * (1.0 + noise * (2.0 * pair(self._seed, ("cost",), number, 0, client)[0] - 1.0)))

    def speed(self, client: int) -> float:
        speeds = self._clients[client]["speed"]
        return float(speeds[whole(self._seed, ("speed",), len(speeds), 0, 0, client)])

    def leaves(self, number: int, client: int) -> float:
        """Return the part of its work after which a client leaves; infinite if it stays."""
        chance, part = pair(self._seed, ("departure",), number, 0, client)
        return part if chance < self._clients[client]["departure_rate"] else math.inf

    def tie(self, number: int, service: str, client: int) -> float:
        """Return the draw of a service among equal payments: the lowest wins."""
        return pair(self._seed, ("ties",), number, self._places[service], client)[0]


@cache
def mix_counts(
    size: int, concentration: float, seed: int, purpose: str, number: int, place: int, client: int
) -> tuple[int, ...]:
    """Return the images of each label of a Dirichlet mix: docs/decisions/data.md, "Label mixes"."""
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
