"""Reports, against numbers computed by hand from logs written by hand."""

import csv
import html
import io
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flmarket.analysis.figures.drawing import images
from flmarket.analysis.figures.report_figures import curves, figures
from flmarket.analysis.results.measures import ROUNDS_TO_TARGET, jain, report_measures
from flmarket.analysis.results.report import make_report
from flmarket.analysis.results.report_formats import csv_text, html_page, latex, markdown
from flmarket.analysis.results.report_tables import finding, introduction, sentences, tables
from flmarket.analysis.results.run_results import read, remarks
from flmarket.core.errors import InputError
from learning.statistics.intervals import Interval, holm
from scenarios.loader import load
from scenarios.logs.columns import OFFERS, ROUNDS
from scenarios.logs.directory import RunDirectory
from support.runs import RECORDED, played, reseal, table

# Two services, four rounds; "b" reaches its target of 0.5 and leaves.
SCENARIO = """
name = "hand"
rounds = 4
[clients]
count = 2
cores = 1
data_size = [100]
emd = [0.2]
cost = { per_sample = 0.05, per_emd = 0.5 }
[[services]]
name = "a"
dataset = "mnist"
budget = 20
target_accuracy = 1.0
reward_base = 16.0
policy = "random"
[[services]]
name = "b"
dataset = "mnist"
budget = 20
target_accuracy = 0.5
reward_base = 4.0
policy = "random"
"""


def write_run(
    out: Path,
    policy: str,
    seed: int,
    a: list[float],
    b: list[float],
    spent: float | tuple[float, ...] = 10.0,
    sweep: dict[str, float] | None = None,
) -> None:
    """Write the logs of a run; each service pays client 0 ``spent``, or these in turn, in each round that it trains."""
    digest = "".join(str(value) for value in (sweep or {"": 0}).values()).rjust(8, "0")
    path = out / f"hand-{digest}" / policy / f"seed-{seed:04d}"
    path.mkdir(parents=True)
    (path / "scenario.toml").write_text(SCENARIO.replace('"random"', f'"{policy}"'))
    rounds, offers = [], []
    for n in range(len(a)):
        for service, curve, target, base in (("a", a, 1.0, 16.0), ("b", b, 0.5, 4.0)):
            status = "training" if curve[n] < target else "left" if n and curve[n - 1] >= target else "reached"
            paid = spent[n % len(spent)] if isinstance(spent, tuple) else spent
            money = 0.0 if status == "left" else paid
            row = dict.fromkeys(ROUNDS.names, "0") | {
                "round": n + 1, "service": service, "policy": policy, "status": status, "accuracy": curve[n],
                "test_accuracy": curve[n],
                "reward": base ** min(curve[n], target), "offered": f"{2 * money:.6f}",
                "spent": f"{money:.6f}", "budget": "0.000000", "sim_time": "0.000000", "makespan": "", "wanted": 2,
                "served": int(money > 0),
                "refused": 1,
            }  # fmt: skip
            rounds.append(row)
            for client, outcome in ((0, "served"), (1, "outbid")):
                offer = {
                    "round": n + 1,
                    "service": service,
                    "client": client,
                    "bid": "1.000000",
                    "start": "",
                    "end": "",
                }
                won = outcome == "served" and money > 0
                price = {"payment": f"{money:.6f}", "paid": f"{money:.6f}" if won else ""}
                offers.append(
                    dict.fromkeys(OFFERS.names, "0") | offer | price | {"outcome": "served" if won else "outbid"}
                )
    for log, rows in ((ROUNDS, rounds), (OFFERS, offers)):
        with log.path(path).open("w", newline="") as file:
            writer = csv.DictWriter(file, log.names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    meta = {
        **RECORDED,
        "status": "complete",
        "hash": digest,
        "policy": policy,
        "seed": seed,
        "sweep": sweep or {},
    }
    for name in ("events.csv", "run.log"):
        (path / name).touch()
    RunDirectory(path).finish(meta)


def write_four(out: Path, sweep: dict[str, float] | None = None) -> None:
    """Write two runs of each of two policies."""
    write_run(out, "one", 0, [0.25, 0.5, 0.5, 0.75], [0.25, 0.5, 0.5, 0.5], sweep=sweep)
    write_run(out, "one", 1, [0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25], sweep=sweep)
    write_run(out, "two", 0, [0.25, 0.5, 0.5, 0.5], [0.25, 0.25, 0.25, 0.5], spent=5.0, sweep=sweep)
    write_run(out, "two", 1, [0.25, 0.25, 0.25, 0.5], [0.25, 0.25, 0.25, 0.25], spent=5.0, sweep=sweep)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write_four(tmp_path)
    return tmp_path


def test_measures_are_those_computed_by_hand(out: Path) -> None:
    report = make_report(read([out]))
    found = {(row.policy, row.service, row.measure.name): row.interval.estimate for row in report.estimates}
    expected = {
        ("one", "a", "final accuracy"): (75 + 25) / 2,
        ("one", "a", "AUC"): (50 + 25) / 2,
        ("one", "a", "target met"): 0,
        ("one", "b", "target met"): 50,
        ("one", "b", "rounds to target"): (2 + 4) / 2,  # the second run is censored in round 4
        ("two", "b", "rounds to target"): 4,
        ("one", "a", "spent"): 40,
        ("one", "b", "spent"): (20 + 40) / 2,  # it left after round 2 of the first run
        ("one", "a", "cost per point"): (40 / 75 + 40 / 25) / 2,
        ("one", "a", "normalised reward"): ((2 + 4 + 4 + 8) / 64 + 4 * 2 / 64) / 2,  # 16^x / 16
        ("one", "b", "normalised reward"): ((2**0.5 + 6) / 8 + 2**0.5 / 2) / 2,  # 4^x / 4^0.5
        ("one", "a", "served"): 4,
        ("one", "a", "refused"): 4,
        ("one", "market", "final accuracy"): ((75 + 50) / 2 + 25) / 2,
        ("one", "market", "AUC"): ((50 + 43.75) / 2 + 25) / 2,
        ("one", "market", "target met"): (50 + 0) / 2,
        ("one", "market", "spent"): (60 + 80) / 2,
        ("one", "market", "cost per point"): (60 / (75 + 50) + 80 / 50) / 2,
        ("one", "market", "served"): (6 + 8) / 2,
        ("one", "market", "refused"): 8,
        ("one", "market", "income Jain"): 0.5,  # client 0 has it all
        ("one", "market", "core use"): (100 * 6 / 8 + 100 * 8 / 8) / 2,
        ("one", "market", "services Jain"): (jain([0.75, 1.0]) + jain([0.25, 0.5])) / 2,
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected)


def test_differences_are_paired_by_seed(out: Path) -> None:
    report = make_report(read([out]), baseline="one")
    found = {(row.service, row.measure.name): row for row in report.differences}
    final = found["a", "final accuracy"]
    assert {row.policy for row in report.differences} == {"two"}
    assert final.interval.estimate == pytest.approx(((50 - 75) + (50 - 25)) / 2)
    assert not final.interval.known  # two pairs are too few
    assert not any(row.holds for row in report.differences)
    assert final.improvement == pytest.approx(0.5)  # 50 beats 25 and loses to 75, twice each
    cost = found["a", "cost per point"]
    assert cost.interval.estimate == pytest.approx((20 / 50 - 40 / 75 + 20 / 50 - 40 / 25) / 2)
    assert cost.improvement == 1.0  # less is better
    assert found["a", "spent"].improvement is None


def test_differences_that_are_rounding_are_nothing(tmp_path: Path) -> None:
    """Both spend 1 in other orders, the floats of whose sums differ; and accuracies that are permuted cancel."""
    for seed, (one, two) in enumerate([(0.1, 0.3), (0.3, 0.2), (0.2, 0.1)]):
        write_run(tmp_path, "one", seed, [one] * 4, [0.25] * 4, spent=(0.1, 0.2, 0.3, 0.4))
        write_run(tmp_path, "two", seed, [two] * 4, [0.25] * 4, spent=(0.4, 0.3, 0.2, 0.1))
    found = {
        (row.service, row.measure.name): row.interval
        for row in make_report(read([tmp_path]), baseline="one").differences
    }
    assert (found["a", "spent"].estimate, found["a", "spent"].low, found["a", "spent"].p) == (0, 0, 1)
    assert found["a", "final accuracy"].estimate == 0


def test_core_use_counts_the_cores_that_clients_had_in_each_round(tmp_path: Path) -> None:
    write_run(tmp_path, "one", 0, [0.25] * 4, [0.25] * 4)
    [path] = tmp_path.rglob("scenario.toml")
    change = '[[interventions]]\nround = {}\nkey = "clients.cores"\nvalue = {}\n'
    path.write_text(path.read_text() + change.format(3, 4) + change.format(2, 3))
    reseal(path.parent)
    report = make_report(read([tmp_path]))
    [found] = [row.interval.estimate for row in report.estimates if row.measure.name == "core use"]
    assert found == pytest.approx(100 * 8 / (2 * (1 + 3 + 4 + 4)))  # of two clients; eight offers were served


def write_three(out: Path, policy: str, finals: tuple[float, ...], sweep: dict[str, float] | None = None) -> None:
    """Write three runs of a policy whose service a has these final accuracies."""
    for seed, final in enumerate(finals):
        write_run(out, policy, seed, [0.25, 0.25, 0.25, final], [0.25] * 4, sweep=sweep)


def test_three_seeds_have_t_intervals_and_tests(tmp_path: Path) -> None:
    write_three(tmp_path, "one", (0.25, 0.3, 0.35))
    write_three(tmp_path, "two", (0.35, 0.41, 0.44))
    report = make_report(read([tmp_path]), baseline="one")
    [found] = [row for row in report.differences if (row.service, row.measure.name) == ("a", "final accuracy")]
    # Differences of 10, 11 and 9 points: a mean of 10, a standard deviation of 1, and t(.975; 2) = 4.302653.
    half = 4.302653 / 3**0.5
    assert (found.interval.low, found.interval.high) == pytest.approx((10 - half, 10 + half))
    assert found.interval.p == pytest.approx(1 - (300 / 302) ** 0.5)  # Student, 2 degrees of freedom
    text = markdown(report)
    assert "| one | 3 | 30.00 [17.58, 42.42] |" in text
    assert "| two | 3 | +10.00 [7.52, 12.48]† P 0.94" in text
    rows = list(csv.DictReader(io.StringIO(csv_text(report))))
    [row] = [r for r in rows if (r["policy"], r["service"], r["measure"]) == ("two", "a", "final accuracy")]
    assert (float(row["p"]), float(row["p_holm"])) == (found.interval.p, found.adjusted)


def test_tables_for_latex_show_signs_as_they_are(tmp_path: Path) -> None:
    write_three(tmp_path, "one", (0.25, 0.3, 0.35))
    write_three(tmp_path, "two_50%", (0.35, 0.41, 0.44))
    text = latex(make_report(read([tmp_path]), baseline="two_50%"), ["flmarket report runs"])
    assert text.startswith("% flmarket report runs\n% needs \\usepackage{booktabs}\n% 6 runs.")
    assert r"\caption{hand: Service a, against two\_50\%}" in text
    assert r"    two\_50\% & 3 & 40.00 [28.62, 51.38] & " in text
    assert r"    one & 3 & $-$10.00 [$-$12.48, $-$7.52]\textdagger{} P 0.06 & " in text
    tabular = text[text.index(r"\begin{table}") :].split("\n\n")[0].splitlines()
    assert r"  \begin{tabular}{lrrrrr}" in tabular
    assert [line.count(" & ") for line in tabular if line.endswith(r"\\")] == [5] * 3
    assert [line.strip() for line in tabular if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]


def test_p_values_are_corrected_for_the_differences_of_their_table(tmp_path: Path) -> None:
    write_three(tmp_path, "one", (0.25, 0.3, 0.35))
    write_three(tmp_path, "two", (0.35, 0.401, 0.45))
    write_three(tmp_path, "three", (0.26, 0.29, 0.36))
    report = make_report(read([tmp_path]), baseline="one")
    table = [row for row in report.differences if row.service == "a" and row.measure.better]
    p_values = [row.interval.p for row in table]
    assert [row.adjusted for row in table] == holm(p_values)
    assert {row.policy for row in table if row.holds} == {"two"}
    line = next(line for line in markdown(report).splitlines() if line.startswith("| two | 3 | +"))
    assert "†" in line


def test_what_comparisons_come_to_is_said_in_words_the_best_policy_first(tmp_path: Path) -> None:
    write_three(tmp_path, "one", (0.25, 0.3, 0.35))
    write_three(tmp_path, "two", (0.35, 0.41, 0.44))
    report = make_report(read([tmp_path]), baseline="one")
    setting = report.runs[0].setting
    assert list(sentences(report, setting)) == [
        "two reaches no target, nor does one; its AUC is 1.25 [0.94, 1.56] points higher.",
        "one reaches no target; its AUC is 25.62 [24.07, 27.18] %.",
    ]
    [row, *_] = (row for row in report.differences if (row.measure.name, row.service) == ("AUC", "a"))
    assert finding(row, "two", "one") == f"two is ahead of one by {row.text.lstrip('+')} points of AUC on a"
    interval = row.interval
    lower = replace(row, interval=replace(interval, estimate=-5.0, low=-8.0, high=-2.0))
    assert finding(lower, "two", "one") == "one is ahead of two by 5.00 [2.00, 8.00] points of AUC on a"
    unclear = replace(row, interval=replace(interval, estimate=5.0, low=-1.0, high=11.0))
    assert (
        finding(unclear, "two", "one") == "two and one are not clearly apart on a: +5.00 [-1.00, 11.00] points of AUC"
    )
    single = replace(row, seeds=1, interval=replace(interval, estimate=5.0, low=nan, high=nan))
    assert finding(single, "two", "one") == "two is ahead of one by 5.00 (n = 1: no interval) points of AUC on a"
    nothing = replace(single, interval=replace(single.interval, estimate=0.0))
    assert finding(nothing, "two", "one") == "two and one have the same AUC on a"
    [missed] = (row for row in report.differences if (row.measure, row.service) == (ROUNDS_TO_TARGET, "a"))
    assert finding(row, "two", "one", missed) == finding(row, "two", "one")  # which neither met
    met = replace(missed, bound="", interval=Interval(-3.0, -4.0, -2.0))
    assert finding(row, "two", "one", met).endswith(" on a; two meets the target 3.0 [2.0, 4.0] rounds before one")
    assert finding(lower, "two", "one", met).endswith(" on a; one meets the target 3.0 [2.0, 4.0] rounds after two")
    [spent] = (row for row in report.differences if (row.measure.name, row.service) == ("spent", "a"))
    dearer = replace(spent, interval=Interval(-2.0, -3.0, -1.0))
    assert finding(dearer, "two", "one") == "spent is 2.00 [1.00, 3.00] higher with one than with two on a"
    assert list(sentences(make_report(report.runs, baseline="two"), setting))[1] == (
        "one reaches no target, nor does two; its AUC is 1.25 [0.94, 1.56] points lower."
    )
    [first, *_] = tables(report)
    assert [row[0] for row in first.table.rows] == ["two", "one"]
    for sentence in sentences(report, setting):  # the same words in both
        assert sentence in markdown(report)
        assert sentence in html_page(report, {})


def test_sentences_claim_no_more_than_the_intervals(tmp_path: Path) -> None:
    write_run(tmp_path, "one", 0, [0.5, 1.0, 1.0, 1.0], [0.25, 0.5, 0.5, 0.5])
    write_run(tmp_path, "two", 0, [0.5, 0.5, 1.0, 1.0], [0.25, 0.25, 0.5, 0.5])
    report = make_report(read([tmp_path]), baseline="one")
    best, other = sentences(report, report.runs[0].setting)
    assert best == "one reaches every target; its AUC is 65.62 % (n = 1: no interval)."
    assert other == (
        "two reaches every target, 1.0 (n = 1: no interval) rounds after one; "
        "its AUC is 9.38 (n = 1: no interval) points lower."
    )
    for seed, later in ((1, 3), (2, 1), (3, 2)):
        write_run(tmp_path, "one", seed, [0.5, 0.5, 1.0, 1.0], [0.5] * 4)
        write_run(tmp_path, "two", seed, [*[0.5] * later, *[1.0] * (4 - later)], [0.5] * 4)
    report = make_report(read([tmp_path]), baseline="one")
    assert list(sentences(report, report.runs[0].setting))[1] == (
        "two reaches every target, not clearly before or after one (+0.2 [-0.8, 1.3] rounds); "
        "its AUC is not clearly different (-2.34 [-13.37, 8.68] points)."
    )


def test_the_page_begins_with_the_picture_and_folds_what_decides_nothing(out: Path) -> None:
    report = make_report(read([out]), "one")
    setting = report.runs[0].setting
    figures = {
        f"{setting.folder.name}-accuracy": ("curves", "<svg>curves</svg>"),
        f"{setting.folder.name}-cost": ("costs", "<svg>costs</svg>"),
    }
    page = html_page(report, figures, ["flmarket report <runs>", "flmarket 0.2.0"])
    order = [
        "<svg>curves",
        "<ul><li>",
        "paired by seed; P is the probability",
        "Whole market",
        "More measures",
        "<svg>costs",
        "flmarket report &lt;runs&gt;",
    ]
    assert [page.index(part) for part in order] == sorted(page.index(part) for part in order)
    opening = page[: page.index("<details>")]
    assert "final accuracy" in opening
    assert "income Jain" not in opening
    assert "    flmarket report <runs>\n" in markdown(report, ["flmarket report <runs>"])


def test_points_of_a_sweep_are_compared_with_the_first_one_paired_by_seed(tmp_path: Path) -> None:
    write_three(tmp_path, "one", (0.25, 0.3, 0.35), sweep={"clients.cores": 1})
    write_three(tmp_path, "one", (0.35, 0.41, 0.44), sweep={"clients.cores": 2})
    report = make_report(read([tmp_path]))
    assert {row.setting.sweep["clients.cores"] for row in report.points} == {2}
    [final] = [row for row in report.points if row.measure.name == "final accuracy"]
    assert final.interval.estimate == pytest.approx(5)  # of the market: service b has not changed
    text = markdown(report)
    assert "**Sweep of hand, policy one: whole market, against the first point**" in text
    assert "Points of a sweep are compared with its first one, paired by seed; P is " in text
    answer = (
        "- one has its highest AUC at clients.cores=2: 26.88 %, 1.25 [0.94, 1.56] points above the first point, "
        "clients.cores=1."
    )
    assert text.index("## Sweep of hand") < text.index(answer) < text.index("## hand (clients.cores=1)")
    page = html_page(report, {"hand-sweep-clients.cores": ("reward", "<svg>reward</svg>")})
    assert page.index("<svg>reward") < page.index(answer.removeprefix("- ")) < page.index("How to read the tables")


def test_a_sweep_says_how_far_its_points_are_below_the_first_one(tmp_path: Path) -> None:
    for cores, finals in ((1, (0.35, 0.41, 0.44)), (2, (0.34, 0.42, 0.43))):
        write_three(tmp_path, "one", finals, sweep={"clients.cores": cores})
    [part] = [part for part in tables(make_report(read([tmp_path]))) if part.heading == "Sweep of hand"]
    assert part.answers == [
        "one has its highest AUC at clients.cores=1: 26.88 %; the lowest, at clients.cores=2, is (-0.04 "
        "[-0.40, 0.32] points) not clearly below it."
    ]


def test_a_run_that_ended_early_counts_to_the_last_round(tmp_path: Path) -> None:
    write_run(tmp_path, "early", 0, [0.5, 1.0], [0.25, 0.5])
    [run] = read([tmp_path])
    assert run["accuracy"].tolist() == [[0.5, 0.25], [1.0, 0.5], [1.0, 0.5], [1.0, 0.5]]
    assert run["spent"].tolist() == [[10, 10], [10, 10], [0, 0], [0, 0]]
    assert run.to_target.rounds.tolist() == [2, 2]
    assert run.to_target.reached.tolist() == [True, True]


def test_the_same_runs_give_the_same_report_in_every_format(out: Path) -> None:
    runs = read([out])
    report = make_report(runs, "one")
    again = make_report(read([out]), "one")
    assert markdown(report) == markdown(again)
    rows = list(csv.DictReader(io.StringIO(csv_text(report))))
    assert csv_text(report) == csv_text(again)
    assert len(rows) == len(report.estimates)
    [row] = [r for r in rows if (r["policy"], r["service"], r["measure"]) == ("two", "a", "final accuracy")]
    assert (float(row["mean"]), float(row["difference"]), row["baseline"], row["pairs"]) == (50.0, 0.0, "one", "2")
    text = markdown(report)
    assert "| one | 2 (no interval) | 50.00 |" in text
    assert "| two | 2 (no interval) | +0.00 P 0.50 |" in text
    page = html_page(report, {"a-figure": ("a <caption>", "<?xml?><svg>...</svg>")})
    assert "<td>2 (no interval)</td><td>50.00</td>" in page
    assert "a &lt;caption&gt;" in page
    assert "<?xml" not in page
    assert "http" not in page  # nothing to fetch


@pytest.mark.slow
def test_figures_are_written_in_three_formats_and_twice_the_same(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from flmarket.analysis.figures.drawing import save
    from flmarket.analysis.figures.report_figures import svgs

    write_four(tmp_path, {"clients.cores": 1})
    write_run(tmp_path, "one", 0, [0.25] * 4, [0.25] * 4, sweep={"clients.cores": 2})
    runs = read([tmp_path])
    paths = save(figures(runs), tmp_path / "figures")
    kinds = {path.stem.partition("-00000001-")[2] for path in paths} - {""}
    assert kinds == {"accuracy", "reward", "payments", "allocation", "cost"}
    assert "hand-sweep-clients.cores" in {path.stem for path in paths}
    assert {path.suffix for path in paths} == {".svg", ".png", ".pdf"}
    before = {path: path.read_bytes() for path in paths}
    assert {path: path.read_bytes() for path in save(figures(runs), tmp_path / "figures")} == before
    page = html_page(make_report(runs), svgs(runs))
    assert page.count("<svg") == len(paths) / 3


def test_a_picture_of_all_offers_does_not_grow_with_their_number(out: Path) -> None:
    def size() -> int:
        [payments] = [figure for figure in figures(runs) if figure.name.endswith("payments")]
        return len(images(payments, ["svg"])[0])

    runs = read([out])
    few = size()
    for run in runs:
        run.__dict__["offers"] = pd.concat([run.offers] * 100)  # as a long run with many clients has them
    assert size() < 1.1 * few


def test_swept_whole_numbers_have_ticks_at_whole_numbers(tmp_path: Path) -> None:
    for cores in (1, 2):
        write_run(tmp_path, "one", 0, [0.25] * 4, [0.25] * 4, sweep={"clients.cores": cores})
    [sweep] = [figure for figure in figures(read([tmp_path])) if "sweep" in figure.name]
    [axes] = sweep.draw().axes
    assert {1.0, 2.0} <= set(axes.get_xticks()) == {float(round(tick)) for tick in axes.get_xticks()}


def test_two_swept_keys_have_a_figure_for_each_and_a_table_of_all_points(tmp_path: Path) -> None:
    for cores in (1, 2):
        for budget in (5, 6):
            sweep = {"clients.cores": cores, "services.a.budget": budget}
            write_run(tmp_path, "one", 0, [0.25] * 4, [0.25] * 4, sweep=sweep)
    runs = read([tmp_path])
    assert {figure.name for figure in figures(runs) if "sweep" in figure.name} == {
        "hand-sweep-effects",
        *(f"hand-sweep-clients.cores-services.a.budget={budget}" for budget in (5, 6)),
        *(f"hand-sweep-services.a.budget-clients.cores={cores}" for cores in (1, 2)),
    }
    shown = [part.table for part in tables(make_report(runs))]
    [points] = [table for table in shown if table.title == "Sweep of hand, policy one: whole market"]
    assert [row[0] for row in points.rows] == [
        f"hand (clients.cores={cores}, services.a.budget={budget})" for cores in (1, 2) for budget in (5, 6)
    ]


def test_the_effect_of_a_key_is_paired_by_seed_and_averaged_over_the_points_that_differ_in_it_alone(
    tmp_path: Path,
) -> None:
    for cores, budget, gain in ((1, 5, 0.0), (1, 6, 0.1), (2, 5, 0.02), (2, 6, 0.16), (1, 7, 0.5)):  # no (2, 7)
        finals = [0.3 + gain, 0.35 + gain, 0.41 + gain]
        write_three(tmp_path, "one", tuple(finals), sweep={"services.a.budget": budget, "clients.cores": cores})
    report = make_report(read([tmp_path]))
    final = {row.setting.label: row for row in report.effects if row.measure.name == "final accuracy"}
    points = {label: row.interval.estimate for label, row in final.items()}  # of the market: service b never changes
    assert points == pytest.approx(
        {
            "clients.cores=1 to 2": 100 * (0.02 + 0.06) / 2 / 2,
            "services.a.budget=5 to 6": 100 * (0.1 + 0.14) / 2 / 2,
            "services.a.budget=5 to 7": 100 * 0.5 / 2,
        }
    )
    assert {row.seeds for row in report.effects} == {3}
    [part] = [part for part in tables(report) if part.heading == "Sweep of hand"]
    assert part.answers[-1] == (
        "Averaged over the other keys, one's AUC changes by +6.25 [6.25, 6.25] points from services.a.budget=5 to 7; "
        "by +0.50 [0.50, 0.50] points from clients.cores=1 to 2."
    )
    shown = [part.table for part in tables(report)]
    [effects] = [table for table in shown if table.title.endswith("effect of each key, averaged over the others")]
    in_order = ["services.a.budget=5 to 6", "services.a.budget=5 to 7", "clients.cores=1 to 2"]  # as in the sweep
    assert [row[0] for row in effects.rows] == list(final) == in_order
    [drawn] = [figure.draw() for figure in figures(read([tmp_path])) if figure.name == "hand-sweep-effects"]
    assert [axes.get_xlabel() for axes in drawn.axes] == ["services.a.budget", "clients.cores"]


def test_a_sweep_of_one_key_has_no_effects_besides_its_points(tmp_path: Path) -> None:
    for cores in (1, 2):
        write_three(tmp_path, "one", (0.3, 0.35, 0.41), sweep={"clients.cores": cores})
    report = make_report(read([tmp_path]))
    assert report.points
    assert not report.effects


def test_signs_in_front_of_rounds_to_target_are_explained_where_they_stand(tmp_path: Path) -> None:
    for policy, final in (("one", 0.9), ("two", 0.25)):
        write_run(tmp_path, policy, 0, [0.25, 0.25, 0.25, final], [0.25] * 4)
    report = make_report(read([tmp_path]), "one")
    words = " ".join(introduction(report))
    assert '"?" that both have' in words
    assert '"> 52.3 (3 of 5)" is a lower bound' in words
    assert all(text in markdown(report) for text in introduction(report))  # as it is, without escapes


def test_curves_by_round_have_ticks_at_whole_rounds(out: Path) -> None:
    for figure in figures(read([out])):
        if figure.name.endswith(("accuracy", "reward")):
            for axes in figure.draw().axes:
                assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_of_many_policies_the_best_five_and_the_baseline_stand_out(tmp_path: Path) -> None:
    for number in range(9):
        write_run(tmp_path, f"policy-{number}", 0, [0.25, 0.25, 0.25, 0.3 + 0.05 * number], [0.25] * 4)
    best = [f"policy-{number}" for number in range(8, 3, -1)]
    for figure in figures(read([tmp_path]), baseline="policy-0"):
        if figure.name.endswith(("accuracy", "reward", "cost")):
            drawn = figure.draw()
            [legend] = drawn.legends
            assert [text.get_text() for text in legend.texts] == [*best, "policy-0", "3 others"]
            assert all(axes.get_legend() is None for axes in drawn.axes)  # it would cover curves


def test_bands_end_where_accuracies_do_and_files_have_truetype_fonts(tmp_path: Path) -> None:
    for seed, final in enumerate((0.0, 0.1, 1.0)):
        write_run(tmp_path, "one", seed, [0.25, 0.25, 0.25, final], [0.25] * 4)
    figure = next(iter(figures(read([tmp_path]))))
    drawn = figure.draw()
    [band] = drawn.axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0, 100)  # t(.975; 2) would reach from -100 to 173
    assert drawn.get_figwidth() == 7.16  # as wide as a page; one panel is as wide as a column
    [pdf] = images(figure, ["pdf"])
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf


@pytest.mark.parametrize(
    ("baseline", "message"), [("three", "no run has that policy; choose from one, two"), (None, None)]
)
def test_an_unknown_baseline_is_named(baseline: str | None, message: str | None, out: Path) -> None:
    if message is None:
        assert not make_report(read([out]), baseline).differences
    else:
        with pytest.raises(InputError, match=message):
            make_report(read([out]), baseline)


def test_two_copies_of_a_run_and_broken_logs_are_refused(out: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "copy", "one", 0, [0.25], [0.25])
    with pytest.raises(InputError, match="are the same run"):
        read([out, tmp_path / "copy"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no complete run"):
        read([tmp_path / "empty"])
    broken = next(out.rglob("rounds.csv"))
    broken.write_text(broken.read_text().replace("accuracy", "precision"))
    reseal(broken.parent)
    with pytest.raises(InputError, match=r"rounds\.csv: does not have the columns of rounds\.csv"):
        read([out])


@pytest.mark.parametrize(
    ("column", "cell", "problem"),
    [
        ("served", "9" * 99, "Python int too large"),
        ("spent", "1", "'1' is not a number with six decimals"),
        ("status", "gone", "cannot be read: unknown word 'gone'"),
        ("policy", "\x1b[31m", "a line has control characters"),
        ("reward", "inf", "a number of reward is not finite"),
    ],
)
def test_a_cell_that_no_run_writes_is_named(column: str, cell: str, problem: str, out: Path) -> None:
    path = next(out.rglob("rounds.csv"))
    header, row, *rest = (line.split(",") for line in path.read_text().splitlines())
    row[header.index(column)] = cell
    path.write_text("".join(",".join(line) + "\n" for line in (header, row, *rest)))
    reseal(path.parent)
    with pytest.raises(InputError, match=f"rounds.csv.*{problem}"):
        read([out])


def test_rounds_to_target_are_marked_where_they_are_a_lower_bound(out: Path) -> None:
    """As in the closing table of `flmarket run`: `learning.statistics` has the one rule."""
    report = make_report(read([out]))
    parts = [[dict(zip(part.table.header, row, strict=True)) for row in part.table.rows] for part in tables(report)]
    market, a, b = (row["rounds to target"] for rows in parts for row in rows if row["policy"] == "one")
    assert (market, a, b) == ("> 3.5 (1 of 4)", "never", "> 3.0 (1 of 2)")
    always = [row["rounds to target"] for row in parts[-1] if row["policy"] == "two"]
    assert always == ["> 4.0 (1 of 2)"]


@pytest.mark.parametrize(
    ("backend", "remark"),
    [
        ("surrogate", 'backend = "surrogate": accuracies follow fitted curves; no model is trained'),
        ("noiseless", "no model is trained, and the results are not to be reported"),
    ],
)
def test_a_scenario_on_fitted_curves_says_in_every_format_that_nothing_was_trained(
    backend: str, remark: str, out: Path
) -> None:
    for path in out.rglob("scenario.toml"):
        path.write_text(f'{path.read_text()}[training]\nbackend = "{backend}"\n')
        reseal(path.parent)
    runs = read([out])
    report, drawn = make_report(runs), list(figures(runs))
    pictures = {figure.name: (figure.caption, "<svg></svg>") for figure in drawn}
    for text in (markdown(report), html.unescape(html_page(report, pictures))):
        assert text.count(remark) == 1
        assert text.index(remark) < text.index("Whole market")
        assert "test accuracy" not in text
        assert "test images" not in text
        assert "accuracy on fitted curves" in text or text.startswith("#")
    assert "accuracy on fitted curves" in drawn[0].draw().axes[0].get_ylabel()
    assert "accuracy on fitted curves" in curves(runs, "accuracy").axes[0].get_ylabel()
    assert {row["backend"] for row in csv.DictReader(io.StringIO(csv_text(report)))} == {backend}
    assert remark in remarks(runs)[0]


def test_only_scenarios_that_train_are_said_to_be_measured_on_test_images(tmp_path: Path) -> None:
    write_four(tmp_path)
    write_four(tmp_path, {"training.backend": 1})
    for path in (tmp_path / "hand-00000001").rglob("scenario.toml"):
        path.write_text(f'{path.read_text()}[training]\nbackend = "surrogate"\n')
        reseal(path.parent)
    text = markdown(make_report(read([tmp_path])))
    assert "Where models are trained, accuracies are measured on test images." in text
    assert text.count("no model is trained") == 1
    assert text.index("## hand (training.backend=1)") < text.index("no model is trained")


def test_a_difference_from_runs_that_missed_the_target_is_a_bound(tmp_path: Path) -> None:
    met, missed = [0.25, 1.0, 1.0, 1.0], [0.25] * 4
    for seed in range(3):
        write_run(tmp_path, "one", seed, met, met)
        write_run(tmp_path, "two", seed, met if seed else missed, met)
        write_run(tmp_path, "three", seed, missed, met)

    def cell(policy: str, baseline: str) -> str:
        report = make_report(read([tmp_path]), baseline=baseline)
        part = next(part for part in tables(report) if part.table.title == f"Service a, against {baseline}")
        [row] = [row for row in part.table.rows if row[0] == policy]
        return row[part.table.header.index("rounds to target")].partition(" [")[0]

    assert cell("one", "two") == "< -0.7"  # two may take any number of rounds more
    assert cell("two", "one") == "> +0.7"
    assert cell("three", "two") == "? +1.3"
    report = make_report(read([tmp_path]), baseline="three")
    said = {text.split()[0]: text for text in sentences(report, report.runs[0].setting)}
    assert "reaches every target, at least 1.0 [1.0, 1.0] rounds before three;" in said["one"]
    assert "(targets that were missed count with the last round)" in said["two"]
    rows = list(csv.DictReader(io.StringIO(csv_text(report))))
    marks = {
        it["policy"]: (it["bound"], it["difference_bound"])
        for it in rows
        if (it["service"], it["measure"]) == ("a", "rounds to target")
    }
    assert marks == {"one": ("", "<"), "two": (">", "?"), "three": ("never", "")}


def test_only_who_meets_targets_is_said_to_meet_them_sooner_or_later(tmp_path: Path) -> None:
    met, missed = [0.25, 1.0, 1.0, 1.0], [0.25] * 4
    for seed in range(3):
        write_run(tmp_path, "one", seed, met, met)
        write_run(tmp_path, "two", seed, missed, missed)

    def said(baseline: str) -> list[str]:
        report = make_report(read([tmp_path]), baseline)
        return [text.partition(";")[0] for text in sentences(report, report.runs[0].setting)]

    assert said("one")[1] == "two reaches no target (one reaches every target)"
    assert said("two")[0] == "one reaches every target, of which two reaches none"


def test_the_interval_of_a_difference_ends_where_its_measure_does(tmp_path: Path) -> None:
    met, missed = [0.25, 1.0, 1.0, 1.0], [0.25] * 4
    for seed in range(3):
        write_run(tmp_path, "one", seed, met if seed else missed, met)
        write_run(tmp_path, "two", seed, missed, met)
    report = make_report(read([tmp_path]), baseline="two")
    [found] = [row.interval for row in report.differences if (row.service, row.measure.name) == ("a", "target met")]
    assert found.estimate == pytest.approx(100 * 2 / 3)
    assert found.high == 100  # t(.975; 2) of 67, 67 and -33 would be 210
    assert -100 < found.low < 0


def test_a_measure_that_is_asked_for_alone_is_corrected_for_no_other(tmp_path: Path) -> None:
    for seed, gain in enumerate((0.1, 0.2, 0.25)):
        write_run(tmp_path, "one", seed, [0.2, 0.3, 0.3, 0.3], [0.1] * 4)
        write_run(tmp_path, "two", seed, [0.2, 0.3, 0.3, 0.3 + gain], [0.1, 0.1, 0.1, 0.1 + gain])
    runs = read([tmp_path])
    usual = {(row.service, row.measure.name): row for row in make_report(runs, "one").differences}
    alone = make_report(runs, "one", report_measures(["social welfare"]))
    assert [row.service for row in alone.differences] == ["a", "b", "market"]
    assert all(row.adjusted == row.interval.p < 0.1 for row in alone.differences)
    final = usual["a", "final accuracy"]
    assert final.adjusted > final.interval.p
    assert next(iter(tables(alone))).answers == []  # sentences are about AUC and rounds to target


def test_seconds_to_target_are_those_of_the_evaluation_that_met_it_and_of_continuous_markets_alone(
    tmp_path: Path,
) -> None:
    changes: dict[str, Any] = {
        "training.backend": "surrogate", "timeline.slot": 1.5, "rounds": 16, "services.digits.arrival": 3,
        "services.*.budget": 60, "services.*.target_accuracy": 0.15, "services.strokes.target_accuracy": 0.99,
        "services.*.policy": "random",
    }  # fmt: skip
    periods = {"timeline.mode": "continuous", "timeline.aggregate": {"kind": "semi-async"}}
    run = played(load("quickstart", {**changes, **periods}), tmp_path / "periods")
    report = make_report(read([run.path]))
    met = {row["service"]: float(row["sim_time"]) for row in table(run.path, "events") if row["event"] == "exit"}
    found = {row.service: row.text for row in report.estimates if row.measure.name == "seconds to target"}
    assert set(met) == {"digits", "scribbles"}
    assert found == {
        "digits": f"{met['digits'] - 2 * 1.5:.1f}",  # since its arrival, as the third period begins
        "scribbles": f"{met['scribbles']:.1f}",
        "strokes": "never",
        "market": f"> {(met['digits'] - 3.0 + met['scribbles'] + 24.0) / 3:.1f} (2 of 3)",
    }
    text = markdown(report)
    assert "| rounds to target | seconds to target |" in text
    lines = [row for row in csv.DictReader(io.StringIO(csv_text(report))) if row["measure"] == "seconds to target"]
    assert [(row["service"], row["mean"]) for row in lines if row["bound"] == "never"] == [("strokes", "24.0")]
    # Who leaves with the last round, which an event ends, has not waited for the clients that are still at work.
    alone = {"timeline.decide": ["free"], "services.strokes.target_accuracy": 0.15, "services.digits.arrival": 1}
    run = played(load("quickstart", {**changes, **periods, **alone, "rounds": 200}), tmp_path / "events")
    *_, left = [row for row in table(run.path, "events") if row["event"] == "exit"]
    assert float(table(run.path, "events")[-1]["sim_time"]) > float(left["sim_time"])
    rows = make_report(read([run.path])).estimates
    found = {row.service: row.text for row in rows if row.measure.name == "seconds to target"}
    assert found[left["service"]] == f"{float(left['sim_time']):.1f}"
    slots = played(load("quickstart", changes), tmp_path / "slots")
    assert "seconds to target" not in {row.measure.name for row in make_report(read([slots.path])).estimates}
