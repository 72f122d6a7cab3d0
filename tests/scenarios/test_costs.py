"""Costs in scenario files: each kind is played and verified, and wrong keys are named."""

from pathlib import Path

import pytest

from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.verify import verify
from flmarket.analysis.what_if.bounds import run_bounds
from flmarket.core.errors import InputError
from scenarios.build import population_of
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory
from support.runs import change, played, table
from support.shell import flmarket

LIARS = ["clients.behaviour.kind=misreport", "clients.behaviour.options.size=0.5"]
SMALL = ["training.backend=surrogate", "rounds=3", *LIARS]
KINDS = {
    "linear": "{unit={choices=[0.01, 0.03]}}",
    "unit": "{kind='unit', unit={uniform=[0.01, 0.05], each='service'}}",
    "quality": "{kind='quality', unit={uniform=[1, 4]}, noise=0.2}",
    "energy": "{kind='energy', options={upload=0.4}, unit={uniform=[0.5, 1]}}",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_market_of_any_cost_is_played_and_verified_and_a_false_cost_is_found(kind: str, tmp_path: Path) -> None:
    run = played(load("quickstart", [*SMALL, "clients.speed=[1, 3]", f"clients.cost={KINDS[kind]}"]), tmp_path)
    assert verify(run).problems == []
    row = table(run.path, "clients")[0]
    change(run.path, "clients", {"cost": f"{float(row['cost']) + 1:.6f}"})
    assert any("cost" in problem for problem in verify(run).problems)


@pytest.mark.parametrize(
    ("cost", "problem"),
    [
        ("{kind='qualty'}", "clients.cost.kind: unknown cost 'qualty'; did you mean 'quality'?"),
        ("{kind='quality', per_sample=3}", "clients.cost.per_sample: goes with the kind linear, not quality"),
        ("{per_sample=1}", "clients.cost.per_emd: is missing"),
        ("{kind='unit', per_emd=1}", 'give the cost as a whole, as {kind = "unit"}'),
        ("{}", "clients.cost.per_sample: is missing"),
        ("{options={per_sample=1}, per_sample=1, per_emd=0}", "clients.cost.options: the kind linear has none; "),
        ("{unit={uniform=[2]}}", "clients.cost.unit.uniform: must be [lowest, highest]"),
        ("{unit={uniform=[5, 2]}}", "clients.cost.unit.uniform: must be [lowest, highest]"),
        ("{kind='unit', unit={uniform=[2, 5], choices=[1]}}", "clients.cost.unit: has uniform and choices; "),
        (
            "{kind='unit', unit={choices=[]}}",
            "clients.cost.unit: has no types to draw from; give it uniform or choices",
        ),
        ("{unit={uniform=[]}}", "clients.cost.unit: has no types to draw from"),
        ("{kind='unit', unit={each='service'}}", "clients.cost.unit: has no types to draw from"),
        ("{kind='energy', options={kapa=1}}", "cost 'energy' takes no option 'kapa'; did you mean 'kappa'?"),
        ("{kind='energy', options={kappa=-1}}", "kappa must be a finite number of at least 0, not -1"),
        ("{kind='unit', unit={uniform=[2e6, 3e6]}}", "of 160 images at EMD 1.1 would be 480000000.000000, above"),
    ],
)
def test_what_is_wrong_with_a_cost_is_said_with_its_key(cost: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load("quickstart", [f"clients.cost={cost}"])
    assert problem in str(caught.value)


def test_a_group_has_a_cost_of_its_own_which_begins_afresh_with_another_kind() -> None:
    servers = {"name": "servers", "count": 5, "cost": {"kind": "unit", "unit": {"choices": [0.02]}}}
    phones = {"name": "phones", "count": 5, "cost": {"per_emd": 0.5}}
    scenario = load("quickstart", {"clients.groups": [servers, phones]})
    of_servers, of_phones, others = (clients.cost for _, clients in scenario.clients.kinds())
    assert (of_servers.kind, of_servers.per_sample) == ("unit", None)
    assert (of_phones.per_sample, of_phones.per_emd) == (others.per_sample, 0.5)
    world = population_of(scenario, 0).draw(1)
    assert (world.bid[:, :5] == 20_000 * world.data_size[:, :5]).all()


PLUGIN = """from flmarket import Cost, cost

@cost("hourly")
class Hourly(Cost):
    def amounts(self, work):
        return PRICE * work.data_size / work.speed
"""


def plugin(path: Path, price: str) -> str:
    path.write_text(PLUGIN.replace("PRICE", price))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("of_a_group", [False, True])
def test_without_its_cost_plugin_or_with_another_a_run_is_checked_as_far_as_it_can_be(
    of_a_group: bool, tmp_path: Path
) -> None:
    """It is not called wrong; what does not follow from the cost is checked, and a forgery of it is found."""
    cost = 'cost={kind="hourly"}'
    where = f'clients.groups=[{{name="own", count=5, {cost}}}]' if of_a_group else f"clients.{cost}"
    sets = [part for key in (*SMALL, where) for part in ("--set", key)]
    right, other = (plugin(tmp_path / f"{price}.py", price) for price in ("0.02", "0.03"))
    out = "--policy", "hqfa", "--out", str(tmp_path / "runs")
    done = flmarket("run", "quickstart", "--plugin", right, *out, *sets)
    assert done.returncode == 0, done.stderr
    [folder] = (tmp_path / "runs").glob("*/hqfa/seed-0000")
    run = RunDirectory(folder)
    verdict = verify(run)  # without any
    assert (verdict.problems, len(verdict.unchecked)) == ([], 1)
    assert "bids, as cost 'hourly' is not here, or is another one: load its file" in verdict.unchecked[0]
    with pytest.raises(InputError, match="the clients' cost of the run is not known here, or has changed"):
        run_bounds(Logs.read(run))
    assert flmarket("verify", str(folder), "--plugin", right).returncode == 0
    done = flmarket("verify", str(folder), "--plugin", other)
    assert (done.returncode, done.stderr) == (2, "")
    assert "not checked: data sizes, EMDs, DQI and bids, as cost 'hourly' is not here, or is another" in done.stdout
    row = table(folder, "clients")[0]
    change(folder, "clients", {"data_size": str(int(row["data_size"]) + 1)})
    assert any("data_size" in problem and "seed draws" in problem for problem in verify(run).problems)


def test_a_negative_cost_of_a_plugin_ends_a_run_with_its_file_and_line(tmp_path: Path) -> None:
    own = plugin(tmp_path / "mine.py", "-0.02")
    sets = "--set", "training.backend=surrogate", "--set", 'clients.cost={kind="hourly"}'
    done = flmarket("run", "quickstart", "--plugin", own, *sets, cwd=tmp_path)
    assert done.returncode == 1
    assert f"cost Hourly.amounts() ({own}:5): a cost is negative, that of " in done.stderr
    assert "defect" not in done.stderr
