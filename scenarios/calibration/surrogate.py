"""``flmarket calibrate surrogate``: traces of real training, the fit of the learning curves, and its test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fl.arrays import FloatArray
from fl.calibrate_surrogate import EARLY_ROUNDS, fit, follow
from fl.files import replacing_text
from fl.fitted import Fit, FitError, add, dqi_fit, own_folder
from fl.surrogate import Curve
from fl.traces import Trace
from learning.targets import RoundsToTarget
from scenarios.build import Shelf
from scenarios.calibration.figures import draw_surrogate, figure_name
from scenarios.calibration.traces import explore, held_out, stripped
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


@dataclass(frozen=True, slots=True)
class SurrogatePlan:
    """How much to measure."""

    runs: int = 24  # exploring runs to fit to
    seeds: int = 3  # runs of each held-out policy
    workers: int = 1  # training threads; the results do not depend on them


@dataclass(frozen=True, slots=True)
class Comparison:
    """One held-out policy on one data set, means over its seeds."""

    dataset: str
    policy: str
    real: float  # mean accuracy over the rounds (AUC) of real training
    surrogate: float  # the same of the surrogate, over noisy runs on the same selections
    error: float  # mean absolute difference between a real run and the noise-free curve, after round 10
    real_rounds: float  # restricted mean of the rounds to the scenario's target (``learning.targets``), on either side
    surrogate_rounds: float
    real_curve: FloatArray  # [rounds] mean accuracies of real training
    surrogate_curve: FloatArray  # [rounds] of the surrogate


def calibrate_surrogate(
    scenario: Scenario, out: Path, plan: SurrogatePlan, shelf: Shelf, report: Callable[[str], None]
) -> list[Comparison]:
    """Train, fit, test, and write ``surrogate.json``, ``surrogate.md`` and a figure for each data set into ``out``.

    Traces are kept in ``out/traces`` as runs finish; those that are already there are not trained again. The curves
    also go into the user's own fits (``fl.fitted.own_folder``), where scenarios find them. ``report`` gets lines about
    the progress.
    """
    base, folder = stripped(scenario), out / "traces"
    explored = []
    for seed in range(plan.runs):
        explored.append(explore(base, seed, folder, shelf, plan.workers))
        report(f"exploring run {seed + 1} of {plan.runs}: {_accuracies(explored[-1])}")
    tested: dict[str, list[dict[str, Trace]]] = {}
    for label, (policy, dqi) in HELD_OUT.items():
        if dqi == "fitted" and not _has_dqi(base):
            report(f"{label}: left out; there is no fit of eq. (6) yet: flmarket calibrate dqi")
            continue
        # Other seeds than the exploring runs have: the worlds and initial models are new, too.
        seeds = range(1000, 1000 + plan.seeds)
        tested[label] = [held_out(base, policy, dqi, seed, folder, shelf, plan.workers) for seed in seeds]
        report(f"held out: {label}: {_accuracies(tested[label][-1])}")
    comparisons = []
    for service in base.services:
        name = service.dataset
        traces = [run[name] for run in explored]
        curve = Curve.of({key: float(f"{value:.6g}") for key, value in fit(traces).parameters().items()})
        rows = [
            compare(name, label, curve, [run[name] for run in runs], service.target_accuracy)
            for label, runs in tested.items()
        ]
        order, error = summary(rows)
        entry = Fit(
            kind="surrogate",
            dataset=name,
            regime=base.training_for(name),
            parameters=curve.parameters(),
            quality={"spearman": _known(order), "mae_after_round_10": _known(error)},
            source={
                "command": "flmarket calibrate surrogate",
                "scenario": scenario.name,
                "runs": plan.runs,
                "held_out": list(tested),
                "seeds": plan.seeds,
                "official": shelf.get(name).official,
            },
        )
        add(out / "surrogate.json", [entry])
        add(own_folder() / "surrogate.json", [entry])
        curves = {row.policy: (row.real_curve, row.surrogate_curve) for row in rows}
        draw_surrogate(out / figure_name("surrogate", name), name, curves, service.target_accuracy)
        report(f"{name}: Spearman {order:.3f} over {len(rows)} policies, MAE {error:.4f} after round {EARLY_ROUNDS}")
        comparisons += rows
    with replacing_text(out / "surrogate.md") as file:
        file.write(table(comparisons))
    return comparisons


def compare(dataset: str, policy: str, curve: Curve, traces: Sequence[Trace], target: float) -> Comparison:
    """Return how a curve follows the runs of one policy."""
    real = np.array([trace.accuracies for trace in traces])
    quiet = np.array([follow(curve, trace) for trace in traces])
    noisy = np.array([follow(curve, trace, seed) for seed in range(_NOISY_RUNS) for trace in traces])
    return Comparison(
        dataset=dataset,
        policy=policy,
        real=float(real.mean()),
        surrogate=float(noisy.mean()),
        error=float(np.abs(real - quiet)[:, EARLY_ROUNDS:].mean()) if real.shape[1] > EARLY_ROUNDS else float("nan"),
        real_rounds=RoundsToTarget.of_curves(real, target).mean(),
        surrogate_rounds=RoundsToTarget.of_curves(noisy, target).mean(),
        real_curve=real.mean(axis=0),
        surrogate_curve=noisy.mean(axis=0),
    )


def summary(rows: Sequence[Comparison]) -> tuple[float, float]:
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


def table(rows: Sequence[Comparison]) -> str:
    """Return all comparisons as a Markdown table, with a line that sums up each data set."""
    lines = [
        f"| data set | held-out policy | AUC real | AUC surrogate | MAE after round {EARLY_ROUNDS} "
        "| rounds to target, real | surrogate |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row.dataset for row in rows):
        own = [row for row in rows if row.dataset == name]
        for row in own:
            lines.append(
                f"| {name} | {row.policy} | {row.real:.4f} | {row.surrogate:.4f} | {row.error:.4f} "
                f"| {row.real_rounds:.1f} | {row.surrogate_rounds:.1f} |"
            )
        order, error = summary(own)
        lines.append(f"| **{name}** | Spearman **{order:.3f}** | | | **{error:.4f}** | | |")
    return "\n".join(lines) + "\n"


def _known(measure: float) -> float | None:
    """Return a measure with four digits; None where there is none, for which JSON has no number."""
    return None if np.isnan(measure) else round(measure, 4)


def _has_dqi(scenario: Scenario) -> bool:
    try:
        for service in scenario.services:
            dqi_fit(service.dataset)
    except FitError:
        return False
    return True


def _accuracies(traces: Mapping[str, Trace]) -> str:
    return ", ".join(f"{name} {trace.accuracies[-1]:.4f}" for name, trace in traces.items())
