"""The tables and the figures of research/notebook/reproduction.md, from runs of the paper's Fig. 2 and Fig. 3.

python research/reproduction.py collect fig2 fig3a fig3a-mnist fig3a-fashion fig3b fig3-paper
python research/reproduction.py table
python research/reproduction.py figures fig2 fig3-paper [--logs agents/mahdrl-paper-seed*.csv]
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd
from experiment import by_entrant, command_line, interval_text, matrix

from flmarket.analysis.figures.drawing import Figure, images, style
from flmarket.analysis.results.run_results import RunResult, read
from learning.statistics.intervals import Interval, holm, mean_band, mean_interval, paired_interval

COLUMNS = ["sweep", "value", "entrant", "training_seed", "market_seed", "service", "auc", "final", "rounds", "reached"]
SHIPPED = {"mahdrl": 4, "mahdrl-paper": 0}
"""The training seeds of the agents that come with flmarket."""
SERVICES = ("mnist", "fashion-mnist", "emnist")
ALL = "all three"
AGAINST = ("random", "dearest")
"""The policies that the others are compared with: the paper's baseline, and one line that needs no learning."""
PAPERS = ("random", "hqfa", "lcfa")
"""The policies that the paper compares its own with."""
OWN = {f"services.{name}.budget": name for name in SERVICES} | {"clients.cores": "mnist"}
"""Sweeps of Fig. 3, and the service whose results the paper shows."""
SHOWN = {
    "mahdrl-paper": "mahdrl-paper (Algorithm 1)", "random": "Random", "hqfa": "HQFA", "lcfa": "LCFA",
    "mahdrl": "mahdrl (ours)", "dearest": "dearest (one line)",
}  # fmt: skip
"""The policies of Fig. 2, and their labels: the paper's four, and what else one could play."""
PANELS = {"(b) fashion-mnist": 85, "(c) emnist": 97, "(d) mnist": 97}
"""The panels of Fig. 2, and the target accuracies of the scenario ``paper``, in %."""
SWEEPS = {"services.emnist.budget": "(a) emnist, by its budget", "clients.cores": "(b) mnist, by cores K"}
"""The panels of Fig. 3."""
MEASURES = {
    "auc": ("AUC, %", 2), "final": ("accuracy after the last round, %", 2), "rounds": ("rounds to target", 1),
}  # fmt: skip
"""Measures of Fig. 2, and the digits that they are shown with."""
KEYS = ["sweep", "value", "entrant", "training_seed", "market_seed", "service"]
CURVES = Path("research/results/reproduction-curves.csv")
TRAININGS = Path("research/results/mahdrl-paper-trainings.csv")
PICTURES = Path("research/reproduction")


def collected(runs: Sequence[RunResult]) -> pd.DataFrame:
    """Return a line for each service of each run."""
    rows = []
    for run in runs:
        ((sweep, value),) = run.setting.sweep.items() or [("", "")]
        entrant, training = _entrant(run.policy)
        area, final = 100 * run["test_accuracy"].mean(axis=0), 100 * run["test_accuracy"][-1]
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
    """Return a line for each service of each run that is shown: its accuracy after each round, in %.

    Fig. 2 shows the agents that come with flmarket, Fig. 3 all trainings.
    """
    rows = []
    for run in runs:
        ((sweep, value),) = run.setting.sweep.items() or [("", "")]
        entrant, training = _entrant(run.policy)
        if entrant not in SHOWN or not (sweep or training in ("", str(SHIPPED.get(entrant)))):
            continue
        front = sweep, value, entrant, training, run.seed
        accuracy = 100 * run["test_accuracy"]
        rows += [
            (*front, name, *(f"{value:.2f}" for value in accuracy[:, m]))
            for m, name in enumerate(run.setting.services)
            if not sweep or OWN[sweep] == name
        ]
    rounds = [str(n) for n in range(1, len(rows[0]) - len(KEYS) + 1)]
    return pd.DataFrame(rows, columns=[*KEYS, *rounds], dtype=str)


def by_policy(frame: pd.DataFrame) -> Any:
    """Return Fig. 2 (b) to (d) as a matplotlib figure."""
    picture = _figure(9, 3.4)
    for panel, (title, target) in zip(picture.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        own = frame[frame.sweep.isna() & (frame.service == title.split()[-1])]
        for index, (name, label) in enumerate(SHOWN.items()):
            _draw(panel, own[own.entrant == name].drop(columns=KEYS), label, index, (0, 100))
        _finish(panel, title, target)
    picture.axes[0].set_ylabel("test accuracy, %")
    picture.legend(*picture.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return picture


def by_value(frame: pd.DataFrame) -> Any:
    """Return Fig. 3 as a matplotlib figure: Algorithm 1, trained for each value; each training, and their mean."""
    picture = _figure(7, 3.1)
    for panel, (sweep, title) in zip(picture.subplots(1, len(SWEEPS)), SWEEPS.items(), strict=True):
        own = frame[(frame.sweep == sweep) & (frame.entrant == "mahdrl-paper")]
        for index, value in enumerate(sorted(own.value.unique())):
            rows = own[own.value == value].set_index("training_seed").drop(columns=KEYS, errors="ignore")
            trainings = rows.groupby(level=0).mean()
            at, look = trainings.columns.astype(int), style(index)
            panel.plot(at, trainings.mean(), label=f"{value:g}", linewidth=1.6, **look)
            panel.plot(at, trainings.T, linewidth=0.5, alpha=0.6, **look)
        _finish(panel, title, 97)
        panel.legend(loc="lower right")
    picture.axes[0].set_ylabel("test accuracy, %")
    return picture


def by_episode(frame: pd.DataFrame) -> Any:
    """Return how the reward grows over the episodes of trainings, as a matplotlib figure."""
    picture = _figure(6, 3)
    panel = picture.subplots()
    for index, (phase, label) in enumerate((("train", "while it explores"), ("evaluate", "evaluations"))):
        rows = frame[frame.phase == phase].pivot_table("reward", "training_seed", "episode")
        _draw(panel, rows, label, index, (0, inf))
    panel.set(xlabel="episode", ylabel="mean of r / Omega^target", xlim=(1, frame.episode.max()))
    panel.legend(loc="lower right")
    return picture


def _figure(width: float, height: float) -> Any:
    import matplotlib.figure

    return matplotlib.figure.Figure(figsize=(width, height), layout="constrained")


def _draw(panel: Any, rows: pd.DataFrame, label: str, index: int, limits: tuple[float, float]) -> None:
    """Draw the mean of the rows and its interval, within the limits of what is shown."""
    mean, low, high = mean_band(rows, limits)
    at = rows.columns.astype(int)
    panel.plot(at, mean, label=label, linewidth=1.6, **style(index))
    panel.fill_between(at, low, high, color=style(index)["color"], alpha=0.2, linewidth=0)


def _finish(panel: Any, title: str, target: float) -> None:
    """Add the target to a panel of accuracies, and its axes."""
    panel.axhline(target, color="black", linestyle=(0, (6, 4)), linewidth=0.8)
    panel.annotate(f"target {target} %", (80, target), (0, 2), textcoords="offset points", ha="right", va="bottom")
    panel.set(title=title, xlabel="round", xlim=(1, 80), ylim=(target - 32, target + 3))


def policies(frame: pd.DataFrame) -> str:
    """Return the tables of Fig. 2: what each policy reaches, and how far it is from those in ``AGAINST``."""
    rows_of = _by_part(frame)
    order = sorted(rows_of[ALL], key=lambda name: -rows_of[ALL][name].auc.mean())
    lines = []
    for measure, (label, digits) in MEASURES.items():
        lines += [f"| {label} | n | {' | '.join(rows_of)} |", "|---" * (len(rows_of) + 2) + "|"]
        for name in order:
            cells = [_interval_text(rows[name], measure, digits) for rows in rows_of.values()]
            lines.append(f"| {' | '.join([name, _size(matrix(rows_of[ALL][name], measure)), *cells])} |")
        lines.append("")
    for base, (measure, (label, _)) in product(AGAINST, MEASURES.items()):
        others = [name for name in order if name != base]
        lines += [f"| {label}, minus {base}'s | {' | '.join(rows_of)} |", "|---" * (len(rows_of) + 1) + "|"]
        table = _differences(rows_of, [(name, base, measure) for name in others])
        lines += [f"| {' | '.join([name, *cells])} |" for name, cells in zip(others, table, strict=True)]
        lines.append("")
    return "\n".join(lines)


def claim(frame: pd.DataFrame) -> str:
    """Return the table of the paper's claim: Algorithm 1 minus each of the paper's other policies."""
    rows_of = _by_part(frame)
    compared = list(product(["mahdrl-paper"], PAPERS, MEASURES))
    lines = [f"| mahdrl-paper minus | measure | {' | '.join(rows_of)} |", "|---" * (len(rows_of) + 2) + "|"]
    for (_, base, measure), cells in zip(compared, _differences(rows_of, compared), strict=True):
        lines.append(f"| {' | '.join([base, MEASURES[measure][0], *cells])} |")
    return "\n".join([*lines, ""])


def _by_part(frame: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    """Return the rows of each entrant, of all services together and of each."""
    parts = {ALL: frame} | {name: frame[frame.service == name] for name in SERVICES}
    return {part: by_entrant(rows) for part, rows in parts.items()}


# Intervals are 95 % t intervals over the market seeds; where an agent was trained several times, training seeds are
# crossed with them (`learning.statistics.intervals`). Differences are paired by seed; Holm's method adjusts p-values
# within each table.
def _differences(
    rows_of: Mapping[str, Mapping[str, pd.DataFrame]], compared: Sequence[tuple[str, str, str]]
) -> list[list[str]]:
    """Return a row of cells, one for each part, for each (entrant, baseline, measure); Holm's family is all of them."""
    gains = [
        [paired_interval(matrix(rows[name], measure), matrix(rows[base], measure)) for rows in rows_of.values()]
        for name, base, measure in compared
    ]
    adjusted = iter(holm([gain.p for row in gains for gain in row]))
    return [
        [_gain(gain, next(adjusted), MEASURES[measure][1]) for gain in row]
        for row, (*_, measure) in zip(gains, compared, strict=True)
    ]


def _size(found: Any) -> str:
    """Return n of a ``matrix``: trainings x markets, or markets alone."""
    trainings, markets = found.shape
    return f"{trainings} x {markets}" if trainings > 1 else str(markets)


def sweeps(frame: pd.DataFrame) -> str:
    """Return the tables of Fig. 3: what the named service reaches with each value, and the values compared."""
    lines = ["| sweep | policy | n | measure | by value | differences, seed by seed |", "|---" * 6 + "|"]
    for measure, (_, digits) in MEASURES.items():
        table, found = [], []
        for (sweep, entrant), rows in frame.groupby(["sweep", "entrant"]):
            own = rows[rows.service == OWN[str(sweep)]]
            by_value = {float(str(value)): one for value, one in own.groupby("value")}
            values = sorted(by_value)
            pairs = [(more, less) for less, more in pairwise(values)] + [(values[-1], values[0])]
            values_of = {value: matrix(one, measure) for value, one in by_value.items()}
            gains = [paired_interval(values_of[more], values_of[less]) for more, less in pairs]
            shown = ", ".join(f"{value:g}: {_interval_text(by_value[value], measure, digits)}" for value in values)
            table.append((f"{sweep} | {entrant} | {_size(values_of[values[0]])} | {measure} | {shown}", pairs, gains))
            found += [gain.p for gain in gains]
        adjusted = iter(holm(found))
        for start, pairs, gains in table:
            cells = [
                f"{more:g} - {less:g}: {_gain(gain, next(adjusted), digits)}"
                for (more, less), gain in zip(pairs, gains, strict=True)
            ]
            lines.append(f"| {start} | {', '.join(cells)} |")
    return "\n".join(lines)


def _interval_text(rows: pd.DataFrame, measure: str, digits: int) -> str:
    """Return a mean with its interval; that of rounds is restricted where not all runs met the target, and says so."""
    found = mean_interval(matrix(rows, measure))
    ends = f" [{found.low:.{digits}f}, {found.high:.{digits}f}]" if found.known else ""
    met = "" if measure != "rounds" or rows.reached.all() else f" ({int(rows.reached.sum())} of {len(rows)})"
    return f"{'> ' if met else ''}{found.estimate:.{digits}f}{ends}{met}"


def _gain(gain: Interval, adjusted: float, digits: int) -> str:
    return interval_text(gain, digits) + ("†" if adjusted < 0.05 else "")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("what", choices=["collect", "table", "figures"])
    parser.add_argument("runs", nargs="*", type=Path, help="folders of runs, to collect or to draw")
    parser.add_argument("--logs", nargs="*", type=Path, default=[], help="logs of trainings to draw, by seed from 0")
    parser.add_argument("--out", type=Path, default=Path("research/results/reproduction.csv"))
    arguments = parser.parse_args()
    if arguments.what == "collect" and not arguments.runs:
        parser.error("collect: name the folders of the runs")
    # One by one: sweeps of other budgets begin with the same runs.
    runs = [run for folder in arguments.runs for run in read([folder])]
    if arguments.what == "figures":
        draw(runs, arguments.logs)
        return
    if arguments.what == "collect":
        collected(runs).to_csv(arguments.out, index=False, lineterminator="\n")
    frame = pd.read_csv(arguments.out, dtype={"value": str})
    fig2, fig3 = frame[frame.sweep.isna()], frame[frame.sweep.notna()]
    print("\n".join([policies(fig2), claim(fig2), sweeps(fig3)]))


def draw(runs: Sequence[RunResult], logs: Sequence[Path]) -> None:
    """Keep what is new, and draw all figures."""
    if runs:
        frame = pd.concat([curves(runs), pd.read_csv(CURVES, dtype=str, keep_default_na=False)])
        frame = frame.drop_duplicates(KEYS).sort_values(KEYS)
        frame.to_csv(CURVES, index=False, lineterminator="\n")
    if logs:
        read_logs = [pd.read_csv(log).assign(training_seed=seed) for seed, log in enumerate(logs)]
        columns = ["training_seed", "episode", "phase", "reward", "auc", "markup"]
        pd.concat(read_logs)[columns].to_csv(TRAININGS, index=False, lineterminator="\n")
    for name, picture, kept in (
        ("fig2bcd-accuracy", by_policy, CURVES), ("fig3-accuracy", by_value, CURVES),
        ("training-reward", by_episode, TRAININGS),
    ):  # fmt: skip
        [content] = images(Figure(name, "", partial(picture, pd.read_csv(kept))), ["svg"])
        (PICTURES / f"{name}.svg").write_bytes(content)


if __name__ == "__main__":
    main()
