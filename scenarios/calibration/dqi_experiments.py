"""``flmarket calibrate dqi``: experiments for each data set of a scenario, the fit of eq. (6), a table and figures."""

import csv
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from fl.calibration.dqi_fit import Experiment, Point, fit, grid, measure, quality, rounded
from fl.data.emd import largest_emd
from fl.data.registry import Dataset
from fl.surrogate.fitted import Fit, add, own_folder
from fl.training.regime import Regime
from flmarket.core.errors import InputError
from flmarket.core.files import WriteError, asked_for
from flmarket.core.installation import usable_cores
from flmarket.core.tracking import tracked
from scenarios.build import Shelf, datasets_of
from scenarios.calibration.figures import draw_dqi, figure_name
from scenarios.file.schema import Scenario

_COLUMNS = (
    "dataset", "images", "model", "epochs", "batch_size", "learning_rate", "momentum",
    "data_size", "wanted_emd", "repetition", "emd", "accuracy",
)  # fmt: skip
_KEYS = len(_COLUMNS) - 2

_SEED = 0  # of all draws
POOR = 0.8  # R^2 of the means over repetitions below which eq. (6) does not describe what was measured


def calibrate_dqi(
    scenario: Scenario,
    out: Path,
    shelf: Shelf,
    report: Callable[[str], None],  # gets lines about the progress
    *,
    epochs: int,  # passes of each new network over its data set
    repetitions: int,  # experiments with each (D, EMD); each has other images and another initial network
) -> None:
    """Measure, fit, and write ``dqi-points.csv``, ``dqi.json``, ``dqi.md`` and a figure for each data set into ``out``.

    Points are written as they are measured; those that are already there are not measured again. The fits also go into
    the user's own folder, where scenarios find them.
    """
    log = PointLog(out / "dqi-points.csv")
    rows = []
    for name in datasets_of(scenario):
        dataset = shelf.get(name)
        regime = replace(scenario.training_for(name), local_epochs=epochs)
        points = _measure(scenario, dataset, regime, repetitions, log, report)
        parameters = rounded(fit(points))
        found = quality(points, parameters)
        source = {
            "command": "flmarket calibrate dqi",
            "scenario": scenario.name,
            "repetitions": repetitions,
            "official": dataset.official,
            "images": dataset.digest,
        }
        shortened = {key: round(value, 4) for key, value in found.items()}
        made = Fit("dqi", name, regime, asdict(parameters), shortened, source)
        draw_dqi(out / figure_name("dqi", name), name, points, parameters)
        for folder in (out, own_folder()):
            add(folder / "dqi.json", made)
        report(f"{name}: R^2 {found['r2']:.3f} ({found['r2_means']:.3f} of the means), worst {found['worst']:.3f} off")
        if found["r2_means"] < POOR:
            report(
                f"{name}: warning: a poor fit: R^2 of the means is {found['r2_means']:.2f}, below {POOR}; "
                "train for more epochs, or measure more repetitions, before you rely on it"
            )
        values = " | ".join(f"{value:.4g}" for value in made.parameters.values())
        rows.append(
            f"| {name} | {values} | {found['points']} | {found['r2']:.3f} | {found['r2_means']:.3f} "
            f"| {found['rmse']:.3f} | {found['worst']:.3f} | {found['scatter']:.3f} |\n"
        )
    columns = ["data set", *made.parameters, "points", "R²", "R² of means", "RMSE", "worst mean", "repetitions' sd"]
    with asked_for(out / "dqi.md") as file:
        file.writelines([f"| {' | '.join(columns)} |\n", "|---" * len(columns) + "|\n", *rows])


class PointLog:
    """The measured points, one CSV row each; a row holds all that its point depends on."""

    def __init__(self, path: Path) -> None:
        """Read the points that the file holds; make the file if there is none."""
        self._path = path
        self.known: dict[tuple[str, ...], Point] = {}  # the points, by the columns before the outcome
        header = ",".join(_COLUMNS) + "\n"
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else header
            if not text.startswith(header):
                raise ValueError("it does not hold calibration points")  # noqa: TRY301
            whole = text[: text.rfind("\n") + 1]
            for row in list(csv.reader(whole.splitlines()))[1:]:
                self.known[tuple(row[:_KEYS])] = Point(int(row[7]), float(row[10]), float(row[11]))
        except (OSError, ValueError, IndexError) as error:
            raise InputError(f"{path}: cannot be used: {error}; choose another folder") from error
        if whole != text or not path.exists():  # a line that a kill cut off would swallow the next one
            with asked_for(path) as file:
                file.write(whole)

    def append(self, key: tuple[str, ...], point: Point) -> None:
        """Add a point to the file."""
        # What is kept is what is written: a fit is the same whether its points were measured or read.
        self.known[key] = point._replace(accuracy=round(point.accuracy, 6))
        try:
            with self._path.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow([*key, repr(point.emd), f"{point.accuracy:.6f}"])
        except OSError as error:
            raise WriteError(self._path, error) from error


def _measure(
    scenario: Scenario,
    dataset: Dataset,
    regime: Regime,
    repetitions: int,
    log: PointLog,
    report: Callable[[str], None],
) -> Sequence[Point]:
    """Return the points of all experiments on one data set, measuring those that the log lacks."""
    name = dataset.info.name
    how = (
        name, dataset.digest, regime.model, str(regime.local_epochs), str(regime.batch_size),
        repr(regime.learning_rate), repr(regime.momentum),
    )  # fmt: skip
    # Label mixes have EMDs from 0 to the largest one.
    kinds = [it for _, it in scenario.clients.kinds()]
    sizes, listed = (dict.fromkeys(value for it in kinds for value in getattr(it, key)) for key in ("data_size", "emd"))
    emds = [*listed] or np.linspace(0.0, largest_emd(dataset.info.labels), 6).tolist()
    experiments: dict[tuple[str, ...], Experiment] = {
        (*how, str(it.size), repr(it.emd), str(it.repetition)): it for it in grid([*sizes], emds, dataset, repetitions)
    }
    missing = [key for key in experiments if key not in log.known]
    report(f"{name}: {len(experiments)} experiments of {regime.local_epochs} epochs, {len(missing)} to do")

    def run(key: tuple[str, ...]) -> Point:
        return measure(dataset, experiments[key], regime, _SEED, scenario.training.kernel)

    pool = ThreadPoolExecutor(usable_cores())
    try:
        for key, point in zip(tracked(missing, name), pool.map(run, missing), strict=True):
            log.append(key, point)
    finally:
        pool.shutdown(cancel_futures=True)
    return [log.known[key] for key in experiments]
