"""Notes before a batch: what a user should know before believing its results."""

import json
from pathlib import Path

import pytest

from fl.data.registry import Dataset
from fl.data.registry import load as load_dataset
from fl.training import fused
from scenarios.build import Shelf
from scenarios.loader import parse, points
from scenarios.running.batch import notes
from scenarios.running.planning import plan_batch
from scenarios.running.run_options import RunOptions
from support.scenarios import SMALL

POOR = "small: no service can buy a client: none asks less than"
RISE = '\n[[interventions]]\nround = 3\nkey = "services.beta.budget"\nvalue = 1.0\n'


def about(text: str, *overrides: str) -> list[str]:
    return [note for note in notes([parse(text, overrides=overrides)], Shelf()) if note.startswith(POOR)]


def test_a_market_in_which_nobody_can_be_bought_is_noted(two_services: str) -> None:
    poor = ["services.*.budget=0.4", "clients.cost.per_emd=0"]  # 20 images cost 1.00
    assert about(two_services, *poor) == [f"{POOR} 1.00, and the largest budget is 0.4"]
    assert not about(two_services)
    assert not about(two_services, *poor, "services.beta.budget=1")
    assert not about(two_services + RISE, *poor)


def test_clients_that_bring_all_that_they_own_can_be_too_dear_for_everybody(one_service: str) -> None:
    text = one_service.replace("data_size = [20, 40]\nemd = [0.2, 1.0]\n", "")
    given = ["data.partition=iid", "clients.cost.per_emd=0"]
    [note] = about(text, *given)
    assert note.endswith("; clients.data_size lets them train on fewer of their images in a round")
    assert not about(text, *given, "clients.data_size=[20]")


def test_it_counts_what_clients_ask_not_what_the_work_costs_them(one_service: str) -> None:
    dear = ["services.alpha.budget=1", "clients.cost.per_emd=0", "clients.behaviour.kind=markup"]
    assert not about(one_service, *dear, "clients.behaviour.options.share=0")
    assert about(one_service, *dear, "clients.behaviour.options.share=0.5") == [
        f"{POOR} 1.50, and the largest budget is 1"
    ]


def test_clients_that_own_nothing_are_noted_once_for_all_points_of_a_sweep(one_service: str, tmp_path: Path) -> None:
    (tmp_path / "owned.json").write_text(json.dumps({client: [2 * client, 2 * client + 1] for client in range(1, 6)}))
    text = one_service.replace("data_size = [20, 40]\nemd = [0.2, 1.0]\n", "")
    given = [
        f"data.partition={tmp_path}/owned.json",
        "training.validation=0",
        "clients.count=6",
        "clients.cost.per_emd=0",
    ]
    swept = parse(text, overrides=[*given, "sweep.rounds=[3, 4]"])
    scenarios = [point.scenario for point in points(swept)]
    assert len(scenarios) == 2
    assert sum("without an image" in note for note in notes(scenarios, Shelf())) == 1


def test_a_data_set_that_no_point_of_a_sweep_uses_is_neither_noted_nor_loaded(tmp_path: Path) -> None:
    def images(name: str) -> Dataset:
        assert name != "mnist"
        return load_dataset(name)

    text = SMALL.replace('"digits"', '"mnist"') + '[sweep]\nservices.one.dataset = ["digits", "strokes"]\n'
    runs = plan_batch([parse(text)], [], [0], RunOptions(out=tmp_path), Shelf(images))
    said = notes([run.scenario for run in runs], Shelf(images))
    for name in ("digits", "strokes"):
        assert any(note.startswith(f"data set '{name}' is trained as its fits were measured") for note in said)
    assert not any("mnist" in note for note in said)


@pytest.mark.parametrize(("kernel", "count"), [("auto", 1), ("reference", 0)])
def test_a_missing_extension_is_noted_once_in_a_batch(kernel: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_kernels", {})
    scenarios = [parse(SMALL, overrides=[f"name={name}", f"training.kernel={kernel}"]) for name in ("one", "other")]
    assert sum("the fused kernel was not built" in note for note in notes(scenarios, Shelf())) == count
