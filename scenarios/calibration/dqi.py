"""``flmarket calibrate dqi``: experiments for each data set of a scenario, the fit of eq. (6), a table and figures."""

import csv
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from fl.calibrate_dqi import Experiment, Point, Quality, fit, grid, measure, quality, rounded
from fl.datasets import Dataset
from fl.errors import InputError
from fl.files import WriteError, replacing_text
from fl.fitted import Fit, add, own_folder
from fl.quality import DQIParameters, largest_emd
from fl.regime import Regime
from fl.tracking import tracked
from scenarios.build import Shelf
from scenarios.calibration.figures import draw_dqi, figure_name
from scenarios.file.schema import Scenario

_COLUMNS = (
    "dataset", "images", "model", "epochs", "batch_size", "learning_rate", "momentum", "seed",
    "data_size", "wanted_emd", "repetition", "emd", "accuracy",
)  # fmt: skip
_KEYS = len(_COLUMNS) - 2

POOR = 0.8  # R^2 of the means over repetitions below which eq. (6) does not describe what was measured


@dataclass(frozen=True, slots=True)
class DQIPlan:
    """How many experiments there are, and how long each trains."""

    epochs: int = 50  # passes of a new network over its data set
    repetitions: int = 10  # experiments with each (D, EMD); each has other images and another initial network
    seed: int = 0  # the seed of all draws
    workers: int = 1  # training threads; the results do not depend on them


@dataclass(frozen=True, slots=True)
class DQIResult:
    """The fit of one data set, and how good it is."""

    fit: Fit
    quality: Quality


def calibrate_dqi(
    scenario: Scenario, out: Path, plan: DQIPlan, shelf: Shelf, report: Callable[[str], None]
) -> list[DQIResult]:
    """Measure, fit, and write ``dqi-points.csv``, ``dqi.json``, ``dqi.md`` and a figure for each data set into ``out``.

    Points are written as they are measured; those that are already there are not measured again. The parameters also
    go into the user's own fits (``fl.fitted.own_folder``), where scenarios find them. ``report`` gets lines about the
    progress.
    """
    results = []
    log = PointLog(out / "dqi-points.csv")
    for name in sorted({service.dataset for service in scenario.services}):
        dataset = shelf.get(name)
        points = _measure(scenario, dataset, plan, log, report)
        parameters = rounded(fit(points))
        found = quality(points, parameters)
        result = DQIResult(
            Fit(
                kind="dqi",
                dataset=name,
                regime=_regime(scenario, name, plan),
                parameters=asdict(parameters),
                quality={key: round(value, 4) for key, value in asdict(found).items()},
                source={
                    "command": "flmarket calibrate dqi",
                    "scenario": scenario.name,
                    "repetitions": plan.repetitions,
                    "seed": plan.seed,
                    "official": dataset.official,
                },
            ),
            found,
        )
        draw_dqi(out / figure_name("dqi", name), name, points, parameters)
        add(out / "dqi.json", [result.fit])
        add(own_folder() / "dqi.json", [result.fit])
        report(f"{name}: R^2 {found.r2:.3f} ({found.r2_means:.3f} of the means), worst mean off by {found.worst:.3f}")
        if found.r2_means < POOR:
            report(
                f"{name}: warning: a poor fit: R^2 of the means is {found.r2_means:.2f}, below {POOR}; "
                "train for more --epochs, or measure more --repetitions, before you rely on it"
            )
        results.append(result)
    _replace(out / "dqi.md", table(results))
    return results


def table(results: Sequence[DQIResult]) -> str:
    """Return the parameters and their quality as a Markdown table."""
    names = list(DQIParameters.__dataclass_fields__)
    lines = [
        f"| data set | {' | '.join(names)} | points | R² | R² of means | RMSE | worst mean | repetitions' sd |",
        "|---" * (len(names) + 7) + "|",
    ]
    for result in results:
        found = result.quality
        values = " | ".join(f"{result.fit.parameters[name]:.4g}" for name in names)
        lines.append(
            f"| {result.fit.dataset} | {values} | {found.points} | {found.r2:.3f} | {found.r2_means:.3f} "
            f"| {found.rmse:.3f} | {found.worst:.3f} | {found.scatter:.3f} |"
        )
    return "\n".join(lines) + "\n"


class PointLog:
    """The measured points, one CSV row each; a row holds all that its point depends on."""

    def __init__(self, path: Path) -> None:
        """Read the points that the file holds; make the file if there is none."""
        self._path = path
        self.known: dict[tuple[str, ...], Point] = {}  # the points, by the columns before the outcome
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                _replace(path, ",".join(_COLUMNS) + "\n")
            # A line that a kill cut off would swallow the next one.
            text = path.read_text(encoding="utf-8")
            whole = text[: text.rfind("\n") + 1]
            if whole != text:
                _replace(path, whole)
        except (OSError, UnicodeError) as error:
            raise InputError(f"{path}: cannot be used: {error}; choose another --out") from error
        rows = list(csv.reader(whole.splitlines()))
        if not rows or tuple(rows[0]) != _COLUMNS:
            raise InputError(f"{path}: does not hold calibration points; choose another --out")
        for row in rows[1:]:
            try:
                self.known[tuple(row[:_KEYS])] = Point(int(row[8]), float(row[11]), float(row[12]))
            except (ValueError, IndexError) as error:
                raise InputError(
                    f"{path}: {','.join(row)!r} is not a calibration point; choose another --out"
                ) from error

    def append(self, key: tuple[str, ...], point: Point) -> None:
        """Add a point to the file."""
        # What is kept is what is written: a fit is the same whether its points were measured or read.
        self.known[key] = replace(point, accuracy=round(point.accuracy, 6))
        try:
            with self._path.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow([*key, repr(point.emd), f"{point.accuracy:.6f}"])
        except OSError as error:
            raise WriteError(self._path, error) from error


def _replace(path: Path, text: str) -> None:
    with replacing_text(path) as file:
        file.write(text)


def _measure(
    scenario: Scenario, dataset: Dataset, plan: DQIPlan, log: PointLog, report: Callable[[str], None]
) -> list[Point]:
    """Return the points of all experiments on one data set, measuring those that the log lacks."""
    name = dataset.info.name
    regime = _regime(scenario, name, plan)
    how = (
        name, _images(dataset), regime.model, str(plan.epochs), str(regime.batch_size),
        repr(regime.learning_rate), repr(regime.momentum), str(plan.seed),
    )  # fmt: skip
    # Label mixes have EMDs from 0 to the largest one.
    emds = scenario.clients.emd or np.linspace(0.0, largest_emd(dataset.info.labels), 6).tolist()
    experiments = grid(scenario.clients.data_size, emds, dataset, plan.repetitions)
    keys = [(*how, str(it.size), repr(it.emd), str(it.repetition)) for it in experiments]
    missing = [(key, it) for key, it in zip(keys, experiments, strict=True) if key not in log.known]
    report(f"{name}: {len(experiments)} experiments of {plan.epochs} epochs, {len(missing)} to do")

    def run(experiment: Experiment) -> Point:
        return measure(dataset, experiment, regime, plan.seed, scenario.training.kernel)

    for (key, _), point in zip(tracked(missing, name), _map(run, missing, plan.workers), strict=True):
        log.append(key, point)
    return [log.known[key] for key in keys]


def _regime(scenario: Scenario, name: str, plan: DQIPlan) -> Regime:
    """Return the regime of a data set's experiments: that of the scenario's clients, but longer."""
    return replace(scenario.training_for(name), local_epochs=plan.epochs)


def _images(dataset: Dataset) -> str:
    """Return eight digits that tell a data set's images from those of another one with the same name."""
    return hashlib.sha256(repr(sorted(dataset.digests.items())).encode()).hexdigest()[:8]


def _map(
    run: Callable[[Experiment], Point], tasks: Sequence[tuple[object, Experiment]], workers: int
) -> Iterator[Point]:
    with ThreadPoolExecutor(max(1, workers)) as pool:
        futures = [pool.submit(run, experiment) for _, experiment in tasks]
        try:
            for future in futures:
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
