"""Measures of a user's own: what their functions get, and what becomes of what they return."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flmarket
from flmarket import PluginError, Results, RunTables, measure
from flmarket.analysis.results.measures import BUILT_IN, report_measures
from flmarket.analysis.what_if.bounds import Bounds
from flmarket.core.errors import InputError
from learning.statistics.measure import MARKET
from scenarios.loader import parse
from scenarios.logs.columns import CLIENTS
from support.shell import flmarket as shell

MINE = """
from flmarket import measure

@measure("paid-share", better="less", per_service="mean", digits=3)
def paid_share(run):
    \"\"\"Share of the awarded offers' payments that was paid.\"\"\"
    sums = run.offers.groupby("service")[["payment", "paid"]].sum()
    return sums["paid"] / sums["payment"]
"""

BROKEN = """
from flmarket import measure

@measure("broken")
def broken(run):
    \"\"\"Never to be seen.\"\"\"
    return 1 / (run.seed - 1)
"""


@pytest.fixture(scope="module")
def folder(two_services: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two policies with two seeds of a small market."""
    folder = tmp_path_factory.mktemp("own")
    flmarket.run(parse(two_services), policies=["random", "lcfa"], seeds=2, out=folder / "runs", progress=False)
    (folder / "mine.py").write_text(MINE)
    (folder / "broken.py").write_text(BROKEN)
    return folder


@pytest.fixture
def results(folder: Path) -> Results:
    return flmarket.read(folder / "runs")


def test_a_measure_of_ones_own_stands_in_summaries_and_comparisons(results: Results) -> None:
    @measure("rows", better="more", per_service="sum")
    def rows(run: RunTables) -> dict[str, int]:
        """Offers
        that were made. It is `wanted`.

        Not in the sentence.
        """
        return {service: int((run.offers["service"] == service).sum()) for service in reversed(run.services)}

    assert rows.meaning == "Offers that were made. It is `wanted`"
    summary = results.summary()
    assert summary.columns[-1] == "rows"
    wanted = results.rounds.groupby(["policy", "service"])["wanted"].sum() / 2  # seeds
    for (_, policy, service), value in summary["rows"].items():
        assert value == (wanted[policy].sum() if service == MARKET else wanted[policy, service])
    compared = results.compare("random")
    assert {"rows", "AUC"} <= set(compared.index.get_level_values("measure"))
    row = compared.xs(("lcfa", MARKET, "rows"), level=("policy", "service", "measure")).iloc[0]
    assert row["difference"] == wanted["lcfa"].sum() - wanted["random"].sum()
    chosen_alone = results.summary(measures=["rows", "social welfare"])
    assert [*chosen_alone.columns] == ["service_policy", "seeds", "rows", "social welfare"]
    alone = results.compare("random", measures=["social welfare"])
    assert set(alone.index.get_level_values("measure")) == {"social welfare"}


def test_a_function_gets_the_runs_tables_in_units_and_as_copies(results: Results) -> None:
    [_, *_, last] = results.runs
    run = last.in_units
    assert run.services == ("alpha", "beta")
    assert (run.policy, run.seed) == (last.policy, last.seed)
    assert run.scenario.name == last.setting.name
    own = results.rounds[(results.rounds["policy"] == run.policy) & (results.rounds["seed"] == run.seed)]
    assert run.rounds["spent"].tolist() == own["spent"].tolist()
    assert {"pay", "exit"} <= set(run.events["event"])
    offers = run.offers
    offers["paid"] = 0.0
    assert run.offers["paid"].sum() == pytest.approx(last["spent"].sum())
    clients = run.clients  # whose log truthful clients lack
    assert [*clients.columns] == [*CLIENTS.names]
    assert (clients["cost"] == run.offers["bid"]).all()
    assert clients["profit"].sum() == pytest.approx(last.earnings["profit"].sum())


RETURNS: dict[str, tuple[str | None, Callable[[RunTables], object], str]] = {
    "text": (None, lambda _: "much", "must return a number or None, finite, not 'much'"),
    "too many": (None, lambda run: [1.0] * len(run.services), "must return a number or None, finite, not [1.0, 1.0]"),
    "NaN": (None, lambda _: np.nan, "must return a number or None, finite, not nan"),
    "too few": ("mean", lambda _: [1.0], "must return a number for each service, or None, finite, not [1.0]"),
    "a stranger": (
        "sum",
        lambda _: {"alpha": 1, "gamma": 2},
        "must return a number for each service, or None: alpha, beta, finite, not {'alpha': 1, 'gamma': 2}",
    ),
}


@pytest.mark.parametrize("kind", RETURNS)
def test_nonsense_is_named_with_its_place_and_loses_nothing_else(kind: str, results: Results) -> None:
    per_service, returned, problem = RETURNS[kind]
    before = results.summary()

    def mine(run: RunTables) -> object:
        """Nonsense."""
        return returned(run)

    measure("mine", per_service=per_service)(mine)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="left out: measure 'mine' of ") as warned:
        after = results.summary()
    assert f"{problem} ({__file__}:" in str(warned[0].message)
    assert after.equals(before)


def test_runs_that_a_measure_does_not_concern_do_not_count(results: Results) -> None:
    @measure("first-seed", better="more")
    def first_seed(run: RunTables) -> float | None:
        """One where the seed is 0."""
        return 1.0 if run.seed == 0 else None

    summary = results.summary(measures=["first-seed"])
    assert summary.loc[summary.index.get_level_values("service") == MARKET, "seeds"].tolist() == [1, 1]


def documented(_: RunTables) -> float:
    """Nothing."""
    return 0.0


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "name of a built-in": (
        lambda: measure("AUC")(documented),
        "measure 'AUC': the name belongs to a built-in measure; choose another one",
    ),
    "name of a column": (
        lambda: measure("seeds")(documented),
        "measure 'seeds': flmarket uses this name itself; choose another one",
    ),
    "name of a column of ends": (
        lambda: measure("AUC low")(documented),
        "measure 'AUC low': a name consists of letters, digits, '.', '_' and '-', and does not start with '.' or '-'",
    ),
    "no docstring": (
        lambda: measure("mine")(lambda _: 0.0),
        "measure 'mine': its function needs a docstring: one sentence that says what is measured, with the unit",
    ),
    "direction": (
        lambda: measure("mine", better="up")(documented),  # type: ignore[arg-type]
        "measure 'mine': better is 'up'; it must be 'more', 'less' or left out",
    ),
    "sum": (
        lambda: measure("mine", per_service="max")(documented),  # type: ignore[arg-type]
        "measure 'mine': per_service is 'max'; it must be 'mean', 'sum' or left out",
    ),
    "digits": (
        lambda: measure("mine", digits=-1)(documented),
        "measure 'mine': digits is -1; it must be a whole number from 0 to 12",
    ),
    "class": (lambda: measure("mine")(Path), "measure 'mine': is no function"),
    "no name": (
        lambda: measure(documented),  # type: ignore[arg-type]
        'the decorator needs the name of the measure: write ("name") after it',
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_measure_is_said_where_it_is_defined(what: str) -> None:
    define, problem = WRONG[what]
    with pytest.raises(PluginError) as caught:
        define()
    assert str(caught.value) == problem


@pytest.mark.parametrize("together", ["additive", "union"])
def test_no_measure_of_ones_own_takes_the_place_of_a_bound(together: str) -> None:
    for bound in Bounds({}, together).measures:
        with pytest.raises(PluginError, match=f"measure '{bound.name}': "):
            measure(bound.name)(documented)


def test_no_measure_of_ones_own_takes_the_place_of_a_column(results: Results) -> None:
    for column in [name for name in results.summary(intervals=True).reset_index() if name not in BUILT_IN]:
        with pytest.raises(PluginError, match=f"measure '{column}': "):
            measure(column)(documented)


def test_a_measure_with_the_name_of_a_key_in_front_is_refused_in_summaries(two_services: str, tmp_path: Path) -> None:
    for rounds in (1, 2):
        scenario = parse(two_services, overrides=[f"rounds={rounds}"])
        flmarket.run(scenario, policies=["random"], out=tmp_path / f"{rounds}", progress=False)
    measure("rounds")(documented)
    results = flmarket.read(tmp_path)
    assert "rounds" in results.summary(measures=["AUC"])
    with pytest.raises(InputError, match="measure 'rounds': the scenarios differ in a key of this name"):
        results.summary(measures=["AUC", "rounds"])


def test_measures_of_packages_are_shown_when_they_are_named(
    install_package: Callable[..., None], results: Results
) -> None:
    source = MINE.replace("paid-share", "share-paid")
    install_package("acme_measures", source, "flmarket.measures", **{"share-paid": "acme_measures:paid_share"})
    assert "share-paid" not in results.summary()
    assert "share-paid" in results.summary(measures=["share-paid"])
    assert [it.name for it in report_measures()] == [
        it.name for it in report_measures([it.name for it in report_measures()])
    ]


def test_a_report_shows_what_is_loaded_and_names_what_fails(folder: Path) -> None:
    plain = shell("report", "runs", "--baseline", "random", cwd=folder)
    done = shell("report", "runs", "--baseline", "random", "--plugin", "mine.py", "--plugin", "broken.py", cwd=folder)
    assert done.returncode == 1
    [run] = folder.glob("runs/*/lcfa/seed-0001")
    why = f"left out: measure 'broken' of {run.relative_to(folder)}: ZeroDivisionError: division by zero"
    assert done.stderr == f"{why} (broken.py:7, in broken)\n"
    assert why in done.stdout
    assert "| spent | paid-share |" in done.stdout
    assert "*paid-share*: Share of the awarded offers' payments that was paid\n" in done.stdout
    assert plain.stdout.count("\n| ") == done.stdout.count("\n| ")


@pytest.mark.slow
def test_a_report_of_a_measure_that_fails_does_not_blame_the_baseline(folder: Path) -> None:
    words = "--plugin", "broken.py", "--measure", "broken", "--baseline"
    for style in ("md", "csv", "tex", "html"):
        done = shell("report", "runs", *words, "random", "--format", style, cwd=folder)
        assert done.returncode == 1
        assert "left out: measure 'broken' of runs/" in done.stderr
        assert "baseline" not in done.stderr
    done = shell(
        "report", "runs", "--plugin", "broken.py", "--measure", "misreport profit", "--baseline", "random", cwd=folder
    )
    assert (done.returncode, done.stderr) == (0, "")  # which these runs do not have
    done = shell("report", "runs", *words, "nobody", cwd=folder)
    assert (done.returncode, done.stderr.partition(": no run")[0]) == (2, "baseline 'nobody'")


def test_one_name_is_no_list_of_measures(results: Results) -> None:
    for wrong in (lambda: results.summary(measures="AUC"), lambda: results.compare("random", measures="AUC")):
        with pytest.raises(InputError, match=r'^measures is a list of names: \["AUC"\]$'):
            wrong()


def test_measures_are_chosen_by_name(folder: Path) -> None:
    words = ["--measure", "social welfare", "--measure", "spent", "--baseline", "random"]
    for style in ("md", "csv"):
        done = shell("report", "runs", *words, "--format", style, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "social welfare" in done.stdout
        assert "target met" not in done.stdout
    done = shell("report", "runs", *words, "--table", "whole market", "--by", "market.mechanism", cwd=folder)
    assert done.returncode == 2  # --baseline names a policy, of which there are two
    done = shell("report", "runs", "--measure", "social welfar", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("unknown measure 'social welfar'; did you mean 'social welfare'?")
