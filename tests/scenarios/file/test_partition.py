"""``data.partition``: rules and files that divide the images among clients, and what is wrong with others."""

import json
import os
from pathlib import Path

import pytest

from fl.data.partition import Dirichlet, Iid, Shards
from flmarket.analysis.verification.rerun import rerun
from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.file.client_files import partition_of
from scenarios.loader import digest, load, parse, with_values
from scenarios.running.batch import notes, run_all
from scenarios.running.planning import plan
from scenarios.running.run_options import RunOptions
from support.observers import Observer
from support.runs import planned, played, table
from support.scenarios import problems
from support.shell import flmarket

TEXT = """
name = "owned"
rounds = 3
data.partition = "PARTITION"
[clients]
count = 3
cores = 1
cost = { per_sample = 0.01, per_emd = 0 }
[training]
validation = 0
[[services]]
name = "a"
dataset = "digits"
budget = 10
target_accuracy = 0.99
reward_base = 30
policy = "random"
"""
CSV = "client,image\n0,5\n0,7\n1,9\n2,0\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def text_with(partition: str, *, more: str = "") -> str:
    return TEXT.replace("PARTITION", partition).replace("cores = 1", f"cores = 1{more}")


@pytest.mark.parametrize(
    ("text", "division"),
    [("iid", Iid()), ("dirichlet(0.5)", Dirichlet(0.5)), ("shards( 2 )", Shards(2))],
)
def test_rules_are_written_as_calls(text: str, division: object) -> None:
    assert partition_of(parse(text_with(text)), "digits").division == division


@pytest.mark.parametrize("content", [CSV, "\ufeff" + CSV.replace("\n", "\r\n"), '{"1": [9], "0": [5, 7], "2": [0]}'])
def test_a_file_lists_the_images_of_each_client(content: str, here: Path) -> None:
    (here / "parts.csv").write_text(content)
    pools = partition_of(parse(text_with("parts.csv")), "digits").pools(0)
    assert [pools.images[a:b].tolist() for a, b in zip(pools.starts, pools.starts[1:], strict=False)] == [
        [5, 7],
        [9],
        [0],
    ]


def test_one_data_set_may_be_divided_otherwise() -> None:
    scenario = parse(text_with("iid") + '[data.by_dataset.digits]\npartition = "shards(1)"\n')
    assert partition_of(scenario, "digits").division == Shards(1)


def test_scenarios_without_a_partition_keep_their_hash() -> None:
    paper = load("paper", [])
    assert "partition" not in paper.model_dump_json()
    assert digest(paper) != digest(load("paper", ["data.partition=iid", "clients.emd=[]"]))


RULES = "iid, dirichlet(CONCENTRATION), shards(NUMBER)"


FOLLOWS = "cannot be given together with data.partition, from which it follows"
LIMITS = f"must be one of {RULES}, or a file; a CONCENTRATION is 0.001 to 1e+06, a NUMBER at least 1"


@pytest.mark.parametrize(
    ("partition", "more", "problem"),
    [
        ("parts", "", f"f:4: data.partition: parts is neither {RULES} nor a file: No such file or directory"),
        ("shards(0)", "", f"f:4: data.partition: shards(0): {LIMITS}"),
        ("iid(2)", "", f"f:4: data.partition: iid(2): {LIMITS}"),
        (
            "iid", "\ndata_size = [500]",
            "f:4: data.partition: iid: each client owns 479 images of 'digits', "
            "fewer than the 500 of clients.data_size",
        ),
        (
            "iid", '\ndata_size = [100]\ngroups = [{ name = "servers", count = 1, data_size = [600] }]',
            "f:4: data.partition: iid: each client owns 479 images of 'digits', "
            "fewer than the 600 of clients.groups.servers.data_size",
        ),
        (
            "shards(500)", "",
            "f:4: data.partition: shards(500): the training images of 'digits' are too few for 3 clients",
        ),
        ("iid", "\nemd = [0.4]", f"f:8: clients.emd: {FOLLOWS}"),
        ("iid", "\nlabel_mix.dirichlet = 1", f"f:8: clients.label_mix: {FOLLOWS}"),
        ("iid", "\nlasting.persistence = 1", f"f:8: clients.lasting: {FOLLOWS}"),
    ],
)  # fmt: skip
def test_what_cannot_be_divided_is_said_at_its_line(partition: str, more: str, problem: str) -> None:
    assert problems(text_with(partition, more=more)) == [problem]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "parts.csv:1: must have the columns client,image, not ''"),
        ("client;image\n0;5\n", "parts.csv:1: must have the columns client,image, not 'client;image'"),
        ("client,image\n0\n", "parts.csv:2: has 1 values, not 2"),
        ("client,image\n0,one\n", "parts.csv:2: image must be a whole number below a billion, not 'one'"),
        ("client,image\n0,5\n3,6\n", "parts.csv:3: unknown client 3; clients are 0 to 2"),
        ("client,image\n0,5\n1,1438\n", "parts.csv:3: unknown image 1,438; images are 0 to 1,437"),
        ("client,image\n0,5\n1,6\n2,5\n", "parts.csv:4: image 5 is listed twice; see parts.csv:2"),
        ("client,image\n", "parts.csv: no client owns an image"),
        ('client,image\n0,"5\n', "parts.csv:2: is not CSV: unexpected end of data"),
        ('{"0": [1],\n"1": [2}', "parts.csv:2: is not JSON: Expecting ',' delimiter"),
        ('{"0": 1}', 'parts.csv: must list the images of each client: {"0": [17, 4], "1": [5]}'),
        ('{"0": [1], "1": [2.5]}', "parts.csv: client 1: image must be a whole number below a billion, not '2.5'"),
        ('{"a": [1]}', "parts.csv: client must be a whole number below a billion, not 'a'"),
        ('{"0": [1], "1": [2], "1": [3]}', "parts.csv: client 1 is listed twice"),
        ('{"0": [1, 2, 1]}', "parts.csv: client 0: image 1 is listed twice; see parts.csv: client 0"),
        (f'{{"0": [{"9" * 5000}]}}', "parts.csv: has a number of thousands of digits"),
    ],
)
def test_a_wrong_file_is_said_with_its_line(content: str, problem: str, here: Path) -> None:
    (here / "parts.csv").write_text(content)
    assert problems(text_with("parts.csv")) == [f"f:4: data.partition: {problem}"]


@pytest.mark.parametrize("path", ["/dev/zero", "pipe"])
def test_what_may_never_end_is_no_file(path: str, here: Path) -> None:
    os.mkfifo(here / "pipe")
    [problem] = problems(text_with(path))
    assert problem.endswith("nor a file: it is not a regular file")


def test_a_file_that_fills_the_memory_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (here / "parts.csv").open("wb") as file:
        file.truncate(64_000_001)
    [problem] = problems(text_with("parts.csv"))
    assert problem.endswith("nor a file: it is larger than 64,000,000 bytes")


def test_a_file_leaves_no_images_to_validate_on(here: Path) -> None:
    (here / "parts.csv").write_text(CSV)
    [problem] = problems(text_with("parts.csv").replace("validation = 0", "validation = 0.1"))
    assert problem.endswith(
        "belong to clients; set training.validation = 0, which measures accuracy on the test images"
    )


@pytest.mark.parametrize("size", ["", "\ndata_size = [50, 80]"], ids=["everything", "some"])
def test_a_client_that_owns_nothing_is_offline(size: str, here: Path) -> None:
    (here / "parts.json").write_text(json.dumps({0: list(range(0, 900, 2)), 1: [], 2: list(range(1, 900, 2))}))
    scenario = parse(text_with("parts.json", more=size))
    assert "owned: 1 client without an image: offline in all rounds" in notes([scenario], Shelf())
    for policy in ("hqfa", "random"):
        run = played(scenario, here / "runs", policy)
        assert {row["client"] for row in table(run.path, "offers")} <= {"0", "2"}
        assert verify(run).problems == rerun(run, Shelf()) == []


def test_a_client_owns_images_of_all_data_sets_or_of_none(here: Path) -> None:
    (here / "parts.json").write_text('{"0": [1, 2], "2": [3]}')
    (here / "all.json").write_text('{"0": [1, 2], "1": [4], "2": [3]}')
    text = text_with("parts.json") + TEXT[TEXT.index("[[services]]") :].replace("digits", "strokes").replace(
        '"a"', '"b"'
    )
    text = text.replace("[clients]", 'data.by_dataset.strokes.partition = "all.json"\n[clients]')
    assert problems(text) == [
        "f:4: data: client 1 owns images of 'strokes', but none of 'digits'; give it some, or take it out"
    ]


@pytest.mark.parametrize("backend", ["real", "surrogate"])
def test_a_run_trains_on_what_clients_own_and_is_verified(backend: str, here: Path) -> None:
    (here / "parts.json").write_text(json.dumps({client: list(range(client, 1438, 3)) for client in range(3)}))
    text = text_with("parts.json", more="\ndata_size = [50, 80]")
    run = played(parse(text, overrides=[f"training.backend={backend}"]), here / "runs")
    assert verify(run).problems == rerun(run, Shelf()) == []


def test_a_changed_file_is_another_run(here: Path) -> None:
    places = set()
    for content in (CSV, CSV.replace("2,0", "2,1")):
        (here / "parts.csv").write_text(content)
        places.add(planned(parse(text_with("parts.csv")), here / "runs").directory.path)
    assert len(places) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_changes_while_a_batch_plays_ends_it(jobs: int, here: Path, shelf: Shelf) -> None:
    (here / "parts.csv").write_text(CSV)
    scenario = with_values(parse(text_with("parts.csv")), {"training.backend": "surrogate"})
    runs = plan([scenario], [], [0, 1], here / "runs", shelf)
    (here / "parts.csv").write_text(CSV.replace("2,0", "2,1"))
    with pytest.raises(InputError, match=r"^partition/digits on .+ differs from what the batch was planned with"):
        run_all(runs, shelf, Observer(), RunOptions(jobs=jobs, workers=0))
    assert not [*here.glob("runs/*/*/*/*")]


@pytest.mark.parametrize("backend", ["real", "surrogate"])
def test_runs_of_another_file_are_not_called_right_or_wrong_by_the_present_one(backend: str, here: Path) -> None:
    owned = {client: list(range(client, 1438, 3)) for client in range(3)}
    (here / "parts.json").write_text(json.dumps(owned))
    text = text_with("parts.json", more="\ndata_size = [50, 80]")
    run = played(parse(text, overrides=[f"training.backend={backend}"]), here / "runs").path
    (here / "parts.json").write_text(json.dumps(dict(zip(owned, reversed(owned.values()), strict=True))))
    other = "parts.json is not the file with which the run was played\n"
    verified = flmarket("verify", str(run))
    assert (verified.returncode, verified.stderr) == (2, "")
    assert other in verified.stdout
    forked = flmarket("fork", str(run), "--round", "2", "--set", "services.a.budget=5")
    assert (forked.returncode, forked.stderr) == (2, f"{run}: {other}")
