"""The figures of a report, worked out from rounds.csv and offers.csv: one policy of one scenario, over seeds."""

import math
from collections.abc import Iterable, Mapping, Sequence

from audit.files import Run

MARKET = "market"

LIMITS = {
    "final accuracy": (0, 100), "AUC": (0, 100), "target met": (0, 100), "normalised reward": (0, 1),
    "income Jain": (0, 1), "income Gini": (0, 1), "spending HHI": (0, 1), "services Jain": (0, 1), "core use": (0, 100),
    "client profit": (-math.inf, math.inf), "misreport profit": (-math.inf, math.inf), "overstated": (0, 100),
}  # fmt: skip
"""The least and the most that a measure can be; intervals end there. Others are at least 0."""


def measures(run: Run) -> Mapping[tuple[str, str], float]:
    """Return each measure of a run, by its name and a service (or the market)."""
    last, cores = run.scenario["rounds"], run.scenario["clients"]["cores"]
    found: dict[tuple[str, str], float] = {}
    spent, final, ends, ratios = {}, {}, [], []
    for name, service in run.services.items():
        rows = [row for row in run.rounds if row["service"] == name]
        first, target = service.get("arrival", 1), service["target_accuracy"]
        # After the last round that was played, a service that has left keeps its accuracy and reward.
        # Reports are of the test images, which ``accuracy`` is on where no others are held out.
        reported = "test_accuracy" if run.share else "accuracy"
        accuracy, reward = (
            [float(row[key]) for row in rows] + [float(rows[-1][key])] * (last - len(rows))
            for key in (reported, "reward")
        )
        met = [int(row["round"]) for row in rows if row["status"] == "reached"]
        ends.append(met[0] if met else last)
        spent[name], final[name] = math.fsum(float(row["spent"]) for row in rows), 100 * accuracy[-1]
        ratios.append(min(1.0, accuracy[-1] / target))
        offered = math.fsum(float(row["offered"]) for row in rows)
        paid = [(row["paid"], bid) for row, bid in zip(run.offers, _costs(run), strict=True) if row["service"] == name]
        found |= {
            ("final accuracy", name): final[name],
            ("AUC", name): 100 * _mean(accuracy[first - 1 :]),
            ("target met", name): 100.0 * bool(met),
            ("rounds to target", name): ends[-1] - first + 1,
            ("normalised reward", name): _mean(reward[first - 1 :]) / service["reward_base"] ** target,
            ("spent", name): spent[name],
            ("cost per point", name): spent[name] / max(final[name], 1e-9),
            ("served", name): sum(int(row["served"]) for row in rows),
            ("refused", name): sum(int(row["refused"]) for row in rows),
            ("wasted", name): offered - spent[name],
            ("client profit", name): math.fsum(float(price) - cost for price, cost in paid if price),
        }
    for measure in ("final accuracy", "AUC", "target met", "rounds to target", "normalised reward"):
        found[measure, MARKET] = _mean([found[measure, name] for name in run.services])
    for measure in ("spent", "served", "refused", "wasted", "client profit"):
        found[measure, MARKET] = math.fsum(found[measure, name] for name in run.services)
    income = [0.0] * run.scenario["clients"]["count"]
    for row in run.offers:
        income[int(row["client"])] += float(row["paid"] or 0)
    total = math.fsum(spent.values())
    work = run.scenario["clients"]["count"] * cores * max(ends)
    return found | {
        ("cost per point", MARKET): total / max(math.fsum(final.values()), 1e-9),
        ("income Jain", MARKET): _jain(income),
        ("income Gini", MARKET): _gini(income),
        ("spending HHI", MARKET): math.fsum((amount / total) ** 2 for amount in spent.values()) if total else 0.0,
        ("services Jain", MARKET): _jain(ratios),
        ("core use", MARKET): 100 * found["served", MARKET] / work,
    }


def interval(values: Sequence[float], limits: tuple[float, float]) -> tuple[float, float] | None:
    """Return the 95 % t interval of a mean, within the limits; None for fewer than three values."""
    if len(values) < 3:
        return None
    mean = _mean(values)
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    wide = _t_quantile(len(values) - 1) * error
    return max(mean - wide, limits[0]), min(mean + wide, limits[1])


def estimates(runs: Iterable[Run]) -> Mapping[tuple[str, str], tuple[float, tuple[float, float] | None]]:
    """Return the mean and the interval of each measure over the seeds."""
    found = [measures(run) for run in runs]
    return {
        key: (_mean(values), interval(values, LIMITS.get(key[0], (0, math.inf))))
        for key in found[0]
        for values in [[one[key] for one in found]]
    }


def differences(runs: Iterable[Run], others: Iterable[Run]) -> Mapping[tuple[str, str], tuple[float, float, float]]:
    """Return how the first runs differ from the second, seed by seed: the mean and its interval, for each measure."""
    pairs = [(measures(one), measures(other)) for one, other in zip(runs, others, strict=True)]
    found = {}
    for key in pairs[0][0]:
        values = [one[key] - other[key] for one, other in pairs]
        least, most = LIMITS.get(key[0], (0, math.inf))
        found[key] = (_mean(values), *(interval(values, (least - most, most - least)) or ()))
    return found


def _costs(run: Run) -> list[float]:
    """Return what the work of each offer costs its client; truthful clients bid that."""
    return [float(row["bid"]) for row in run.offers] if run.clients is None else [float(r["cost"]) for r in run.clients]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _jain(values: Sequence[float]) -> float:
    squares = math.fsum(value**2 for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0


def _gini(values: Sequence[float]) -> float:
    total = math.fsum(values)
    apart = math.fsum(abs(one - other) for one in values for other in values)
    return apart / (2 * len(values) * total) if total else 0.0


def _t_quantile(freedom: int) -> float:
    """Return the 97.5 % point of Student's t distribution, by bisection of its distribution function."""
    low, high = 1.9, 13.0
    while high - low > 1e-13:
        middle = (low + high) / 2
        low, high = (middle, high) if _t_below(middle, freedom) < 0.975 else (low, middle)
    return low


def _t_below(t: float, freedom: int) -> float:
    """Return the probability below t > 0: the closed sums for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    start, even = (1, False) if freedom % 2 else (0, True)
    term, total = (cosine, cosine) if not even else (1.0, 1.0)
    for n in range(start + 2, freedom - 1, 2):
        term *= cosine**2 * (n - 1) / n
        total += term
    if even:
        return 0.5 + sine * total / 2
    return 0.5 + (angle + (sine * total if freedom > 1 else 0.0)) / math.pi
