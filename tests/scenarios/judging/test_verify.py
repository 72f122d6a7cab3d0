"""`flmarket verify`: a good run passes, and every kind of tampering is named."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from des.behaviour import Behaviour
from fl.errors import InputError
from scenarios.build import Shelf
from scenarios.judging.rerun import rerun
from scenarios.judging.rules import RULES
from scenarios.judging.verify import read_logs, verify
from scenarios.loader import parse
from scenarios.logs.columns import AMOUNTS, RERUN, TABLES
from scenarios.logs.directory import RunDirectory
from scenarios.logs.table import MONEY, WORD, Column
from scenarios.running.batch import plan, run_all
from support.runs import reseal
from tui.widgets.preview import story

INTERVENTIONS = """
[[interventions]]
round = 4
key = "clients.cores"
value = 2

[[interventions]]
round = 5
key = "services.alpha.budget"
value = 3.0

[[interventions]]
round = 6
key = "clients.offline"
value = [0, 1]
"""


class Observer:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


@pytest.fixture(scope="module")
def good(two_services: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shelf = Shelf()
    scenario = parse(two_services + INTERVENTIONS, overrides=["rounds=6"])
    runs = plan([scenario], [], [0], tmp_path_factory.mktemp("good"), shelf)
    assert not run_all(runs, shelf, Observer(), workers=0).failed
    return runs[0].directory.path


@pytest.fixture
def run(good: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(good, tmp_path / "run"))


def change(path: Path, column: str, value: str, where: Callable[[dict[str, str]], bool]) -> None:
    """Set a value in the first row that fits, and the digests in meta.json, as one does who knows of them."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    row = next(row for row in rows if where(row))
    row[column] = value
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    reseal(path.parent)


def test_a_run_of_ours_is_good(good: Path) -> None:
    verdict = verify(RunDirectory(good))
    assert verdict.problems == []
    assert (verdict.rounds, verdict.offers > 20, verdict.paid > 0) == (6, True, True)


class Markup(Behaviour):
    """Each client asks a quarter more than its cost."""

    def bids(self, round_, costs):
        return costs + costs // 4

    def bid_range(self, lowest, highest):
        return self.bids(0, lowest), self.bids(0, highest)


def test_bids_are_judged_and_previewed_by_the_clients_behaviour(
    two_services: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second behaviour: only what ``scenarios/build.py`` returns changes, and all that know bids follow it."""
    scenario = parse(two_services, overrides=["rounds=3"])
    asked = next(text for text in story(scenario) if " asks " in text)
    with monkeypatch.context() as patched:
        patched.setattr("scenarios.build.behaviour_of", lambda scenario: Markup())
        shelf = Shelf()
        [run] = plan([scenario], [], [0], tmp_path, shelf)
        assert not run_all([run], shelf, Observer(), workers=0).failed
        assert verify(run.directory).problems == []
        assert next(text for text in story(scenario) if " asks " in text) != asked
        change(run.directory.path / "offers.csv", "bid", "0.123456", lambda row: True)
        assert "does not follow from the cost of its data, " in "\n".join(verify(run.directory).problems)
    # Truthful clients would not have asked that.
    wrong = [text for text in verify(run.directory).problems if "does not follow from the cost" in text]
    assert len(wrong) == verify(run.directory).offers


NOT_THOSE = "are not those of rounds.csv and offers.csv"


def test_the_page_on_logs_names_every_key_of_meta_json(good: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "logs.md").read_text().partition("## meta.json")[2]
    assert {key for key in RunDirectory(good).meta() if f"`{key}`" not in page} == set()


def served(row: dict[str, str]) -> bool:
    return row["outcome"] == "served"


def has_left(row: dict[str, str]) -> bool:
    return row["status"] == "left"


@pytest.mark.parametrize(
    ("table", "column", "value", "where", "problem"),
    [
        ("offers", "payment", "0.100000", served, "below the bid"),
        ("offers", "payment", "9.000000", served, "over the budget"),
        ("offers", "bid", "0.123456", served, "does not follow from the cost of its data, "),
        ("offers", "data_size", "21", served, "a data size of 21 is not in the scenario"),
        ("offers", "client", "8", served, "unknown client; clients are 0 to 7"),
        ("offers", "core", "1", served, "cores are not used once each"),
        ("offers", "outcome", "outbid", served, "refuses an offer with a core free"),
        ("offers", "outcome", "served", lambda row: row["outcome"] == "outbid", "serves 2 services with 1 cores"),
        ("offers", "end", "1e9", served, "works outside of the round"),
        ("offers", "payment", "a lot", served, "payment: 'a lot' is not a value of this column (money: "),
        ("rounds", "service", "omega", lambda row: True, "round 1: omega: unknown service"),
        ("rounds", "budget", "7.000000", lambda row: True, "is not the scenario's 6.5"),
        ("rounds", "spent", "0.000001", lambda row: True, "spent is 0.000001, but its offers come to"),
        ("rounds", "served", "99", lambda row: True, "served is 99"),
        ("rounds", "mean_emd", "0.7", lambda row: row["served"] != "0", "mean_emd is 0.7"),
        ("rounds", "reward", "61.0", lambda row: True, "is not 60.0^accuracy"),
        ("rounds", "accuracy", "0.990000", has_left, "does not keep"),
        ("rounds", "status", "left", lambda row: row["status"] == "training", "has left without meeting its target"),
        ("rounds", "round", "7", lambda row: True, "one row for each round and service"),
        ("events", "amount", "0.000001", lambda row: row["event"] == "pay", f"its pay events {NOT_THOSE}"),
        ("events", "amount", "0.000001", lambda row: row["event"] == "award", f"its award events {NOT_THOSE}"),
        ("events", "amount", "0.000001", lambda row: row["event"] == "decision", f"its decision events {NOT_THOSE}"),
        ("events", "event", "evaluate", lambda row: row["event"] == "exit", f"its exit events {NOT_THOSE}"),
        ("events", "sim_time", "1e9", lambda row: row["round"] == "2", "time runs backwards"),
    ],
)  # fmt: skip
def test_tampering_is_named(
    table: str, column: str, value: str, where: Callable[[dict[str, str]], bool], problem: str, run: Path
) -> None:
    change(run / f"{table}.csv", column, value, where)
    assert problem in "\n".join(verify(RunDirectory(run)).problems)


def other(column: Column, text: str) -> str:
    """Another value of a column's type."""
    if column.type is WORD:
        return "other"
    if column.type.dtype == "string":
        words = column.type.name.replace("`", "").split(", ")
        return next(word for word in words if word != text and (word in AMOUNTS) == (text in AMOUNTS))
    value = column.read(text)
    return column.write(value + (0.01 if column.type.dtype == "float64" and column.type is not MONEY else 1))


CHECKED = [(table.name, column.name, column) for table in TABLES.values() for column in table.columns if not column.by]
CHECKED += [("events", kind.value, column) for kind, column in AMOUNTS.items()]


@pytest.mark.parametrize(
    ("table", "name", "column"), CHECKED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_each_column_is_checked_by_the_rule_that_it_names(table: str, name: str, column: Column, run: Path) -> None:
    """Where a column says that only a new run can tell, no rule sees the change."""

    def suits(row: dict[str, str]) -> bool:
        if column.rule == RERUN and table == "offers":
            return row["outcome"] == "outbid"
        rest = row.get("event", name) == name if column.name == "amount" else row.get("outcome", "served") == "served"
        return rest and row[column.name] != ""

    path = run / f"{table}.csv"
    with path.open(newline="") as file:
        text = next(row for row in csv.DictReader(file) if suits(row))[column.name]
    change(path, column.name, other(column, text), suits)
    logs, problems = read_logs(RunDirectory(run))
    assert not problems
    assert logs is not None
    if column.rule == RERUN:
        assert verify(RunDirectory(run)).problems == []
    else:
        assert list(RULES[column.rule](logs))


def test_every_rule_checks_a_column() -> None:
    assert {column.rule for _, _, column in CHECKED} - {RERUN} == set(RULES)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1e3", "sim_time: '1e3' should be written '1000.0'"),
        ("nan", "sim_time: 'nan' is not a value of this column"),
        ("", "sim_time: '' is not a value of this column"),
    ],
)
def test_values_that_flmarket_would_write_differently_are_named(text: str, problem: str, run: Path) -> None:
    change(run / "rounds.csv", "sim_time", text, lambda row: True)
    assert f"rounds.csv, line 2: {problem}" in "\n".join(verify(RunDirectory(run)).problems)


def test_what_must_be_empty_is_named(run: Path) -> None:
    change(run / "events.csv", "amount", "1.000000", lambda row: row["event"] == "refresh")
    [problem] = verify(RunDirectory(run)).problems
    assert problem == "events.csv, line 2: amount: '1.000000', where it must be empty"


@pytest.mark.parametrize(
    ("paid", "who", "problem"),
    [
        ("0.000001", served, "was paid 0.000001, below its bid"),
        ("6.500000", served, "was paid 6.500000, but the payment offered is"),
        ("", served, "was served, but was not paid"),
        ("1.000000", lambda row: row["outcome"] == "outbid", "was outbid, but was paid"),
    ],
)  # fmt: skip
def test_prices_lie_between_bid_and_payment(
    paid: str, who: Callable[[dict[str, str]], bool], problem: str, run: Path
) -> None:
    change(run / "offers.csv", "paid", paid, who)
    assert problem in "\n".join(verify(RunDirectory(run)).problems)


def test_an_offer_to_a_client_that_is_offline_is_named(run: Path) -> None:
    change(run / "offers.csv", "client", "1", lambda row: row["round"] == "6")
    assert "client 1: is offline, but is wanted" in "\n".join(verify(RunDirectory(run)).problems)


def test_what_is_no_table_is_an_input_error(run: Path) -> None:
    (run / "events.csv").write_text("round,sim_time\n")
    reseal(run)
    with pytest.raises(InputError, match=r"events\.csv"):
        verify(RunDirectory(run))


def test_a_rerun_finds_what_no_rule_can(run: Path) -> None:
    shelf = Shelf()
    assert rerun(RunDirectory(run), shelf) == []
    change(run / "offers.csv", "dqi", "0.5", lambda row: row["round"] == "1" and not served(row))
    [difference] = rerun(RunDirectory(run), shelf)
    assert difference.startswith("offers.csv differs from a new run's from line ")
