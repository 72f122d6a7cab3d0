"""Version 1 of the suite is what it was when it was frozen, and a changed one is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flmarket.benchmark.suite.submission import play, read_all
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.file.interventions import new_players
from scenarios.playable import obstacles
from scenarios.suite.frozen import ALL, FOLDER, RESIDENT, VISITOR, Suite, SuiteRun, read
from support.benchmarks import benchmark


@pytest.fixture(scope="module")
def suite() -> Suite:
    return read()


@pytest.mark.parametrize("name", sorted(path.stem for path in (FOLDER / "markets").iterdir()))
def test_each_market_can_be_played_and_has_references(suite: Suite, name: str) -> None:
    scenario = suite.market(name).scenario
    assert scenario.name == name
    assert not scenario.sweep
    assert not [*new_players(scenario)]
    assert [*obstacles(Shelf(), scenario)] == []
    for cell in suite.cells(markets=(name,)):
        assert set(suite.references[cell]) == {"random", "oracle", "d-first", *suite.rivals}


@pytest.mark.parametrize(
    ("policy", "market", "mode"),
    [
        ("random", "like-paper", RESIDENT),
        ("oracle", "starved", VISITOR),
        ("d-first", "lasting", RESIDENT),
        ("outbid", "secrets", VISITOR),
        ("hqfa", "real-digits", RESIDENT),
        ("dearest", "run-long", VISITOR),
    ],
)
def test_references_can_be_played_again(suite: Suite, policy: str, market: str, mode: str) -> None:
    """To the byte of their file."""
    cell = suite.cells((mode,), (market,), suite.seeds[:1])[-1]
    found = play(policy, suite, cells=[cell]).results[cell]
    text = (FOLDER / "references.csv").read_text().splitlines()
    row = next(row for row in text if row.startswith(f"{market},{mode},{cell.seat},{cell.seed},"))
    assert row.split(",")[text[0].split(",").index(policy)] == f"{found:.6f}"


def test_visitors_take_each_seat_in_turn(suite: Suite) -> None:
    assert suite.market("like-paper").visited == ("mnist", "fashion", "emnist")
    assert suite.market("twelve").visited == ("mnist-1", "fashion-2", "emnist-3")
    assert suite.market("alone").visited == ()
    assert [cell.mode for cell in suite.cells(markets=("alone",), seeds=suite.seeds[:1])] == [RESIDENT]


@pytest.mark.slow
def test_cells_are_chosen_by_mode_market_and_seed(small: Suite) -> None:
    assert small.cells((RESIDENT,), ("pair",), (3,)) == [SuiteRun("pair", RESIDENT, ALL, 3)]
    assert len(small.cells()) == 3 * (1 + 2 + 1)
    assert {cell.seed for cell in small.cells()} == {1, 2, 3}
    with pytest.raises(InputError, match="unknown market of the suite 'pear'; did you mean 'pair'"):
        small.cells(markets=("pear",))
    with pytest.raises(InputError, match=r"seed 5 is not one of the suite's: 1, 2, 3$"):
        small.cells(seeds=(1, 5))


def change(folder: Path) -> None:
    path = folder / "markets/pair.toml"
    path.write_text(path.read_text().replace("budget = 10", "budget = 11"))


def lose(folder: Path) -> None:
    (folder / "references.csv").unlink()


def forge(folder: Path) -> None:
    change(folder)
    frozen = benchmark("freeze_suite")
    (folder / "manifest.json").write_bytes(frozen.manifest_of(folder))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change, "pair.toml: is not as the suite was frozen"),
        (lose, "references.csv: cannot be read: No such file"),
        (forge, "manifest.json: is not as the suite was frozen"),
    ],
)
def test_a_changed_suite_is_refused(
    damage: Callable[[Path], None], message: str, small_folder: tuple[Path, str], tmp_path: Path
) -> None:
    folder = shutil.copytree(small_folder[0], tmp_path / "version1")
    read(folder, small_folder[1])
    damage(folder)
    with pytest.raises(InputError, match=message):
        read(folder, small_folder[1])


@pytest.mark.slow
def test_frozen_again_it_has_the_same_digest(small_folder: tuple[Path, str], tmp_path: Path) -> None:
    folder = shutil.copytree(small_folder[0], tmp_path / "version1")
    digest = benchmark("freeze_suite").freeze(folder, tmp_path / "work", tmp_path / "submissions")
    assert digest == small_folder[1]
    small = read(folder, digest)
    submissions = read_all([tmp_path / "submissions"], small)
    assert {it.method for it in submissions} == {"random", "oracle", "d-first", "hqfa", "lcfa"}
    assert all(it.results == {cell: small.references[cell][it.method] for cell in small.cells()} for it in submissions)
