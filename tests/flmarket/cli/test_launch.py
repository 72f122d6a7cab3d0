"""The argument of ``flmarket tui``: a scenario, a run, a folder of runs, or trainings."""

from pathlib import Path

import pytest

from flmarket.cli.launch import opening
from flmarket.cli.tui_argument import Opening, resolve
from flmarket.core.errors import InputError
from scenarios.logs.directory import RunDirectory

HEAD = "episode,phase,epsilon,reward,auc,reached,markup\n"


def run(out: Path, seed: int) -> Path:
    place = out / "small-0a0b0c0d" / "hqfa" / f"seed-{seed:04d}"
    place.mkdir(parents=True)
    (place / "scenario.toml").touch()
    return place


def test_nothing_and_a_scenario() -> None:
    assert opening(None) == {}
    assert resolve("quickstart") == Opening(scenario="quickstart")


def test_a_run_or_the_only_one_is_replayed_and_several_are_a_batch(tmp_path: Path) -> None:
    place = run(tmp_path, 0)
    assert resolve(str(place)) == Opening(run=place)
    assert resolve(str(tmp_path)) == Opening(run=place)
    run(tmp_path, 1)
    assert resolve(str(tmp_path)) == Opening(batch=tmp_path)
    assert resolve(str(place.parent)) == Opening(batch=place.parent)


def test_what_a_batch_has_only_announced_is_a_batch(tmp_path: Path) -> None:
    RunDirectory(tmp_path / "small-0a0b0c0d" / "hqfa" / "seed-0000").announce()
    assert resolve(str(tmp_path)) == Opening(batch=tmp_path)


def test_trainings_by_folder_and_by_name(tmp_path: Path) -> None:
    logs = [tmp_path / f"mine-seed{seed}.csv" for seed in (0, 1)]
    for log in logs:
        log.write_text(HEAD)
    (tmp_path / "mine-seed0.training").mkdir()
    assert resolve(str(tmp_path)) == Opening(trainings=logs)
    assert resolve(str(tmp_path / "mine")) == Opening(trainings=logs)
    for suffix in (".csv", ".safetensors", ".training"):
        assert resolve(str(tmp_path / f"mine-seed0{suffix}")) == Opening(trainings=logs[:1])


def test_what_holds_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no run and no training; name another folder"):
        resolve(str(tmp_path))
    (tmp_path / "half.csv").write_text(HEAD[:20])
    with pytest.raises(InputError, match=r"half.csv: there is no training; flmarket train writes NAME.csv next to"):
        resolve(str(tmp_path / "half.csv"))
    with pytest.raises(InputError, match="nothing"):
        resolve(str(tmp_path / "nothing"))
