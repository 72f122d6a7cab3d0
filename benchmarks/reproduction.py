r"""The tables and the curves of docs/reproduction.md: what runs of the paper's Fig. 2 and Fig. 3 come to.

    python benchmarks/reproduction.py collect fig2 fig3a fig3a-mnist fig3a-fashion fig3b
    python benchmarks/reproduction.py table
    python benchmarks/reproduction.py figure fig2

`collect` reads the runs that the commands of the page made, and writes one line for each service of each run, by its
accuracy on the test images. Then it prints what is on the page, as `table` does. `figure` keeps the accuracy after each
round of the policies in ``SHOWN``, and draws Fig. 2 (b) to (d); without runs it draws what was kept. Intervals are 95 %
t intervals over the market seeds; where an agent was trained several times, training seeds are crossed with them
(`learning.intervals`). Differences are paired by seed, and their p-values adjusted by Holm's method within each table.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pandas as pd
from mahdrl_table import matrix

from learning.intervals import Interval, holm, mean_band, mean_interval, paired_interval
from scenarios.judging.drawing import Figure, images
from scenarios.judging.results import RunResult, read
from scenarios.judging.styles import style

COLUMNS = ["sweep", "value", "entrant", "training_seed", "market_seed", "service", "auc", "final", "rounds", "reached"]
SHIPPED = {"mahdrl": 4}
"""The training seed of the agent that comes with flmarket, whose sisters are in docs/results/suite/agents."""
SERVICES = ("mnist", "fashion-mnist", "emnist")
ALL = "all three"
AGAINST = ("random", "dearest")
"""The policies that the others are compared with: the paper's baseline, and one line that needs no learning."""
OWN = {f"services.{name}.budget": name for name in SERVICES} | {"clients.cores": "mnist"}
"""Sweeps of Fig. 3, and the service whose results the paper shows."""
SHOWN = {
    "mahdrl": "mahdrl (ours)", "mahdrl-paper": "mahdrl-paper (Algorithm 1)", "random": "Random", "hqfa": "HQFA",
    "lcfa": "LCFA",
}  # fmt: skip
"""The policies of the figure, and their labels: the paper's four, and ``mahdrl``."""
PANELS = {"(b) fashion-mnist": 85, "(c) emnist": 97, "(d) mnist": 97}
"""The figure's panels, and the target accuracies of the scenario ``paper``, in %."""
MEASURES = {
    "auc": ("AUC, %", 2), "final": ("accuracy after the last round, %", 2), "rounds": ("rounds to target", 1),
}  # fmt: skip
"""Measures of Fig. 2, and the digits that they are told with."""
KEYS = ["entrant", "market_seed", "service"]
CURVES = Path("docs/results/reproduction-curves.csv")
PICTURE = Path("docs/reproduction/fig2bcd-accuracy.svg")


def collected(runs: Sequence[RunResult]) -> pd.DataFrame:
    """Return a line for each service of each run."""
    rows = []
    for run in runs:
        ((sweep, value),) = run.setting.sweep.items() or [("", "")]
        entrant, training = _entrant(run.policy)
        area, final = 100 * run.reported.mean(axis=0), 100 * run.reported[-1]
        rows += [
            (sweep, value, entrant, training, run.seed, name, f"{area[m]:.4f}", f"{final[m]:.2f}",
             int(run.to_target.rounds[m]), int(run.to_target.reached[m]))
            for m, name in enumerate(run.setting.services)
        ]  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS).sort_values(COLUMNS[:6], key=lambda column: column.astype(str))


def _entrant(policy: str) -> tuple[str, str]:
    """Return the name and the training seed of a policy: its file's, if it plays a checkpoint."""
    found = re.fullmatch(r"(?P<policy>[^@:]+)@(?P<file>.+)-seed(?P<seed>\d+)-[0-9a-f]{8}", policy)
    if found is None:
        return policy, str(SHIPPED.get(policy, ""))
    name = found["policy"] if found["file"] == found["policy"] else f"{found['policy']}, {found['file']}"
    return name, found["seed"]


def curves(runs: Sequence[RunResult]) -> pd.DataFrame:
    """Return a line for each service of each run that is shown: its accuracy after each round, in %."""
    rows = [
        (run.policy, run.seed, name, *(f"{100 * value:.2f}" for value in run.reported[:, m]))
        for run in runs
        for m, name in enumerate(run.setting.services)
        if run.policy in SHOWN and not run.setting.sweep
    ]
    rounds = [str(n) for n in range(1, len(rows[0]) - 2)]
    return pd.DataFrame(rows, columns=[*KEYS, *rounds]).sort_values(KEYS)


def figure(frame: pd.DataFrame) -> Any:
    """Return Fig. 2 (b) to (d) as a matplotlib figure."""
    import matplotlib.figure

    picture = matplotlib.figure.Figure(figsize=(9, 3.3), layout="constrained")
    for panel, (title, target) in zip(picture.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        for index, (name, label) in enumerate(SHOWN.items()):
            own = (frame.entrant == name) & (frame.service == title.split()[-1])
            rows = frame[own].drop(columns=KEYS)
            mean, low, high = mean_band(rows)
            rounds = rows.columns.astype(int)
            panel.plot(rounds, mean, label=label, linewidth=1.6, **style(index))
            panel.fill_between(rounds, low, high, color=style(index)["color"], alpha=0.2, linewidth=0)
        panel.axhline(target, color="black", linestyle=(0, (6, 4)), linewidth=0.8)
        panel.annotate(f"target {target} %", (80, target), (0, 2), textcoords="offset points", ha="right", va="bottom")
        panel.set(title=title, xlabel="round", xlim=(1, 80), ylim=(target - 32, target + 3))
    picture.axes[0].set_ylabel("test accuracy, %")
    picture.legend(*picture.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(SHOWN))
    return picture


def policies(frame: pd.DataFrame) -> str:
    """Return the tables of Fig. 2: what each policy reaches, and how far it is from those in ``AGAINST``."""
    parts: Mapping[str, pd.DataFrame] = {ALL: frame} | {name: frame[frame.service == name] for name in SERVICES}
    rows_of = {
        part: {str(name): own for name, own in rows.groupby("entrant", sort=False)} for part, rows in parts.items()
    }
    order = sorted(rows_of[ALL], key=lambda name: -rows_of[ALL][name].auc.mean())
    lines = []
    for measure, (label, digits) in MEASURES.items():
        lines += [f"| {label} | n | {' | '.join(parts)} |", "|---" * (len(parts) + 2) + "|"]
        for name in order:
            trainings, markets = matrix(rows_of[ALL][name], measure).shape
            size = f"{trainings} x {markets}" if trainings > 1 else str(markets)
            cells = [_told(rows_of[part][name], measure, digits) for part in parts]
            lines.append(f"| {' | '.join([name, size, *cells])} |")
        lines.append("")
    for base, (measure, (label, digits)) in product(AGAINST, MEASURES.items()):
        tested = [(name, part) for name in order if name != base for part in parts]
        gains = {
            (name, part): paired_interval(matrix(rows_of[part][name], measure), matrix(rows_of[part][base], measure))
            for name, part in tested
        }
        adjusted = dict(zip(tested, holm([gains[key].p for key in tested]), strict=True))
        lines += [f"| {label}, minus {base}'s | {' | '.join(parts)} |", "|---" * (len(parts) + 1) + "|"]
        for name in order:
            if name != base:
                cells = [_gain(gains[name, part], adjusted[name, part], digits) for part in parts]
                lines.append(f"| {' | '.join([name, *cells])} |")
        lines.append("")
    return "\n".join(lines)


def sweeps(frame: pd.DataFrame) -> str:
    """Return the tables of Fig. 3: what the named service reaches with each value, and the values compared."""
    lines = ["| sweep | policy | measure | by value | differences, seed by seed |", "|---" * 5 + "|"]
    for measure, digits in (("auc", 2), ("rounds", 1)):
        table, found = [], []
        for (sweep, entrant), rows in frame.groupby(["sweep", "entrant"]):
            own = rows[rows.service == OWN[str(sweep)]]
            by_value = {float(str(value)): one for value, one in own.groupby("value")}
            values = sorted(by_value)
            pairs = [(more, less) for less, more in pairwise(values)] + [(values[-1], values[0])]
            values_of = {value: matrix(one, measure) for value, one in by_value.items()}
            gains = [paired_interval(values_of[more], values_of[less]) for more, less in pairs]
            shown = ", ".join(f"{value:g}: {_told(by_value[value], measure, digits)}" for value in values)
            table.append((f"{sweep} | {entrant} | {measure} | {shown}", pairs, gains))
            found += [gain.p for gain in gains]
        adjusted = iter(holm(found))
        for start, pairs, gains in table:
            cells = [
                f"{more:g} - {less:g}: {_gain(gain, next(adjusted), digits)}"
                for (more, less), gain in zip(pairs, gains, strict=True)
            ]
            lines.append(f"| {start} | {', '.join(cells)} |")
    return "\n".join(lines)


def _told(rows: pd.DataFrame, measure: str, digits: int) -> str:
    """Return a mean with its interval; that of rounds is restricted where not all runs met the target, and says so."""
    found = mean_interval(matrix(rows, measure))
    ends = f" [{found.low:.{digits}f}, {found.high:.{digits}f}]" if found.known else ""
    met = "" if measure != "rounds" or rows.reached.all() else f" ({int(rows.reached.sum())} of {len(rows)})"
    return f"{'> ' if met else ''}{found.estimate:.{digits}f}{ends}{met}"


def _gain(gain: Interval, adjusted: float, digits: int) -> str:
    ends = f"[{gain.low:+.{digits}f}, {gain.high:+.{digits}f}]"
    return f"{gain.estimate:+.{digits}f} {ends}{'†' if adjusted < 0.05 else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["collect", "table", "figure"])
    parser.add_argument("runs", nargs="*", type=Path, help="folders of runs, to collect or to draw")
    parser.add_argument("--out", type=Path, default=Path("docs/results/reproduction.csv"))
    arguments = parser.parse_args()
    if arguments.what == "collect" and not arguments.runs:
        parser.error("collect: name the folders of the runs")
    # One by one: sweeps of other budgets begin with the same runs.
    runs = [run for folder in arguments.runs for run in read([folder])]
    if arguments.what == "figure":
        if runs:
            curves(runs).to_csv(CURVES, index=False, lineterminator="\n")
        drawn = Figure(PICTURE.stem, "", lambda: figure(pd.read_csv(CURVES)))
        [content] = images(drawn, ["svg"])
        PICTURE.write_bytes(content)
        return
    if arguments.what == "collect":
        collected(runs).to_csv(arguments.out, index=False, lineterminator="\n")
    frame = pd.read_csv(arguments.out, dtype={"value": str})
    print(policies(frame[frame.sweep.isna()]) + "\n" + sweeps(frame[frame.sweep.notna()]))


if __name__ == "__main__":
    main()
