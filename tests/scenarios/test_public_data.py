"""Markets whose services see the clients' data (``market.data = "public"``), and value clients as a set."""

import re
from pathlib import Path

import pytest

from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from learning.lockstep.market_kinds import LockstepError, curves_of
from scenarios.build import Shelf, build
from scenarios.loader import load
from scenarios.playable import obstacles, require_playable
from scenarios.plugin_files import load_plugin
from support.pages import ROOT, blocks
from support.runs import change, played, table

UNION = {"policy": "greedy", "policy_options": {"together": "union"}}
PUBLIC = {"market.data": "public", "training.backend": "surrogate", "rounds": 3, "dqi": "jiao"}


def test_services_that_value_clients_as_a_set_are_played_and_verified(tmp_path: Path) -> None:
    changes = {f"services.{name}.{key}": value for name in ("mnist", "emnist") for key, value in UNION.items()}
    run = played(load("paper", PUBLIC | changes), tmp_path)
    assert verify(run).problems == []
    assert {row["policy"] for row in table(run.path, "rounds")} == {"greedy", "random"}
    change(run.path, "offers", {"emd": "0.123456"}, lambda row: row["service"] == "mnist")
    assert any("emd" in problem for problem in verify(run).problems)


def test_a_service_sees_what_clients_report_and_only_where_it_is_public() -> None:
    liars = {"clients.behaviour.kind": "misreport", "clients.behaviour.options.size": 0.5}
    market = build(load("paper", PUBLIC | liars), 0, Shelf()).market
    world, seen = market.population.draw(1), market.open_round()["mnist"].privileged
    assert seen is not None
    assert (seen.data_size == world.data_size[0]).all()
    assert (seen.emd == world.emd[0]).all()
    assert (world.data_size[0] != world.held.data_size[0]).any()
    assert seen.rival_offers is None
    hidden = build(load("paper", PUBLIC | {"market.data": "hidden"}), 0, Shelf()).market
    assert all(it.privileged is None for it in hidden.open_round().values())


def test_the_same_market_goes_alike_for_policies_that_do_not_look_at_data(tmp_path: Path) -> None:
    runs = [played(load("paper", PUBLIC | {"market.data": it}), tmp_path / it, "lcfa") for it in ("hidden", "public")]
    assert len({(run.path / "offers.csv").read_bytes() for run in runs}) == 1
    hidden, public = ((run.path / "scenario.toml").read_text() for run in runs)
    assert 'data = "public"' in public
    assert "data =" not in hidden  # as before there was such a key: the same bytes, the same hash


def test_the_policy_of_the_page_plays_where_data_are_public(tmp_path: Path) -> None:
    [program] = blocks((ROOT / "docs/worth.md").read_text(), "python")
    (tmp_path / "balanced.py").write_text(program)
    load_plugin(tmp_path / "balanced.py")
    run = played(load("paper", PUBLIC | {"rounds": 1}), tmp_path, "balanced")
    wanted = {int(row["client"]) for row in table(run.path, "offers") if row["service"] == "mnist"}
    world = build(load("paper", PUBLIC), 0, Shelf()).market.population.draw(1)
    price = world.bid[0] / (world.data_size[0] * (1 - world.emd[0] / 2))
    assert int(price.argmin()) in wanted
    assert int(price.argmax()) not in wanted


def test_a_service_that_needs_data_which_the_market_hides_is_refused_with_its_name() -> None:
    union = {f"services.mnist.{key}": value for key, value in UNION.items()}
    scenario = load("paper", union | {"training.backend": "surrogate"})
    problem = r'of service .mnist.: together = "union" values data sizes .* set market.data = "public"'
    (mistake,) = obstacles(Shelf(), scenario)
    assert mistake.path == ("services", 0, "policy_options")
    assert re.search(problem, mistake.message)
    with pytest.raises(InputError, match=problem):
        require_playable(scenario, Shelf())


def test_a_disclosure_that_nobody_knows_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"market\.data=secret: must be 'hidden' or 'public', not "):
        load("paper", ["market.data=secret"])


def test_lockstep_refuses_it_by_name() -> None:
    with pytest.raises(LockstepError, match=r"shows services the clients' data \(market.data\)"):
        curves_of(build(load("paper", PUBLIC), 0, Shelf()).market)
