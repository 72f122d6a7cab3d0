"""Whatever there is in a world: its runs are valid, come out the same again, and can be resumed and forked."""

from collections.abc import Callable
from pathlib import Path

import pytest

import flmarket
from flmarket.analysis.verification.rerun import rerun
from flmarket.analysis.verification.verify import verify
from scenarios.build import Shelf
from scenarios.loader import dumps, parse
from scenarios.logs.directory import RunDirectory
from scenarios.running import checkpoint
from scenarios.running.batch_run import AfterRound
from scenarios.running.runner import execute
from support.runs import RESULTS, change, interrupt, planned, played, reseal, table
from support.tiers import slow
from support.worlds import LASTING, WORLDS, behaving
from tui.style.sentences import story

each_world = pytest.mark.parametrize("world", WORLDS)
Played = Callable[[str], RunDirectory]
FEW = "clients.count=4"
TWO_LEAVE = 'interventions=[{ round = 3, key = "clients.offline", value = [0, 1] }]'
DRAWN = "but the run's seed draws "


@each_world
def test_a_run_is_valid_and_so_is_its_rerun(world: str, run_of: Played) -> None:
    assert verify(run_of(world)).problems == []
    assert rerun(run_of(world), Shelf()) == []


@each_world
def test_a_scenario_is_written_with_all_that_is_in_it(world: str) -> None:
    scenario = WORLDS[world].load()
    assert parse(dumps(scenario)) == scenario.with_seats({})


@pytest.mark.parametrize(
    ("world", "after"),
    [
        *(("changing", 4), ("mixed", 3), ("split", 4), ("switching", 5), ("adaptive", 7), ("private, adaptive", 5)),
        *slow(("changing", 1), ("changing", 11), ("mixed, trained", 1), ("switching", 3), ("switching", 7)),
        *slow(("adaptive", 1)),
    ],
)
def test_a_run_that_was_killed_has_the_same_bytes(
    world: str, after: int, run_of: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    run = planned(WORLDS[world].load(), tmp_path, WORLDS[world].policy)
    interrupt(run, Shelf(), after)
    rounds: list[int] = []
    execute(run, Shelf(), AfterRound(lambda report: rounds.append(report.round)))
    assert rounds[0] == after + 1
    for path in run_of(world).path.iterdir():
        if path.name in (*RESULTS, "clients.csv"):
            assert (run.directory.path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("world", ["changing", "mixed", "private", "adaptive", *slow("split", "ring", "misreport")])
def test_a_fork_meets_the_same_world(world: str, run_of: Played, tmp_path: Path) -> None:
    [fork] = flmarket.fork(run_of(world).path, 5, {"clients.cores": 4}, out=tmp_path, progress=False)
    forked = RunDirectory(fork.path)
    assert verify(forked).problems == []
    assert rerun(forked, Shelf()) == []
    scenario = parse(forked.scenario_text())
    assert scenario.model_copy(update={"interventions": ()}) == parse(run_of(world).scenario_text())
    held, again = (
        {(row["round"], row["service"], row["client"]): (row["data_size"], row["emd"]) for row in table(path, "offers")}
        for path in (run_of(world).path, forked.path)
    )
    both = held.keys() & again.keys()
    assert len(both) > 20
    assert all(held[key] == again[key] for key in both)


@pytest.mark.parametrize(
    ("world", "name", "place", "values", "problem"),
    [
        ("changing", "rounds", ("1", "early"), {"status": "training"}, "status is training, but by its arrival, "),
        ("changing", "rounds", ("3", "early"), {"status": "waiting"}, "status is waiting, but by its arrival, "),
        ("changing", "rounds", ("2", "late"), {"reward": "1.0"}, "the reward 1.0 is not Omega^accuracy"),
        ("changing", "rounds", ("2", "late"), {"budget": "20.000000"}, "budget is 20.000000, but the scenario has 0"),
        ("changing", "rounds", ("12", "early"), {"budget": "20.000000"}, "is 20.000000, but the scenario has "),
        ("changing", "offers", ("4", "early"), {"data_size": "201"}, DRAWN),
        ("mixed", "offers", ("4", "first"), {"emd": "0.7"}, DRAWN),
        ("mixed", "offers", ("4", "first"), {"dqi": "0.5"}, DRAWN),
        ("mixed", "offers", ("4", "first"), {"bid": "1.234567"}, DRAWN),
        ("mixed", "offers", ("4", "first"), {"data_size": "81"}, DRAWN),
        ("private", "offers", ("3", "mnist"), {"bid": "1.234567"}, DRAWN),
        ("private", "offers", ("3", "mnist"), {"dqi": "0.123456"}, DRAWN),
        ("private", "clients", ("3", "mnist"), {"cost": "1.234567"}, DRAWN),
    ],
)
def test_tampering_is_named(
    world: str, name: str, place: tuple[str, str], values: dict[str, str], problem: str, copy_of: Callable[[str], Path]
) -> None:
    run = copy_of(world)
    change(run, name, values, lambda row: (row["round"], row["service"]) == place)
    assert any(problem in found for found in verify(RunDirectory(run)).problems)


@pytest.mark.parametrize(
    ("world", "before", "after"),
    [
        ("changing", "total_budget = 60.0", "total_budget = 50.0"),
        ("changing", "arrival = 6", "arrival = 5"),
        ("changing", "persistence = 0.8", "persistence = 0.7"),
        ("mixed", "dirichlet = 0.3", "dirichlet = 0.31"),
    ],
)
def test_another_scenario_does_not_fit_the_logs(
    world: str, before: str, after: str, copy_of: Callable[[str], Path]
) -> None:
    run = copy_of(world)
    text = (run / "scenario.toml").read_text()
    assert before in text
    (run / "scenario.toml").write_text(text.replace(before, after))
    reseal(run)
    assert verify(RunDirectory(run)).problems


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "changes"),
    [
        ("changing", (FEW, "market.mechanism=uniform-price")),
        ("changing", (FEW, "market.mechanism=iterated")),
        *slow(*(("changing", (FEW, f"market.mechanism={name}")) for name in ("proportional-share", "vcg"))),
        ("changing", (FEW, "market={ mechanism = 'posted-price', options = { price_per_sample = 0.03, step = 0.1 } }")),
        ("changing", behaving("adaptive")),
        ("changing", behaving("misreport", size=0.5)),
        ("mixed", behaving("misreport", size=0.5, emd=-0.3, share=0.6)),
        ("mixed", behaving("misreport", emd=1.5)),
        ("mixed", behaving("adaptive")),
        ("mixed", behaving("ring")),
        ("mixed", "market.mechanism=uniform-price"),
        ("mixed", "clients.label_mix.dirichlet=0.001"),
        ("mixed", "clients.label_mix.dirichlet=1000"),
        ("mixed", (TWO_LEAVE, "services.first.arrival=4")),
        *slow(("mixed, trained", ("rounds=2", *behaving("misreport", size=0.5)))),
        ("adaptive", "market.mechanism=uniform-price"),
        ("adaptive", "market.mechanism=proportional-share"),
        *slow(("adaptive", "market.mechanism=iterated"), ("adaptive", LASTING)),
    ],
    ids=lambda it: it if isinstance(it, str) else " ".join(it),
)
def test_worlds_go_with_mechanisms_behaviours_and_extremes(
    world: str, changes: str | tuple[str, ...], tmp_path: Path
) -> None:
    changes = (changes,) if isinstance(changes, str) else changes
    run = played(WORLDS[world].load(*changes), tmp_path, WORLDS[world].policy)
    assert verify(run).problems == []
    assert rerun(run, Shelf()) == []


@pytest.mark.parametrize("policy", ["outbid", "mahdrl", "oracle", *slow("mahdrl-paper")])
def test_every_kind_of_policy_plays_with_secrets(policy: str, tmp_path: Path) -> None:
    run = played(WORLDS["private"].load("rounds=6", "clients.behaviour={}"), tmp_path, policy)
    assert verify(run).problems == []
    assert rerun(run, Shelf()) == []


@pytest.mark.parametrize(
    ("world", "settings"),
    [
        ("changing", ["lasting.persistence = 0.8", "lasting.drift = 0.1", "early.arrival = 3", "total_budget = 60.0"]),
        ("mixed", ["clients.label_mix.dirichlet = 0.3", "asks 0.20 to 6.00 for training"]),
        ("private", ["clients.cost.noise = ", "market.bids = ", "market.dqi = ", "market.dqi_noise = "]),
        ("misreport", ['clients.behaviour.kind = "misreport"']),
    ],
)
def test_a_preview_says_what_is_set(world: str, settings: list[str]) -> None:
    said = "\n".join(story(WORLDS[world].load()))
    assert [setting for setting in settings if setting not in said] == []
    assert not any(setting in "\n".join(story(WORLDS["no split"].load())) for setting in settings)
