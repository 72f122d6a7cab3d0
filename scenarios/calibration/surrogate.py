"""``flmarket calibrate surrogate``: traces of real training, the fit of the learning curves, and its test."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fl.arrays import FloatArray
from fl.calibration.curve_fit import EARLY_ROUNDS, RecordedRun, fit, follow
from fl.surrogate.fitted import Fit, FitError, add, dqi_fit, own_folder
from fl.surrogate.learning_curves import Curve
from fl.training.aggregator import FEDAVG
from flmarket.core.errors import InputError
from flmarket.core.files import asked_for
from learning.statistics import RoundsToTarget
from scenarios.build import Shelf
from scenarios.calibration.figures import draw_surrogate, figure_name
from scenarios.calibration.traces import EXPLORER, stripped, traces
from scenarios.file.schema import Scenario

HELD_OUT: Mapping[str, tuple[str, str]] = {
    "d-first": ("d-first", "published"),
    "hqfa, fitted DQI": ("hqfa", "fitted"),
    "hqfa, published DQI": ("hqfa", "published"),
    "random": ("random", "published"),
    "greedy": ("greedy", "published"),
    "lcfa": ("lcfa", "published"),
    "oort": ("oort", "published"),
    "pacing": ("pacing", "published"),
    "ucb": ("ucb", "published"),
}
"""The policies of the test, which the curves are not fitted to, with the DQI they see."""

_NOISY_RUNS = 20


class HeldOutPolicy(NamedTuple):
    """One held-out policy on one data set, means over its seeds."""

    policy: str
    real: float  # mean accuracy over the rounds (AUC) of real training
    surrogate: float  # the same of the surrogate, over noisy runs on the same selections
    error: float  # mean absolute difference between a real run and the noise-free curve, after round 10
    # restricted mean of the rounds to the scenario's target (``learning.statistics``), on either side
    real_rounds: float
    surrogate_rounds: float
    real_curve: FloatArray  # [rounds] mean accuracies of real training
    surrogate_curve: FloatArray  # [rounds] of the surrogate


def calibrate_surrogate(
    scenario: Scenario,
    out: Path,
    shelf: Shelf,
    report: Callable[[str], None],  # gets lines about the progress
    *,
    runs: int,  # exploring runs to fit to
    held_out: int,  # runs of each held-out policy
) -> None:
    """Train, fit, test, and write ``surrogate.json``, ``surrogate.md`` and a figure for each data set into ``out``.

    Traces are kept in ``out/traces`` as runs finish; those that are already there are not trained again. The curves
    also go into the user's own folder, where scenarios find them.
    """
    if scenario.training.aggregation.given:
        raise InputError(
            f"training.aggregation: a surrogate's curves are those of {FEDAVG}, not of "
            f"{scenario.training.aggregation}; remove it to calibrate"
        )
    if dishonest := [group.name for group in scenario.clients.groups if group.conduct]:
        raise InputError(
            f"clients.groups: a surrogate's curves are those of honest training, not of {', '.join(dishonest)}; "
            "remove what these groups do other than it to calibrate"
        )
    base = stripped(scenario)

    def played(policy: str, dqi: str, seeds: Iterable[int]) -> list[dict[str, RecordedRun]]:
        found = []
        for seed in seeds:
            found.append(traces(base, policy, dqi, seed, out / "traces", shelf))
            accuracies = ", ".join(f"{name} {trace.accuracies[-1]:.4f}" for name, trace in found[-1].items())
            report(f"{policy} ({dqi} DQI), run {len(found)}: {accuracies}")
        return found

    explored = played(EXPLORER, "published", range(runs))
    tested: dict[str, list[dict[str, RecordedRun]]] = {}
    for label, (policy, dqi) in HELD_OUT.items():
        if dqi == "fitted" and not _has_dqi(base):
            report(f"{label}: left out; there is no fit of eq. (6) yet: flmarket calibrate dqi")
            continue
        # Other seeds than the exploring runs have: the worlds and initial models are new, too.
        tested[label] = played(policy, dqi, range(1000, 1000 + held_out))
    lines = [
        f"| data set | held-out policy | AUC real | AUC surrogate | MAE after round {EARLY_ROUNDS} "
        "| rounds to target, real | surrogate |\n",
        "|---|---|---|---|---|---|---|\n",
    ]
    for service in base.services:
        name = service.dataset
        fitted = fit([run[name] for run in explored]).parameters()
        curve = Curve.of({key: float(f"{value:.6g}") for key, value in fitted.items()})
        rows = [
            compare(label, curve, [run[name] for run in same], service.target_accuracy)
            for label, same in tested.items()
        ]
        order, error = summary(rows)
        source = {
            "command": "flmarket calibrate surrogate",
            "scenario": scenario.name,
            "runs": runs,
            "held_out": list(tested),
            "seeds": held_out,
            "official": shelf.get(name).official,
            "images": shelf.get(name).digest,
        }
        known = {"spearman": _known(order), "mae_after_round_10": _known(error)}
        made = Fit("surrogate", name, base.training_for(name), curve.parameters(), known, source)
        for folder in (out, own_folder()):
            add(folder / "surrogate.json", made)
        curves = {row.policy: (row.real_curve, row.surrogate_curve) for row in rows}
        draw_surrogate(out / figure_name("surrogate", name), name, curves, service.target_accuracy)
        found = f"Spearman {_shown(order, 3)} over {len(rows)} policies, MAE {_shown(error)} after round {EARLY_ROUNDS}"
        report(f"{name}: {found}")
        lines += table(name, rows)
    with asked_for(out / "surrogate.md") as file:
        file.writelines(lines)


def compare(policy: str, curve: Curve, traces: Sequence[RecordedRun], target: float) -> HeldOutPolicy:
    """Return how a curve follows the runs of one policy."""
    real = np.array([trace.accuracies for trace in traces])
    quiet = np.array([follow(curve, trace) for trace in traces])
    noisy = np.array([follow(curve, trace, seed) for seed in range(_NOISY_RUNS) for trace in traces])
    return HeldOutPolicy(
        policy=policy,
        real=float(real.mean()),
        surrogate=float(noisy.mean()),
        error=float(np.abs(real - quiet)[:, EARLY_ROUNDS:].mean()) if real.shape[1] > EARLY_ROUNDS else float("nan"),
        real_rounds=RoundsToTarget.of_curves(real, target).mean(),
        surrogate_rounds=RoundsToTarget.of_curves(noisy, target).mean(),
        real_curve=real.mean(axis=0),
        surrogate_curve=noisy.mean(axis=0),
    )


def summary(rows: Sequence[HeldOutPolicy]) -> tuple[float, float]:
    """Return the rank correlation (Spearman) of real and surrogate AUCs over policies, and the mean error.

    The correlation is NaN where all policies do the same, as on a data set that any of them learns in a round.
    """
    from scipy.stats import spearmanr

    real, surrogate = [row.real for row in rows], [row.surrogate for row in rows]
    order = 1.0
    if len(rows) > 1:
        same = len(set(real)) == 1 or len(set(surrogate)) == 1
        order = float("nan") if same else float(spearmanr(real, surrogate).statistic)
    return order, float(np.mean([row.error for row in rows])) if rows else float("nan")


def table(name: str, rows: Sequence[HeldOutPolicy]) -> list[str]:
    """Return a data set's lines of the table; a dash stands where there is no measure."""
    order, error = summary(rows)
    lines = [
        f"| {name} | {row.policy} | {row.real:.4f} | {row.surrogate:.4f} | {_shown(row.error)} "
        f"| {row.real_rounds:.1f} | {row.surrogate_rounds:.1f} |\n"
        for row in rows
    ]
    return [*lines, f"| **{name}** | Spearman **{_shown(order, 3)}** | | | **{_shown(error)}** | | |\n"]


def _known(measure: float) -> float | None:
    """Return a measure with four digits; None where there is none, for which JSON has no number."""
    return None if np.isnan(measure) else round(measure, 4)


def _shown(measure: float, digits: int = 4) -> str:
    return "-" if np.isnan(measure) else f"{measure:.{digits}f}"


def _has_dqi(scenario: Scenario) -> bool:
    try:
        for service in scenario.services:
            dqi_fit(service.dataset)
    except FitError:
        return False
    return True
