"""Scenarios whose clients' label mixes are drawn from a Dirichlet distribution: checked, played, and verified."""

import csv
import shutil
from pathlib import Path

import pytest

import flmarket
from flmarket.analysis.verification.rerun import rerun
from flmarket.analysis.verification.verify import verify
from scenarios.build import Shelf
from scenarios.loader import ScenarioError, dumps, load, parse, points
from scenarios.logs.directory import RunDirectory
from scenarios.running import checkpoint
from scenarios.running.planning import plan
from scenarios.running.runner import Run, execute
from support.runs import interrupt, reseal
from tui.widgets.preview import story

MIXED = """
name = "mixed"
rounds = 4
dqi = "published"

[clients]
count = 12
cores = 1
data_size = [40, 80, 120]
label_mix = { dirichlet = 0.3 }
cost = { per_sample = 0.05, per_emd = 1.0 }

[training]
eval_samples = 200
local_epochs = 1

[[services]]
name = "first"
dataset = "digits"
budget = 12
target_accuracy = 0.99
reward_base = 60
policy = "hqfa"

[[services]]
name = "second"
dataset = "strokes"
budget = 12
target_accuracy = 0.99
reward_base = 60
policy = "random"
"""

QUICK = "training.backend=surrogate", "training.local_epochs=2", "rounds=8"
LASTING = "clients.lasting={ persistence = 0.7, drift = 0.1 }"
NEITHER = "is missing; list EMDs, or give a label_mix"
RESULTS = ("scenario.toml", "rounds.csv", "offers.csv", "events.csv")


def planned(out: Path, *changes: str) -> Run:
    [run] = plan([parse(MIXED, overrides=changes)], [], [0], out, Shelf())
    return run


def played(out: Path, *changes: str) -> Path:
    run = planned(out, *changes)
    execute(run, Shelf())
    return run.directory.path


def table(path: Path, name: str) -> list[dict[str, str]]:
    with (path / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("quick"), *QUICK, LASTING)


def test_a_run_with_real_training_is_valid_and_so_is_its_rerun(good: Path) -> None:
    assert verify(RunDirectory(good)).problems == []
    assert rerun(RunDirectory(good), Shelf()) == []
    emds = {row["emd"] for row in table(good, "offers")}
    assert len(emds) > 20


def test_a_scenario_is_written_with_its_label_mix_and_loads_again() -> None:
    scenario = parse(MIXED)
    assert "[clients.label_mix]\ndirichlet = 0.3\n" in dumps(scenario)
    assert parse(dumps(scenario)) == scenario


def test_the_list_of_emds_makes_way_for_a_label_mix_on_the_command_line() -> None:
    mixed = load("paper", ["clients.emd=[]", "clients.label_mix.dirichlet=0.3"])
    assert mixed.clients.emd == ()
    assert parse(dumps(mixed)) == mixed


def test_a_sweep_over_the_concentration() -> None:
    swept = points(parse(MIXED + '\n[sweep]\n"clients.label_mix.dirichlet" = [0.1, 1.0, 10.0]\n'))
    assert [point.scenario.clients.label_mix.dirichlet for point in swept] == [0.1, 1.0, 10.0]


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (
            "label_mix =", "emd = [0.4]\nlabel_mix =",
            "f:11: clients.label_mix: cannot be given together with clients.emd; remove one of them (emd = [] is none)",
        ),
        ("label_mix = { dirichlet = 0.3 }\n", "", f"f:6: clients.emd: {NEITHER}"),
        ("{ dirichlet = 0.3 }", "{}", f"f:6: clients.emd: {NEITHER}"),
        ("label_mix = { dirichlet = 0.3 }", "emd = []", f"f:10: clients.emd: {NEITHER}"),
        ("= 0.3", "= 0", "f:10: clients.label_mix.dirichlet: must be greater than or equal to 0.001, not 0"),
        ("{ dirichlet = 0.3 }", "0.3", "f:10: clients.label_mix: must be a table, not 0.3"),
        ("dirichlet", "dirichlett", "f:10: clients.label_mix.dirichlett: unknown key; did you mean 'dirichlet'?"),
        (
            "80, 120]", "80, 140]",
            "f:9: clients.data_size: 140 images at EMD 1.8 can need 140 of one of the 10 labels; "
            "the rarest label of digits has 139, of which training.validation = 0.1 leaves 125",
        ),
        (
            "per_emd = 1.0", "per_emd = 1.2",
            "f:11: clients.cost: the cost of 40 images at EMD 1.8 would be -0.160000, and must not be negative",
        ),
    ],
)  # fmt: skip
def test_impossible_worlds_are_refused(before: str, after: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as error:
        parse(MIXED.replace(before, after, 1), "f")
    assert str(error.value) == problem


@pytest.mark.parametrize(
    "changes",
    [
        ("clients.behaviour={ kind = 'misreport', options = { size = 0.5, emd = -0.3, share = 0.6 } }",),
        ("clients.behaviour={ kind = 'misreport', options = { emd = 1.5 } }", LASTING),
        ("clients.behaviour={ kind = 'adaptive' }", LASTING),
        ("clients.behaviour={ kind = 'ring' }",),
        ("market.mechanism='uniform-price'",),
        ("clients.label_mix.dirichlet=0.001",),
        ("clients.label_mix.dirichlet=1000",),
        ('interventions=[{ round = 3, key = "clients.offline", value = [0, 1] }]', "services.first.arrival=4"),
    ],
)
def test_all_that_changes_a_market_goes_with_label_mixes(changes: tuple[str, ...], tmp_path: Path) -> None:
    run = RunDirectory(played(tmp_path, *QUICK, *changes))
    assert verify(run).problems == []
    assert rerun(run, Shelf()) == []


def test_misreports_are_verified_where_networks_train(tmp_path: Path) -> None:
    run = RunDirectory(
        played(tmp_path, "rounds=2", "clients.behaviour={ kind = 'misreport', options = { size = 0.5 } }")
    )
    assert verify(run).problems == []
    assert rerun(run, Shelf()) == []


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize("changes", [(), (*QUICK, LASTING)], ids=["real", "surrogate, lasting"])
def test_a_run_that_was_killed_has_the_same_bytes(
    after: int, changes: tuple[str, ...], good: Path, quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    run = planned(tmp_path, *changes)
    interrupt(run, Shelf(), after=after)
    rounds: list[int] = []
    execute(run, Shelf(), observers=[lambda report: rounds.append(report.round)])
    assert rounds[0] == after + 1
    for name in RESULTS:
        assert (run.directory.path / name).read_bytes() == ((quick if changes else good) / name).read_bytes()


@pytest.mark.parametrize(
    ("column", "value"), [("emd", "0.7"), ("dqi", "0.5"), ("bid", "1.234567"), ("data_size", "80")]
)
def test_tampering_is_named(column: str, value: str, good: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(good, tmp_path / "run"))
    rows = table(path, "offers")
    place = next(i for i, row in enumerate(rows) if row[column] != value)
    rows[place][column] = value
    with (path / "offers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    reseal(path)
    assert any("but the run's seed draws" in found for found in verify(RunDirectory(path)).problems)


def test_another_concentration_does_not_fit_the_logs(good: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(good, tmp_path / "run"))
    text = (path / "scenario.toml").read_text()
    (path / "scenario.toml").write_text(text.replace("dirichlet = 0.3", "dirichlet = 0.31"))
    reseal(path)
    assert any("but the run's seed draws" in found for found in verify(RunDirectory(path)).problems)


def test_a_fork_meets_the_same_world(quick: Path, tmp_path: Path) -> None:
    [changed] = flmarket.fork(quick, 4, {"services.first.budget": 30}, out=tmp_path, progress=False)
    run = RunDirectory(changed.path)
    assert verify(run).problems == []
    assert rerun(run, Shelf()) == []
    held = [
        {(row["round"], row["service"], row["client"]): (row["data_size"], row["emd"]) for row in table(path, "offers")}
        for path in (quick, changed.path)
    ]
    both = held[0].keys() & held[1].keys()
    assert len(both) > 20
    assert all(held[0][key] == held[1][key] for key in both)


def test_environments_hold_every_observation() -> None:
    pytest.importorskip("pettingzoo")
    from scenarios.environments import parallel_env

    env = parallel_env(parse(MIXED, overrides=[*QUICK, LASTING]))
    observations, _ = env.reset(seed=1)
    while env.agents:
        for agent, seen in observations.items():
            assert env.observation_space(agent).contains(seen), agent
        observations, *_ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})


def test_the_preview_says_how_labels_are_drawn() -> None:
    sentences = "\n".join(story(parse(MIXED)))
    assert "clients.label_mix.dirichlet = 0.3" in sentences
    assert "asks 0.20 to 6.00 for training" in sentences
