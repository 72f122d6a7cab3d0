"""Aggregators in scenario files: a market is played and verified with another rule, and wrong keys are named."""

from pathlib import Path

import pytest

from fl.training.aggregator import AGGREGATORS
from flmarket.analysis.verification.rerun import rerun
from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import dumps, load, parse
from scenarios.plugin_files import load_plugin
from scenarios.running import checkpoint
from scenarios.running.runner import execute
from support.runs import RESULTS, interrupt, planned, played, reseal

SMALL = ["rounds=2", "clients.count=6", "training.model=logistic", "training.eval_samples=100"]
KRUM = ["training.aggregation={kind='krum', options={share=0.3, keep=2}}"]


def test_a_market_of_another_rule_is_played_and_verified_and_a_false_rule_is_found(tmp_path: Path) -> None:
    run, usual = (played(load("quickstart", [*SMALL, *rule]), tmp_path) for rule in (KRUM, []))
    assert "training.aggregation" in run.scenario_text()
    assert "aggregation" not in usual.scenario_text()
    assert (run.path / "rounds.csv").read_bytes() != (usual.path / "rounds.csv").read_bytes()
    assert verify(run).problems == []
    (run.path / "scenario.toml").write_text(run.scenario_text().replace("krum", "median").replace("keep = 2", ""))
    reseal(run.path)
    assert any("training.aggregation" in problem for problem in verify(run).problems)


MINE = """
import flmarket

@flmarket.aggregator("server-momentum")
class ServerMomentum(flmarket.Aggregator):
    velocity = 0.0

    def aggregate(self, updates):
        self.velocity = 0.9 * self.velocity + updates.models.mean(0) - updates.old
        return updates.old + self.velocity

    def state(self):
        return {"velocity": self.velocity}

    def restore(self, state):
        self.velocity = state["velocity"]
"""


def test_a_run_with_a_rule_of_ones_own_is_resumed_and_repeated_to_the_byte_and_records_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(AGGREGATORS, "_registered", {})
    (tmp_path / "mine.py").write_text(MINE)
    load_plugin(tmp_path / "mine.py")
    scenario = load("quickstart", [*SMALL, "rounds=4", "training.aggregation.kind=server-momentum"])
    whole = played(scenario, tmp_path / "whole")
    again = planned(scenario, tmp_path / "again")
    interrupt(again, Shelf(), after=3)
    assert list(again.directory.path.rglob("*.safetensors"))
    execute(again, Shelf(), workers=0)
    for name in RESULTS:
        assert (whole.path / name).read_bytes() == (again.directory.path / name).read_bytes()
    [plugin] = whole.meta()["plugins"].items()
    assert plugin[0] == "aggregator server-momentum"
    assert plugin[1]["sha256"]
    assert rerun(whole, Shelf(), workers=2) == []


def test_what_a_file_says_of_aggregation_is_written_back_and_the_paper_s_is_not() -> None:
    scenario = load("quickstart", KRUM)
    again = parse(dumps(scenario))
    assert again.training.aggregation == scenario.training.aggregation
    assert str(again.training.aggregation) == "krum, share 0.3, keep 2"
    assert dumps(load("quickstart", ["training.aggregation.kind=fedavg"])) == dumps(load("quickstart"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (["kind=medain"], "training.aggregation.kind=medain: unknown aggregator 'medain'; did you mean 'median'?"),
        (["kind=norm-clip"], "aggregator 'norm-clip' needs the option 'norm'"),
        (["kind=norm-clip", "options.norm=0"], "norm must be a finite number above 0, not 0"),
        (["kind=krum", "options.share=0.5"], "share must be a number of at least 0 and below 0.5, not 0.5"),
        (["kind=krum", "options.keep=0"], "keep must be a whole number of at least 1, not 0"),
        (["kind=trimmed-mean", "options.shares=0.1"], "takes no option 'shares'; did you mean 'share'?"),
        (["kind=fedprox", "options.mu=-1"], "mu must be a finite number of at least 0, not -1"),
        (["options.mu=1"], "aggregator 'fedavg' takes no option 'mu'; it has none"),
    ],
)
def test_what_is_wrong_with_an_aggregation_is_said_with_its_key(changes: list[str], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load("quickstart", [f"training.aggregation.{change}" for change in changes])
    assert problem in str(caught.value)
    assert str(caught.value).startswith("training.aggregation.")


@pytest.mark.parametrize("backend", ["surrogate", "noiseless"])
def test_curves_of_fedavg_stand_for_no_other_rule(backend: str) -> None:
    with pytest.raises(InputError) as caught:
        load("quickstart", ["training.aggregation.kind=median", f"training.backend={backend}"])
    assert str(caught.value) == (
        f"training.aggregation.kind=median: 'median' needs models that are trained, and backend = \"{backend}\" "
        'follows curves of fedavg; set training.backend to "real", or the kind to "fedavg"'
    )
