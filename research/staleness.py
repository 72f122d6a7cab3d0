"""How much progress is an update worth that is stale? Real runs of continuous markets, and the surrogate's term.

    FLMARKET_DATA=... python research/staleness.py record --out staleness [--runs 24] [quickstart paper]
    python research/staleness.py fit --out staleness

``record`` plays markets whose services buffer, go asynchronous, or wait, with policies of random tastes and log-normal
speeds, and writes a file for each run: of every model, the data of its updates, their staleness, and its accuracy. It
goes on where it was stopped. ``fit`` fits the term (``fl.surrogate.learning_curves``) and prints how well it holds.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize
from scipy.stats import spearmanr

import fl.surrogate
from des.market import Market
from fl.arrays import AnyArray, FloatArray
from fl.surrogate.fitted import Fit, add, read
from fl.surrogate.learning_curves import REFERENCE, Curve, Stale
from fl.training.jobs import Asynchronous, Delivery, TrainingJob, TrainingOutcome
from fl.training.trigger import Trigger, share_of
from flmarket.core.files import write_durably
from learning.play_round import play
from learning.policy import Policy
from scenarios.build import Shelf, build_federation, build_policy, population_spec, service_spec, timeline
from scenarios.calibration.traces import Explorer
from scenarios.file.schema import Scenario
from scenarios.loader import load

RULES: tuple[dict[str, Any], ...] = (
    {"kind": "wait-for-all"},
    {"kind": "fedbuff", "options": {"buffer": 3}},
    {"kind": "fedasync"},
    {"kind": "fedbuff", "options": {"buffer": 6, "exponent": 0.0}},
    {"kind": "semi-async"},
    {"kind": "fedasync", "options": {"mixing": 0.3, "exponent": 0.0}},
    {"kind": "fedbuff", "options": {"buffer": 2, "exponent": 0.0}},
    {"kind": "fedbuff", "options": {"buffer": 10}},
)
"""The rules of aggregation, one for each run in turn."""

SPREADS = (0.5, 1.0, 1.5)
"""The standard deviation of the logarithm of clients' speeds; of eight runs in turn."""

EVALUATED = {"paper": 2000}
"""How many test images each model is measured on, by scenario; all where it is not here."""

FITS = Path(fl.surrogate.__file__).with_name("fits")

NEVER = 2.0  # a target that no service reaches


class ModelRecorder(Asynchronous):
    """A federation that forwards everything to another one, and measures and records each model."""

    def __init__(self, federation: Asynchronous, seen: Mapping[str, list[dict[str, Any]]]) -> None:
        self._federation, self.seen = federation, seen
        self._jobs: dict[tuple[str, int, int], TrainingJob] = {}

    @property
    def kernels(self) -> Mapping[str, str]:
        return self._federation.kernels

    def accuracy(self, service: str) -> float:
        return self._federation.accuracy(service)

    def train_round(self, round_: int, jobs: Sequence[TrainingJob]) -> Mapping[str, TrainingOutcome]:
        return self._federation.train_round(round_, jobs)

    def begin(self, round_: int, jobs: Sequence[TrainingJob], slot: int | None = None) -> Mapping[str, FloatArray]:
        self._jobs |= {(job.service, round_, job.client): job for job in jobs}
        return self._federation.begin(round_, jobs, slot)

    def aggregate(self, service: str, model: int, deliveries: Sequence[Delivery], trigger: Trigger) -> None:
        jobs = [self._jobs.pop((service, it.round, it.client)) for it in deliveries]
        self._federation.aggregate(service, model, deliveries, trigger)
        self._federation.evaluate([service])
        self.seen[service].append(
            {
                "sizes": [job.size for job in jobs],
                "emds": [job.emd for job in jobs],
                "staleness": [it.staleness for it in deliveries],
                "shares": [share_of(trigger, it.staleness) for it in deliveries],
                "accuracy": self._federation.accuracy(service),
            }
        )

    def evaluate(self, services: Sequence[str]) -> None:
        """See ``aggregate``, which has measured them."""

    def forget(self, service: str, updates: Sequence[Delivery] | None = None) -> None:
        self._federation.forget(service, updates)

    def state(self) -> dict[str, AnyArray]:
        return self._federation.state()

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._federation.restore(state)

    def close(self) -> None:
        self._federation.close()


def market_of(base: str, run: int) -> Scenario:
    """Return the market of a run: services that do not compete, as clients have a core for each."""
    spread = SPREADS[run // len(RULES) % len(SPREADS)]
    # 11 quantiles of a log-normal distribution, whose mean duration at speed 1 is about a period
    speeds = [
        round(math.exp(spread * z), 3) for z in (-1.69, -1.1, -0.75, -0.47, -0.23, 0, 0.23, 0.47, 0.75, 1.1, 1.69)
    ]
    changes: dict[str, Any] = {
        "rounds": 50, "clients.count": 24, "clients.cores": 3, "clients.speed": speeds, "training.validation": 0.0,
        "training.eval_samples": EVALUATED.get(base), "services.*.budget": 40, "training.backend": "real",
        "dqi": "published", "timeline.mode": "continuous", "timeline.slot": 2.0, "timeline.seconds_per_sample": 0.01,
        "timeline.upload_seconds": 0.3, "timeline.jitter": 0.2, "timeline.aggregate": RULES[run % len(RULES)],
    }  # fmt: skip
    return load(base, {key: value for key, value in changes.items() if value is not None})


def record(base: str, run: int, folder: Path, shelf: Shelf) -> None:
    path = folder / f"{base}-{run:03d}.json"
    if path.exists():
        return
    scenario = market_of(base, run)
    federation = cast("Asynchronous", build_federation(scenario, run, shelf, workers=1))
    start = {it.name: federation.accuracy(it.name) for it in scenario.services}
    recorder = ModelRecorder(federation, {it.name: [] for it in scenario.services})
    specs = [replace(service_spec(scenario, it), target_accuracy=NEVER, privileged=True) for it in scenario.services]
    policies: dict[str, Policy] = {}
    for m, service in enumerate(scenario.services):
        policies[service.name] = Explorer(build_policy(scenario, service).context, run + m)
    clock, triggers = timeline(scenario), [it.create() for it in scenario.triggers()]
    market = Market(population_spec(scenario), specs, clock, scenario.rounds, recorder, run, triggers=triggers)
    play(market, policies, [])
    federation.close()
    content = {
        "rule": RULES[run % len(RULES)], "run": run, "speeds": scenario.clients.speed,
        "services": [
            {"dataset": it.dataset, "start": start[it.name], "models": recorder.seen[it.name]}
            for it in scenario.services
        ],
    }  # fmt: skip
    write_durably(path, (json.dumps(content, default=list) + "\n").encode())
    last = {it["dataset"]: (len(it["models"]), it["models"][-1]["accuracy"]) for it in content["services"]}
    print(path, last, flush=True)


class Recorded:
    """The runs of one data set as arrays [runs, models]; those that made fewer models are padded."""

    def __init__(self, services: Sequence[Mapping[str, Any]]) -> None:
        shape = len(services), max(len(it["models"]) for it in services)
        self.size, self.clients, self.emd, self.left, self.error = (np.zeros(shape) for _ in range(5))
        self.made = np.zeros(shape, dtype=np.bool_)
        weights, ages, shares, starts, at = [], [], [], [], []
        for i, service in enumerate(services):
            for n, model in enumerate(service["models"]):
                size, emd = np.array(model["sizes"], dtype=np.float64), np.array(model["emds"])
                weight = size / size.sum()
                self.size[i, n], self.clients[i, n] = np.log(size.sum() / REFERENCE), -np.log(weight @ weight)
                self.emd[i, n] = weight @ emd
                self.left[i, n] = self.emd[i, n] * np.sqrt(weight @ weight)
                self.error[i, n], self.made[i, n] = 1.0 - model["accuracy"], True
                starts.append(len(weights))
                at.append((i, n))
                weights += weight.tolist()
                ages += model["staleness"]
                shares += model["shares"]
        self._weights, self._ages, self._shares = (np.array(it, dtype=np.float64) for it in (weights, ages, shares))
        self._starts, self._at = np.array(starts), tuple(np.array(at).T)

    def mean(self, of: FloatArray) -> FloatArray:
        """Return the weighted mean over the updates of each model, [runs, models], of what each update has."""
        found = np.zeros(self.made.shape)
        found[self._at] = np.add.reduceat(self._weights * of, self._starts)
        return found

    def followed(self, c: Curve, stale: Stale) -> FloatArray:
        """Return the curve's error, without noise, [runs, models]."""
        factor = self.mean(self._shares**stale.share * (1.0 + self._ages) ** -stale.age)
        added = stale.drift * self.mean(self._shares * self._ages) ** 2
        step = c.step_0 + c.step_size * self.size + c.step_clients * self.clients + c.step_emd * self.emd
        first = c.first_size * self.size + c.first_clients * self.clients + c.first_emd * self.emd
        now, u = np.zeros(len(self.size)), np.zeros(self.size.shape)
        for n in range(self.size.shape[1]):
            now = now + np.where(self.made[:, n], factor[:, n] * np.exp(step[:, n] + first[:, n] / (1.0 + now)), 0.0)
            u[:, n] = now
        drift = (c.drift_emd * self.emd + c.drift_left * self.left + added) * u / (1.0 + u)
        change = np.minimum(drift - c.decay / c.shape * np.log1p(u**c.shape), 0.0)
        return np.asarray(c.floor + (c.start - c.floor) * np.exp(change))

    def of_runs(self, value: FloatArray) -> FloatArray:
        """Return the mean over the models of each run, [runs]."""
        return np.asarray((value * self.made).sum(axis=1) / self.made.sum(axis=1))

    def missed(self, c: Curve, stale: Stale) -> FloatArray:
        """Return the mean absolute difference of accuracies over the models of each run, [runs]."""
        return self.of_runs(np.abs(self.followed(c, stale) - self.error))


def fitted(c: Curve, seen: Recorded) -> Stale:
    """Return the term with which the curve misses the runs least."""

    def cost(values: FloatArray) -> float:
        return float(seen.missed(c, Stale(*values)).mean()) if min(values) >= 0 else np.inf

    starts = [(0.3, 0.7, 0.1), (0.5, 0.3, 0.02), (1.0, 0.1, 0.05)]
    found = [minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-5}) for start in starts]
    return Stale(*(float(f"{it:.3g}") for it in min(found, key=lambda it: it.fun).x))


def crossed(c: Curve, own: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """Return how far the curve is from half of the runs, with the term fitted to the other half, and the other way.

    ``own`` are runs, each with what it has of the data set.
    """
    halves = [[it for it in own if it[0]["run"] // len(RULES) % 2 == half] for half in (0, 1)]
    errors: dict[str, list[float]] = {name: [] for name in ("fresh", "share alone", "with the term")}
    means: dict[str, list[tuple[float, ...]]] = {}
    for train, test in (halves, halves[::-1]):
        stale, seen = fitted(c, Recorded([it for _, it in train])), Recorded([it for _, it in test])
        plain, term = seen.missed(c, Stale()).tolist(), seen.missed(c, stale).tolist()
        paths = seen.error, seen.followed(c, Stale()), seen.followed(c, stale)
        mean = np.array([seen.of_runs(1.0 - it) for it in paths]).T.tolist()
        for (run, _), *found, accuracies in zip(test, plain, term, mean, strict=True):
            for name, it in zip(("share alone", "with the term"), found, strict=True):
                errors["fresh" if run["rule"] == RULES[0] else name].append(it)
            means.setdefault(json.dumps(run["rule"]), []).append(accuracies)
    real, *others = np.array([np.mean(it, axis=0) for it in means.values()]).T
    return errors | {"ranks": [float(spearmanr(real, it).statistic) for it in others]}


def fit(folder: Path, *, keep: bool) -> None:
    """Print how well the term holds, fitted to half of the runs; with ``keep``, put that of all where others are."""
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    print("| data set | runs | share, age, drift | fresh | share alone | with the term | ranks of the rules |")
    for of in read(FITS / "surrogate.json"):
        c = Curve.of(of.parameters)
        own = [(run, it) for run in runs for it in run["services"] if it["dataset"] == of.dataset]
        if not own:
            continue
        found, stale = crossed(c, own), fitted(c, Recorded([it for _, it in own]))
        ranks = found.pop("ranks")
        shown = [f"{np.mean(it):.3f} +- {1.96 * np.std(it, ddof=1) / np.sqrt(len(it)):.3f}" for it in found.values()]
        print(
            f"| {of.dataset} | {len(own)} | {tuple(stale)} | {' | '.join(shown)} | {np.round(ranks, 2)} |", flush=True
        )
        if keep:
            quality = {f"mae, {name}": round(float(np.mean(it)), 4) for name, it in found.items()}
            quality |= {"spearman": round(ranks[1], 4), "spearman, share alone": round(ranks[0], 4)}
            source = {"command": "python research/staleness.py", "runs": len(own), "official": of.source["official"]}
            made = Fit("staleness", of.dataset, of.regime, stale._asdict(), quality, source)
            add(FITS / "staleness.json", made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "fit"])
    parser.add_argument("bases", nargs="*", default=["quickstart"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--keep", action="store_true", help="put the fits where flmarket finds them")
    given = parser.parse_args()
    if given.what == "fit":
        fit(given.out, keep=given.keep)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    shelf = Shelf()
    for run in range(given.runs):
        for base in given.bases:
            record(base, run, given.out, shelf)


if __name__ == "__main__":
    sys.exit(main())
