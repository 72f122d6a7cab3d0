"""`flmarket verify`: a good run passes, and every kind of tampering is named."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from des.allocation import NO_CORE, allocate
from des.behaviour import BEHAVIOURS, Behaviour
from des.log_records import Kind
from des.mechanism import MECHANISMS, Book, Clearing, Mechanism
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.rerun import rerun
from flmarket.analysis.verification.verify import RULES, verify
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import load, parse
from scenarios.logs.columns import ALL_TABLES, AMOUNTS, RERUN
from scenarios.logs.directory import RunDirectory
from scenarios.logs.table import WORD, Column
from support.runs import change, played, reseal
from support.runs import table as rows_of
from tui.style.sentences import story

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


@pytest.fixture(scope="module")
def good(two_services: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = parse(two_services + INTERVENTIONS, overrides=["rounds=6"])
    return played(scenario, tmp_path_factory.mktemp("good")).path


@pytest.fixture(scope="module")
def interested(two_services: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of clients that are not truthful, which has clients.csv."""
    scenario = parse(two_services + INTERVENTIONS, overrides=["rounds=6", "clients.behaviour.kind=adaptive"])
    return played(scenario, tmp_path_factory.mktemp("interested")).path


@pytest.fixture(scope="module")
def answering(two_services: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of clients that respond, which has responses.csv."""
    overrides = ["rounds=3", "clients.response={kind='moral-hazard', options={least=0.5, detection=0.4}}"]
    return played(parse(two_services, overrides=overrides), tmp_path_factory.mktemp("answering")).path


@pytest.fixture(scope="module")
def going_on(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose work outlasts its rounds."""
    scenario = load("stragglers", {"training.backend": "surrogate", "rounds": 6})
    return played(scenario, tmp_path_factory.mktemp("going_on")).path


@pytest.fixture
def run(good: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(good, tmp_path / "run"))


def test_a_run_of_ours_is_good(good: Path) -> None:
    verdict = verify(RunDirectory(good))
    assert verdict.problems == []
    assert (verdict.rounds, verdict.offers > 20, verdict.paid > 0) == (6, True, True)


def test_what_is_wrong_with_a_value_comes_before_how_it_is_written(run: Path) -> None:
    change(run, "offers", {"payment": "0.1"}, lambda row: row["outcome"] == "served")
    first, *_, last = verify(RunDirectory(run)).problems
    assert "the payment 0.100000 is below the bid" in first
    assert "should be written" in last


def test_data_may_cost_nothing(two_services: str, tmp_path: Path) -> None:
    """Bids of 0 are legal; with offers at the bid, nobody is paid anything."""
    free = ["rounds=1", "clients.cost={per_sample=0, per_emd=0}"]
    run = played(parse(two_services, overrides=free), tmp_path, "random")
    assert verify(run).problems == []
    assert {row["bid"] for row in rows_of(run.path, "offers")} == {"0.000000"}


class Markup(Behaviour):
    """Each client asks a quarter more than its cost."""

    def bids(self, round_, costs):
        return costs + costs // 4

    def bid_range(self, lowest, highest):
        return self.bids(0, lowest), self.bids(0, highest)


def test_bids_are_judged_and_previewed_by_the_clients_behaviour(
    two_services: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second behaviour: only what the registry returns changes, and all that know bids follow it."""
    scenario = parse(two_services, overrides=["rounds=3"])
    asked = next(text for text in story(scenario) if " asks " in text)
    with monkeypatch.context() as patched:
        patched.setattr(BEHAVIOURS, "create", lambda name, **options: Markup())
        run = played(scenario, tmp_path)
        assert verify(run).problems == []
        assert next(text for text in story(scenario) if " asks " in text) != asked
        change(run.path, "offers", {"bid": "0.123456"})
        assert ": bid is 0.123456, but the run's seed draws " in "\n".join(verify(run).problems)
    # Truthful clients would not have asked that.
    wrong = [text for text in verify(run).problems if ": bid is " in text]
    assert len(wrong) == verify(run).offers


def test_the_page_on_logs_names_every_key_of_meta_json(good: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "logs.md").read_text().partition("## meta.json")[2]
    assert {key for key in RunDirectory(good).meta() if f"`{key}`" not in page} == set()


def served(row: dict[str, str]) -> bool:
    return row["outcome"] == "served"


def any_row(_: dict[str, str]) -> bool:
    return True


def has_left(row: dict[str, str]) -> bool:
    return row["status"] == "left"


@pytest.mark.parametrize(
    ("table", "column", "value", "where", "problem"),
    [
        ("offers", "payment", "0.100000", served, "below the bid"),
        ("offers", "payment", "9.000000", served, "over its budget"),
        ("offers", "bid", "-0.100000", served, ": the bid -0.100000 is negative (eq. 5)"),
        ("offers", "bid", "0.123456", served, "bid is 0.123456, but the run's seed draws "),
        ("offers", "data_size", "21", served, "data_size is 21, but the run's seed draws "),
        ("offers", "client", "8", served, "unknown client; clients are 0 to 7"),
        ("offers", "core", "1", served, "cores are not used once each"),
        ("offers", "outcome", "outbid", served, "was outbid, but has a core, a start or an end"),
        ("offers", "core", "", served, "core is nothing, but by its payment it should be 0"),
        ("offers", "outcome", "served", lambda row: row["outcome"] == "outbid", "cores are not used once each"),
        ("offers", "end", "1e9", served, "end is 1000000000.000000, but by the scenario's durations it should be "),
        ("offers", "payment", "a lot", served, "offers.csv: cannot be read: "),
        ("rounds", "service", "omega", any_row, "one row for each round and service"),
        ("rounds", "budget", "7.000000", any_row, "budget is 7.000000, but the scenario has 6.500000"),
        ("rounds", "spent", "0.000001", any_row, "spent is 0.000001, but its offers come to"),
        ("rounds", "served", "99", any_row, "served is 99"),
        ("rounds", "mean_emd", "0.7", lambda row: row["served"] != "0", "mean_emd is 0.7"),
        ("rounds", "reward", "61.0", any_row, "the reward 61.0 is not Omega^accuracy"),
        ("rounds", "accuracy", "0.990000", has_left, "does not keep"),
        ("rounds", "status", "left", lambda row: row["status"] == "training", "the run does not end after round 1"),
        ("rounds", "round", "7", any_row, "one row for each round and service"),
        ("offers", "service", "omega", any_row, "unknown service"),
        ("offers", "outcome", "stolen", any_row, "unknown outcome stolen"),
        ("offers", "client", "9" * 30, any_row, "offers.csv: cannot be read: "),
        ("offers", "client", "1", lambda row: row["round"] == "6", "client 1: the client is offline in this round"),
        ("offers", "paid", "0.000001", served, "was paid 0.000001, below its bid"),
        ("offers", "paid", "6.500000", served, "was paid 6.500000, but the payment offered is"),
        ("offers", "paid", "", served, "was served, but was paid nothing"),
        ("offers", "paid", "1.000000", lambda row: row["outcome"] == "outbid", "was outbid, but was paid"),
        ("rounds", "round", "0", any_row, "one row for each round and service"),
        ("rounds", "dataset", "strokes", any_row, "round 1, alpha: dataset is strokes, but the scenario has digits"),
        ("rounds", "policy", "hqfa", any_row, "round 1, alpha: policy is hqfa, but the scenario has random"),
        ("rounds", "target_accuracy", "0.990001", any_row, "is 0.990001, but the scenario has 0.99"),
        ("rounds", "accuracy", "0.333333", any_row, "alpha: accuracy is 0.333333, but it can only be 0.33"),
        ("rounds", "test_accuracy", "0.333333", any_row, "test_accuracy is 0.333333, but it can only be 0.33"),
        ("rounds", "test_accuracy", "1.010000", any_row, "the test accuracy 1.010000 is not between 0 and 1"),
        ("events", "amount", "1.0", lambda row: row["event"] == "refresh", "the event refresh has the amount 1.0"),
        ("events", "amount", "0.000001", lambda row: row["event"] == "pay", ", but should be pay of "),
        ("events", "amount", "0.000001", lambda row: row["event"] == "award", ", but should be award of "),
        ("events", "amount", "0.000001", lambda row: row["event"] == "decision", "but its decisions come to "),
        ("events", "event", "evaluate", lambda row: row["event"] == "exit", ", but should be exit of "),
        ("events", "sim_time", "1e9", lambda row: row["round"] == "2", "refresh at 1000000000.000000 in round 2, but "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("lines", [50_000, pytest.param(20, marks=pytest.mark.slow)])
def test_tampering_is_named(
    table: str,
    column: str,
    value: str,
    where: Callable[[dict[str, str]], bool],
    problem: str,
    lines: int,
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether logs are read whole or in blocks of a round."""
    monkeypatch.setattr("flmarket.analysis.verification.verify.BLOCK", lines)
    change(run, table, {column: value}, where)
    assert problem in "\n".join(verify(RunDirectory(run)).problems)


def other(column: Column, text: str) -> str:
    """Another value of a column's type."""
    if column.type is WORD:
        return "other"
    if column.type.dtype == "string":
        words = column.type.name.replace("`", "").split(", ")
        return next(word for word in words if word != text and (word in AMOUNTS) == (text in AMOUNTS))
    value = column.read(text)
    return column.write(value + (0.01 if column.type.dtype == "float64" and not column.type.exact else 1))


CHECKED = [
    (table.name, column.name, column) for table in ALL_TABLES.values() for column in table.columns if not column.by
]
# Those of contracts that are cancelled are forged in tests/scenarios/test_contracts.py.
CHECKED += [("events", kind.value, column) for kind, column in AMOUNTS.items() if kind is not Kind.CANCEL]


@pytest.mark.parametrize(
    ("table", "name", "column"), CHECKED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_each_column_is_checked_by_the_rule_that_it_names(
    table: str, name: str, column: Column, run: Path, interested: Path, answering: Path, going_on: Path, tmp_path: Path
) -> None:
    """Where a column says that only a new run can tell, no rule sees the change."""
    if (special := {"clients": interested, "responses": answering, "models": going_on}.get(table)) is not None:
        run = Path(shutil.copytree(special, tmp_path / "special"))

    def suits(row: dict[str, str]) -> bool:
        if column.rule == RERUN and table == "offers":
            return row["outcome"] == "outbid"
        rest = row.get("event", name) == name if column.name == "amount" else row.get("outcome", "served") == "served"
        return rest and row[column.name] != ""

    text = next(row for row in rows_of(run, table) if suits(row))[column.name]
    change(run, table, {column.name: other(column, text)}, suits)
    if column.rule == RERUN:
        assert verify(RunDirectory(run)).problems == []
    else:
        logs = Logs.read(RunDirectory(run))
        assert list(RULES["shape"](logs)) or list(RULES[column.rule](logs))


def test_every_rule_checks_a_column() -> None:
    assert {column.rule for _, _, column in CHECKED} - {RERUN} == set(RULES)


@pytest.mark.parametrize("text", ["1e3", "nan", "", "inf", "-0.0", "+1.0", "01.0", " 1.0", "1e1", "9" * 5000])
def test_values_that_flmarket_would_write_differently_are_named(text: str, run: Path) -> None:
    change(run, "rounds", {"sim_time": text})
    [*_, problem] = verify(RunDirectory(run)).problems
    assert "rounds.csv: cannot be read: " in problem or problem.startswith("rounds.csv, line 2: '1,")
    assert len(problem) < 1_000


def swap(path: Path, one: int, other: int) -> None:
    """Swap two lines, counted from 1, and set the digests in meta.json."""
    lines = path.read_text().splitlines(keepends=True)
    lines[one - 1], lines[other - 1] = lines[other - 1], lines[one - 1]
    path.write_text("".join(lines))
    reseal(path.parent)


def test_rows_in_another_order_are_named(run: Path) -> None:
    """Two events at the same time, in a round whose rows are all there."""
    lines = (run / "events.csv").read_text().splitlines()
    first = next(n for n, line in enumerate(lines, start=1) if ",award," in line)
    swap(run / "events.csv", first, first + 1)
    [problem] = verify(RunDirectory(run)).problems
    assert problem.startswith(f"events.csv, line {first}: is award of ")
    assert ", but should be award of " in problem


def test_an_offer_among_those_of_a_later_round_is_named(run: Path) -> None:
    lines = (run / "offers.csv").read_text().splitlines()
    last = max(n for n, line in enumerate(lines, start=1) if line.startswith("1,"))
    swap(run / "offers.csv", last, last + 1)
    assert f"offers.csv, line {last}: the row is out of order" in verify(RunDirectory(run)).problems


@pytest.mark.parametrize(
    ("change_text", "line"),
    [
        (lambda text: text.replace("\n", "\r\n"), 1),
        (lambda text: text.replace("\n", "\n\n", 1), 2),
        (lambda text: text.replace("alpha", '"alpha"', 1), 2),
        (lambda text: text[:-1], -1),
    ],
    ids=["line ends", "empty line", "quotes", "no end"],
)
def test_a_table_that_flmarket_would_write_differently_is_named(
    change_text: Callable[[str], str], line: int, run: Path
) -> None:
    path = run / "rounds.csv"
    text = path.read_bytes().decode()
    path.write_bytes(change_text(text).encode())
    reseal(run)
    number = line if line > 0 else text.count("\n") + 1
    problem = f"rounds.csv, line {number}: "
    if line == 1:  # the header itself
        with pytest.raises(InputError, match=r"rounds\.csv: does not have the columns of rounds\.csv"):
            verify(RunDirectory(run))
    else:
        [found] = verify(RunDirectory(run)).problems
        assert found.startswith(problem)


def test_data_and_bids_are_those_that_the_seed_draws(run: Path) -> None:
    """Another client's data, with the bid that follows from its cost: right by itself, but not that client's."""
    rows = rows_of(run, "offers")
    one = next(row for row in rows if row["outcome"] == "outbid")
    other = next(row for row in rows if row["data_size"] != one["data_size"])
    for key in ("data_size", "emd", "dqi", "bid"):
        change(run, "offers", {key: other[key]}, lambda row: row["outcome"] == "outbid")
    where = f"offers.csv, line {2 + rows.index(one)}: round {one['round']}, {one['service']}, client {one['client']}"
    problems = verify(RunDirectory(run)).problems
    assert f"{where}: data_size is {other['data_size']}, but the run's seed draws {one['data_size']}" in problems
    assert f"{where}: bid is {other['bid']}, but the run's seed draws {one['bid']}" in problems


@pytest.mark.parametrize("client", ["0", "1"])
def test_the_data_of_each_client_is_checked(client: str, run: Path) -> None:
    change(run, "offers", {"dqi": "0.123456"}, lambda row: row["client"] == client)
    assert any(f", client {client}: dqi is 0.123456" in problem for problem in verify(RunDirectory(run)).problems)


def test_the_last_bit_of_a_dqi_counts_wherever_the_run_was_played(run: Path) -> None:
    """DQI are the same on every machine: a last bit is a change, in a single row and in all rows alike."""
    rows = rows_of(run, "offers")
    value = next(row["dqi"] for row in rows if row["outcome"] == "outbid")
    other = str(math.nextafter(float(value), 1.0))
    assert (count := sum(row["dqi"] == value for row in rows)) > 1
    change(run, "offers", {"dqi": other}, lambda row: row["dqi"] == value and row["outcome"] == "outbid")
    assert len(verify(RunDirectory(run)).problems) == 1
    while any(line.split(",")[5] == value for line in (run / "offers.csv").read_text().splitlines()):
        change(run, "offers", {"dqi": other}, lambda row: row["dqi"] == value)
    meta = json.loads((run / "meta.json").read_text())
    (run / "meta.json").write_text(json.dumps(meta | {"machine": {"system": "Plan9", "processor": "arm64"}}))
    reseal(run)
    wrong = [text for text in verify(RunDirectory(run)).problems if "dqi is " in text and "mean_dqi" not in text]
    assert len(wrong) == count
    assert wrong[0].endswith(f"dqi is {other}, but the run's seed draws {value}")


def test_the_last_bit_of_a_reward_counts_where_the_accuracy_is_known(run: Path) -> None:
    """The accuracy is a share of the test images, so that there is one reward for it."""
    reward = rows_of(run, "rounds")[0]["reward"]
    change(run, "rounds", {"reward": str(math.nextafter(float(reward), math.inf))})
    [problem] = verify(RunDirectory(run)).problems
    assert problem.endswith(" is not Omega^accuracy")


@pytest.mark.parametrize("change_of_accuracy", [-0.01, 0.01])
def test_an_accuracy_stays_where_nobody_was_served(change_of_accuracy: float, one_service: str, tmp_path: Path) -> None:
    """A tenth of a unit of money buys nobody in the second round."""
    broke = '\n[[interventions]]\nround = 2\nkey = "services.alpha.budget"\nvalue = 0.1\n'
    run = played(parse(one_service + broke, overrides=["rounds=2"]), tmp_path)
    first, second = rows_of(run.path, "rounds")
    assert (second["served"], second["accuracy"]) == ("0", first["accuracy"])
    assert verify(run).problems == []
    changed = f"{float(first['accuracy']) + change_of_accuracy:.6f}"
    change(run.path, "rounds", {"accuracy": changed}, lambda row: row["round"] == "2")
    problem = f"no client served, but the accuracy changes to {changed}"
    assert f"rounds.csv, line 3: round 2, alpha: {problem}" in verify(run).problems


def test_a_run_ends_when_all_services_have_left(one_service: str, tmp_path: Path) -> None:
    easy = parse(one_service, overrides=["rounds=3", "services.alpha.target_accuracy=0.01"])
    run = played(easy, tmp_path)
    assert verify(run).problems == []
    rounds = run.path / "rounds.csv"
    header, first = rounds.read_text().splitlines()
    cells = dict(zip(header.split(","), first.split(","), strict=True))
    after = {"round": "2", "status": "left", "offered": "0.000000", "spent": "0.000000", "wanted": "0", "served": "0"}
    after |= dict.fromkeys(["samples", "mean_emd", "mean_dqi", "mean_bid", "mean_payment", "makespan"], "")
    rounds.write_text(f"{header}\n{first}\n{','.join((cells | after).values())}\n")
    reseal(run.path)
    assert "the run does not end after round 1, when all services have left" in verify(run).problems


def test_a_round_lasts_as_long_as_its_slot(one_service: str, tmp_path: Path) -> None:
    slots = parse(one_service, overrides=["rounds=3", "timeline.slot=5"])
    run = played(slots, tmp_path)
    assert [row["sim_time"] for row in rows_of(run.path, "rounds")] == ["5.000000", "10.000000", "15.000000"]
    assert verify(run).problems == []


class Even(Mechanism):
    """Clients with even numbers serve whoever pays most, for the bid; the others nobody."""

    def clear(self, book: Book) -> Clearing:
        core = allocate(book.services, book.clients, book.payments, book.cores, book.tie_order)
        return Clearing(np.where(book.clients % 2 == 0, core, NO_CORE), book.bids)


@pytest.mark.parametrize("name", ["even", "unpaid"])
def test_another_mechanism_may_refuse_and_charge_as_it_likes(
    name: str, one_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is called: here names before and after that of the paper's."""
    monkeypatch.setattr(MECHANISMS, "_registered", {})
    MECHANISMS.register(name, Even)
    scenario = parse(one_service, overrides=["rounds=2", f"market.mechanism={name}"])
    run = played(scenario, tmp_path)
    assert "outbid" in (run.path / "offers.csv").read_text()
    assert verify(run).problems == []
    change(run.path, "offers", {"paid": "6.400000"}, served)
    [problem, *_] = [text for text in verify(run).problems if "was paid" in text]
    assert "was paid 6.400000, but the payment offered is " in problem


def test_the_lowest_bid_is_that_of_the_round(run: Path) -> None:
    change(run, "events", {"amount": "0.600000"}, lambda row: row["event"] == "bid")
    assert verify(RunDirectory(run)).problems == [
        "events.csv, line 3: round 1, alpha: amount is 0.600000, but the lowest bid of the round is 0.500000"
    ]


def test_a_data_set_that_is_not_known_here_leaves_the_rest_checked(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a run's plug-in is not loaded: EMD, DQI and bids depend on its labels, data sizes do not."""

    def info(name: str) -> None:
        raise InputError(f"unknown data set {name!r}")

    monkeypatch.setattr("flmarket.analysis.verification.evidence.info", info)
    assert verify(RunDirectory(run)).problems == []
    change(run, "offers", {"data_size": "20"}, lambda row: row["data_size"] == "40")
    assert ": data_size is 20, but the run's seed draws 40" in "\n".join(verify(RunDirectory(run)).problems)
    # The size of its test split is not known either; six decimals of the accuracy leave a narrow range of rewards.
    reward = float(rows_of(run, "rounds")[0]["reward"])
    change(run, "rounds", {"reward": str(1.001 * reward)})
    assert f"the reward {1.001 * reward} is not Omega^accuracy" in "\n".join(verify(RunDirectory(run)).problems)


def test_what_is_no_table_is_an_input_error(run: Path) -> None:
    (run / "events.csv").write_text("round,sim_time\n")
    reseal(run)
    with pytest.raises(InputError, match=r"events\.csv"):
        verify(RunDirectory(run))


def test_a_rerun_finds_what_no_rule_can(run: Path) -> None:
    shelf = Shelf()
    assert rerun(RunDirectory(run), shelf) == []
    change(run, "offers", {"dqi": "0.5"}, lambda row: row["round"] == "1" and not served(row))
    [difference] = rerun(RunDirectory(run), shelf)
    assert difference.startswith("offers.csv differs from a new run's from line ")
