"""Groups of clients with behaviours of their own: played, resumed, verified, refused in lockstep, and wrong keys."""

from pathlib import Path
from shutil import copytree
from typing import Any

import pandas as pd
import pytest

from des.behaviours.truthful import Truthful
from des.clients.mixture import Mixture
from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from learning.lockstep.market_kinds import LockstepError, curves_of
from scenarios.build import Shelf, market_factory, population_spec
from scenarios.calibration.traces import stripped
from scenarios.file.schema import Scenario
from scenarios.loader import dumps, load, parse
from scenarios.logs.directory import RunDirectory
from scenarios.running.runner import execute
from support.runs import RESULTS, change, interrupt, planned, played, table
from support.shell import flmarket
from support.worlds import EVEN

SMALL = {"training.backend": "surrogate", "rounds": 6, "clients.behaviour.kind": "truthful"}
MARKUP = {"name": "dear", "count": 4, "behaviour": {"kind": "markup", "options": {"share": [0.1, 0.5]}}}
LIARS = {"name": "liars", "count": 4, "behaviour": {"kind": "misreport", "options": {"size": 0.5}}}
LEARNERS = {"name": "learners", "count": 4, "behaviour": {"kind": "adaptive"}}


def grouped(*groups: dict[str, Any], **changes: Any) -> Scenario:
    return load("quickstart", {**SMALL, "clients.groups": list(groups), **changes})


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a market of four behaviours."""
    return played(grouped(MARKUP, LIARS, LEARNERS), tmp_path_factory.mktemp("mixed"), "hqfa").path


def test_each_client_behaves_as_its_group_does(mixed: Path) -> None:
    clients = pd.read_csv(mixed / "clients.csv")
    of_group = [clients[(clients["client"] // 4) == group] for group in range(4)]
    dear, liars, learners, others = of_group
    assert min(map(len, of_group)) > 5
    assert ((dear["bid"] / dear["cost"]).round(4).between(1.1, 1.5)).all()
    assert ((liars["reported_size"] / liars["data_size"]) == 1.5).all()
    assert (pd.concat([dear, learners, others]).eval("reported_size == data_size")).all()
    assert len({round(ratio, 1) for ratio in learners["bid"] / learners["cost"]}) > 2
    assert (others["bid"] == others["cost"]).all()


def test_a_run_of_several_behaviours_is_verified_and_a_bid_of_another_group_is_found(
    mixed: Path, tmp_path: Path
) -> None:
    folder = Path(copytree(mixed, tmp_path / "forged"))
    assert verify(RunDirectory(folder)).problems == []
    row = next(row for row in table(folder, "clients") if int(row["client"]) >= 12)
    forged = {"bid": f"{float(row['bid']) * 1.2:.6f}"}
    for name in ("clients", "offers"):
        change(folder, name, forged, lambda it: all(it[key] == row[key] for key in ("round", "service", "client")))
    assert any(
        "bid" in problem and "the run's seed draws" in problem for problem in verify(RunDirectory(folder)).problems
    )


def test_a_killed_run_of_several_behaviours_goes_on_with_the_same_bytes(mixed: Path, tmp_path: Path) -> None:
    run = planned(grouped(MARKUP, LIARS, LEARNERS), tmp_path, "hqfa")
    interrupt(run, Shelf(), 3)
    execute(run, Shelf(), workers=0)
    for name in RESULTS:
        assert (run.directory.path / name).read_bytes() == (mixed / name).read_bytes()


def test_a_group_of_all_clients_is_played_as_the_behaviour_of_all(tmp_path: Path) -> None:
    """Byte for byte, though markups are drawn."""
    one = {**MARKUP, "count": 16}
    all_ = {f"clients.behaviour.{key}": value for key, value in MARKUP["behaviour"].items()}
    runs = [
        played(scenario, tmp_path / str(i), "hqfa").path for i, scenario in enumerate([grouped(one), grouped(**all_)])
    ]
    for name in ("rounds.csv", "offers.csv", "events.csv", "clients.csv"):
        first, second = [(run / name).read_bytes() for run in runs]
        assert first == second


def test_where_all_groups_are_truthful_clients_are_as_without_groups() -> None:
    honest = [{"name": name, "count": 5, "behaviour": {"kind": "truthful"}} for name in ("a", "b")]
    scenario = grouped(*honest)
    assert scenario.clients.truthful
    assert type(population_spec(scenario).behaviour) is Truthful
    assert not grouped(*honest, **{"clients.behaviour.kind": "markup"}).clients.truthful


def test_groups_of_one_kind_have_an_object_each_and_those_without_share_one() -> None:
    spec = population_spec(grouped(MARKUP, {"name": "plain", "count": 2}, {**MARKUP, "name": "other"}))
    assert isinstance(spec.behaviour, Mixture)
    assert len({id(spec.behaviour_of(group)) for group in range(4)}) == 3
    assert spec.behaviour_of(1) is spec.behaviour_of(3)


def test_options_alone_are_those_of_the_kind_of_all_and_another_kind_begins_afresh() -> None:
    groups = [
        {"name": "a", "count": 1, "behaviour": {"options": {"share": 1.0}}},
        {"name": "b", "count": 1, "behaviour": {"kind": "adaptive"}},
    ]
    clients = grouped(*groups, **{"clients.behaviour": {"kind": "markup", "options": {"share": 0.3}}}).clients
    assert [(it.name, dict(it.options)) for it in clients.behaviours()] == [
        ("markup", {"share": 1.0}),
        ("adaptive", {}),
        ("markup", {"share": 0.3}),
    ]


def test_a_plugin_s_behaviour_of_a_group_is_recorded_and_named_where_it_is_missing(tmp_path: Path) -> None:
    plugin = tmp_path / "even.py"
    plugin.write_text(EVEN)
    groups = 'clients.groups=[{name="even", count=5, behaviour={kind="even"}}, {name="dear", count=5}]'
    sets = ["--set", groups, "--set", "training.backend=surrogate", "--set", "rounds=3"]
    out = ["--policy", "hqfa", "--out", str(tmp_path / "runs")]
    done = flmarket("run", "quickstart", "--plugin", str(plugin), *out, *sets)
    assert done.returncode == 0, done.stderr
    [folder] = (tmp_path / "runs").glob("*/hqfa/seed-0000")
    assert "behaviour even" in RunDirectory(folder).meta()["plugins"]
    verdict = verify(RunDirectory(folder))
    assert (verdict.problems, len(verdict.unchecked)) == ([], 1)
    assert "as behaviour 'even' is not here, or is another one" in verdict.unchecked[0]
    assert flmarket("verify", str(folder), "--plugin", str(plugin)).stdout.count("valid: 3 rounds") == 1


def test_groups_are_written_and_read_again_and_calibration_leaves_their_behaviour_out() -> None:
    scenario = grouped(MARKUP, LIARS)
    assert parse(dumps(scenario)) == scenario
    assert "behaviour" not in dumps(grouped({"name": "a", "count": 1})).partition("[[clients.groups]]")[2]
    assert stripped(scenario).clients.truthful


def test_lockstep_refuses_clients_of_several_behaviours_by_name() -> None:
    with pytest.raises(LockstepError, match=r"clients that need not tell the truth \(behaviour Mixture\)"):
        curves_of(market_factory(grouped(MARKUP))(0))


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ({"kind": "markpu"}, "dear.behaviour.kind: unknown behaviour 'markpu'; did you mean 'markup'?"),
        ({"kind": "markup", "options": {"shares": 1}}, "dear.behaviour.options.shares: behaviour 'markup' takes no "),
        ({"kind": "markup", "options": {"share": -1}}, "dear.behaviour.options.share: behaviour 'markup': share must "),
        ({"kind": "misreport"}, "dear.behaviour.kind: behaviour 'misreport': nothing is misreported"),
        ({"options": {"share": 1}}, "dear.behaviour.options.share: behaviour 'truthful' takes no option 'share'"),
        ({"kin": "markup"}, "dear.behaviour.kin: unknown key; did you mean 'kind'?"),
    ],
)
def test_what_is_wrong_with_the_behaviour_of_a_group_is_said_with_its_key(
    behaviour: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError) as caught:
        grouped({**MARKUP, "behaviour": behaviour})
    assert f"clients.groups.{problem}" in str(caught.value)
