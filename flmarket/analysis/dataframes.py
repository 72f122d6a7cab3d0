"""Complete runs as data frames: what a notebook or a script works with."""

import math
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from flmarket.analysis.figures.report_figures import curves
from flmarket.analysis.log_frames import TableName, having, in_units, read_table
from flmarket.analysis.results.export import identities, with_identity
from flmarket.analysis.results.measures import report_measures
from flmarket.analysis.results.report import Report, make_report
from flmarket.analysis.results.run_results import RunResult, compared_by, mixed, read
from flmarket.core.errors import InputError
from flmarket.core.text import counted
from scenarios.logs.finding import find_runs, incomplete, unfinished

LINE = 120
"""Characters of a line in which a summary shows itself as text."""


class Summary(pd.DataFrame):
    """A table that shows all of its columns, in several blocks where they are too wide for one."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        """The class of a selection of columns or rows."""
        return Summary

    def __repr__(self) -> str:
        return self.to_string(float_format="{:.4g}".format, line_width=LINE)


class Results:
    """The results of complete runs. Logs are read when they are first asked for, and kept.

    ``rounds``, ``offers``, ``events``, ``clients``, ``responses`` and ``models`` hold the runs' logs (docs/logs.md),
    with the columns ``scenario``, ``policy`` and ``seed`` in front and one more for each key that was swept or in which
    scenarios of one name differ, NaN for other scenarios. Where a scenario has groups of clients, ``group`` follows
    ``client``, empty for clients of none. In ``rounds``, ``service_policy`` is the policy of the service, and
    ``policy`` that of the run.

    ``failed`` says of each run below the sources that has no results why: it failed, or has not ended or begun.
    """

    def __init__(self, sources: Sequence[Path | str]) -> None:
        """Find the complete runs among and below the sources.

        Raises:
            InputError: there is none, or a log is damaged.

        Warns:
            UserWarning: runs are left out, as they are not complete; or runs of one scenario were trained in different
                arithmetic, or played by different versions.
        """
        runs = find_runs(Path(source) for source in sources)
        self.runs: list[RunResult] = read(runs)
        self.failed: dict[Path, str] = unfinished(runs)
        for text in (*incomplete(self.failed), *mixed(self.runs)):
            warnings.warn(text, stacklevel=3)

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        policies = ", ".join(dict.fromkeys(run.policy for run in self.runs))
        scenarios = ", ".join(dict.fromkeys(run.setting.label for run in self.runs))
        without = f"; {len(self.failed)} not complete" if self.failed else ""
        return f"<Results: {counted(len(self), 'run')} of {scenarios}; {policies}{without}>"

    def _repr_html_(self) -> str:
        return self.summary().to_html()

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row for each run, round and service."""
        return self._table("rounds")

    @cached_property
    def offers(self) -> pd.DataFrame:
        """One row for each offer."""
        return self._table("offers")

    @cached_property
    def clients(self) -> pd.DataFrame:
        """One row for each offer: what it is to its client; only of runs whose clients are not truthful.

        Raises:
            InputError: no run has any.
        """
        return self._table("clients")

    @cached_property
    def responses(self) -> pd.DataFrame:
        """One row for each award: what its client answered; only of runs in which clients respond. Errors as above."""
        return self._table("responses")

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row for each event on the market's timeline."""
        return self._table("events")

    @cached_property
    def models(self) -> pd.DataFrame:
        """One row for each model; only of runs of continuous markets. Errors as above."""
        return self._table("models")

    @property
    def paths(self) -> list[Path]:
        """The runs' directories."""
        return [run.directory.path for run in self.runs]

    def summary(self, *, intervals: bool = False, measures: Iterable[str] = ()) -> pd.DataFrame:
        """Return the mean of each measure over seeds, one row for each scenario, policy and service.

        The row of the service ``market`` is the whole market's. In front stands a column for each key that was swept or
        in which scenarios of one name differ. ``flmarket report`` prints the same means, and says what each measure is.

        ``rounds to target``, and ``seconds to target`` of a continuous market, are NaN where no run met the target.
        Where ``target met`` is below 100, they are lower bounds: runs that did not meet the target count with their
        last round.

        Args:
            intervals: whether the ends of the 95 % intervals follow each measure, as ``AUC low`` and ``AUC high``;
                they are NaN for fewer than three seeds.
            measures: names of the measures that are wanted, such as ``social welfare`` (docs/statistics.md); by default
                those of every report, and those that you have defined.

        Warns:
            UserWarning: a measure of yours failed, and is left out.

        Raises:
            InputError: a measure of yours has the name of one of these keys.
        """
        report = self._report(measures)
        keys = dict.fromkeys(key for run in self.runs for key in run.setting.differing)
        if taken := [it.name for it in report.measures if it.name in keys]:
            raise InputError(f"measure {taken[0]!r}: the scenarios differ in a key of this name; give it another one")
        rows: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in report.estimates:
            key = row.setting.label, row.policy, row.service
            line = rows.setdefault(key, {**row.setting.differing, "service_policy": row.played})
            line["seeds"] = row.seeds
            never = row.to_target is not None and not row.to_target.reached.any()
            values = row.interval.estimate, row.interval.low, row.interval.high
            line |= zip(_ends(row.measure.name), [math.nan] * 3 if never else values, strict=True)
        index = pd.MultiIndex.from_tuples(rows, names=["scenario", "policy", "service"])
        columns = [name for it in report.measures for name in _ends(it.name)[: 3 if intervals else 1]]
        return Summary(list(rows.values()), index=index, columns=[*keys, "service_policy", "seeds", *columns])

    def compare(self, baseline: str, *, by: str | None = None, measures: Iterable[str] = ()) -> pd.DataFrame:
        """Return how each policy differs from a baseline, paired by seed; one row for each service and measure.

        ``compare("pay-as-offered", by="market.mechanism")`` compares the values of a key in place of policies.

        Columns, named as in ``flmarket report --format csv``: ``pairs``, the seeds that both have, the mean
        ``difference`` (policy minus baseline), the ends ``difference_low`` and ``difference_high`` of its 95 % interval
        (missing for fewer than three seeds), ``probability_of_improvement``, that a run of the policy beats one of the
        baseline (missing where neither more nor less is better), and ``p_holm``, the p-value of the paired t test,
        corrected for the measures and policies of the service (Holm). ``measures`` as in ``summary``.

        Raises:
            InputError: no run has that policy, or none shares scenario and seed with another policy.
        """
        names = ["scenario", by or "policy", "service", "measure"]
        rows = [
            (
                *(row.setting.label, row.policy, row.service, row.measure.name),
                *(row.seeds, row.interval.estimate, row.interval.low, row.interval.high, row.improvement, row.adjusted),
            )
            for row in self._report(measures, baseline, by).differences
        ]
        ends = ["difference", "difference_low", "difference_high"]
        columns = [*names, "pairs", *ends, "probability_of_improvement", "p_holm"]
        return Summary(rows, columns=columns).set_index(names)

    def plot(self, what: str = "accuracy", *, by: str | None = None, ax: Any = None) -> Any:
        """Return a matplotlib figure of a quantity by round: one panel for each service, one curve for each policy.

        Curves are means over seeds, bands their 95 % intervals.

        Args:
            what: ``accuracy``, ``reward``, ``spent``, ``wanted``, ``served`` or ``refused``.
            by: a key whose values have the curves in place of policies, such as ``market.mechanism``.
            ax: axes of a figure of your own to draw on, one for each panel, such as ``plt.subplots(1, 3)[1]``; your
                style stays, and ``ax.legend()`` names the curves.

        Raises:
            InputError: there is no such quantity, or no such key, or there are more or fewer axes than panels.
        """
        return curves(self.runs if by is None else compared_by(self.runs, by), what, ax)

    def _report(self, measures: Iterable[str], baseline: str | None = None, by: str | None = None) -> Report:
        if isinstance(measures, str):
            raise InputError(f'measures is a list of names: ["{measures}"]')
        report = make_report(self.runs, baseline, report_measures([*measures]), by=by)
        for failure in report.failures:
            warnings.warn(failure, stacklevel=3)
        return report

    def _table(self, table: TableName) -> pd.DataFrame:
        runs = having([run.directory for run in self.runs], table)
        fronts, groups = identities(runs)
        fronts = fronts.infer_objects()
        frames = [in_units(read_table(run, table), table) for run in runs]
        parts = [with_identity(fronts.iloc[[place]], frame, groups[place]) for place, frame in enumerate(frames)]
        return pd.concat(parts, ignore_index=True)


def _ends(measure: str) -> tuple[str, str, str]:
    """Return what a measure's mean and the ends of its interval are called."""
    return measure, f"{measure} low", f"{measure} high"
