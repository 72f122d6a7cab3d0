"""A policy or the mechanism that changes in the middle of a run: it begins fresh, and the rest stays as it was."""

from pathlib import Path

import pytest

from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from flmarket.learn import parallel_env
from scenarios.file.schema import Scenario
from scenarios.loader import parse
from scenarios.logs.directory import RunDirectory
from scenarios.running.batch import play_batch
from scenarios.running.run_options import RunOptions
from support.runs import table
from support.scenarios import problems
from support.worlds import SWITCHES
from support.worlds import switching as market


def played(scenario: Scenario, out: Path) -> RunDirectory:
    [run] = play_batch([scenario], [], [3], RunOptions(out=out), progress=False).complete
    return run.directory


def rows(run: RunDirectory, name: str = "rounds") -> list[dict[str, str]]:
    return table(run.path, name)


def test_what_is_new_begins_in_its_round_and_earlier_rounds_are_as_without_it(tmp_path: Path) -> None:
    plain, changed = (played(parse(text), tmp_path) for text in (market(), market(*SWITCHES)))
    before, after = rows(plain), rows(changed)
    assert [row for row in after if int(row["round"]) < 4] == [row for row in before if int(row["round"]) < 4]
    assert [row["policy"] for row in after if row["service"] == "alpha"] == ["lcfa"] * 3 + ["ucb"] * 5
    assert [row["policy"] for row in after if row["service"] == "beta"] == ["ucb"] * 5 + ["random"] * 3
    # A posted price is the same for each image; from round 7 on a winner pays what the first loser offered.
    posted = [row for row in rows(changed, "offers") if row["round"] == "5" and row["outcome"] == "served"]
    assert posted
    assert all(float(row["payment"]) >= 0.08 * int(row["data_size"]) - 1e-6 for row in posted)


def test_verify_clears_each_round_by_its_own_mechanism(tmp_path: Path) -> None:
    """Logs of a run whose mechanism changed are not what the first, or the last, mechanism makes of the offers."""
    posted = '{ mechanism = "posted-price", options = { price_per_sample = 0.08 } }'
    rich = market((4, "market.mechanism", posted)).replace("budget = 10", "budget = 40")  # all want all
    changed = played(parse(rich), tmp_path)
    assert verify(changed).problems == []
    text = (changed.path / "scenario.toml").read_text()
    (changed.path / "scenario.toml").write_text(text.replace("round = 4\n", "round = 7\n"))
    assert any(": round 4, " in problem for problem in verify(changed).problems)
    (changed.path / "scenario.toml").write_text(text.replace("round = 4\n", "round = 1\n"))
    assert any(": round 1, " in problem for problem in verify(changed).problems)


def test_a_switch_to_what_is_in_force_already_is_none(tmp_path: Path) -> None:
    """A policy that learns would notice a fresh start."""
    same = ((4, "services.beta.policy", '"ucb"'), (5, "market.mechanism", '"pay-as-offered"'))
    plain, changed = (played(parse(text), tmp_path) for text in (market(), market(*same)))
    assert rows(plain, "events") == rows(changed, "events")


def test_a_policy_that_begins_fresh_has_learned_nothing(tmp_path: Path) -> None:
    """``ucb`` again, after a round of another policy, does otherwise than one that has seen all rounds."""
    away = ((4, "services.beta.policy", '"random"'), (5, "services.beta.policy", '"ucb"'))
    plain, changed = (played(parse(text), tmp_path) for text in (market(), market(*away)))
    wanted = [
        [
            (row["round"], row["client"])
            for row in rows(run, "offers")
            if row["service"] == "beta" and row["round"] > "4"
        ]
        for run in (plain, changed)
    ]
    assert wanted[0] != wanted[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((2, "services.alpha.policy", '"hqffa"'), "unknown policy 'hqffa'; did you mean 'hqfa'?"),
        ((2, "services.alpha.policy", '"mahdrl:"'), "the path of a checkpoint must follow the colon"),
        ((2, "services.alpha.policy", "3"), "must be the name of a policy or a table with policy, checkpoint"),
        ((2, "services.alpha.policy", "{ options = {} }"), 'must name the policy, such as { policy = "..." }'),
        (
            (2, "services.alpha.policy", '{ policy = "hqfa", option = 1 }'),
            'has an unknown key "option"; it takes policy, checkpoint, policy_options',
        ),
        (
            (2, "services.alpha.policy", '{ policy = "hqfa", checkpoint = 1 }'),
            "checkpoint: must be a valid string, not 1",
        ),
        ((2, "services.alpha.name", '"x"'), "cannot be changed in the middle of a run"),
        ((2, "market.mechanism", '"vgc"'), "unknown mechanism 'vgc'; did you mean 'vcg'?"),
        ((2, "market.mechanism", "[]"), "must be the name of a mechanism or a table with mechanism, options"),
        ((2, "market.options", "{}"), "cannot be changed in the middle of a run"),
    ],
)
def test_what_cannot_be_switched_to_is_refused(change: tuple[int, str, str], message: str) -> None:
    [problem] = problems(market(change))
    assert message in problem


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((5, "services.alpha.policy", '{ policy = "lcfa", policy_options = { x = 1 } }'), "policy 'lcfa'"),
        ((5, "services.alpha.policy", '"mahdrl:none.safetensors"'), "none.safetensors"),
        (
            (5, "market.mechanism", '{ mechanism = "posted-price", options = { prise_per_sample = 1 } }'),
            "mechanism 'posted-price'",
        ),
    ],
)
def test_what_cannot_be_created_later_fails_before_the_first_round(
    change: tuple[int, str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        played(parse(market(change)), tmp_path)
    assert not list(tmp_path.rglob("rounds.csv"))


def test_an_environment_refuses_a_switch_by_name() -> None:
    pytest.importorskip("pettingzoo")
    with pytest.raises(InputError, match=r"^an environment cannot follow a change of market\.mechanism in round 4;"):
        parallel_env(parse(market((4, "market.mechanism", '"uniform-price"'))))


def test_plug_ins_and_agents_of_later_rounds_are_recorded(tmp_path: Path) -> None:
    text = market((3, "services.alpha.policy", '"mahdrl"')).replace('policy = "ucb"', 'policy = "hqfa"')
    meta = played(parse(text), tmp_path).meta()
    assert list(meta["agents"]) == ["agent/alpha@3"]
