"""A run is the one that its files say: edits of scenario.toml, meta.json and folders are found by whoever reads it."""

import hashlib
import json
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tomlkit

from flmarket.analysis.results.run_results import read
from flmarket.analysis.verification.verify import verify
from flmarket.core.errors import InputError
from scenarios.build import Shelf
from scenarios.loader import load
from scenarios.logs.directory import RunDirectory, RunDirectoryError
from scenarios.logs.identity import contradictions
from scenarios.running.batch_run import Run
from scenarios.running.planning import plan, split_by_completion
from scenarios.running.runner import execute
from support.runs import reseal
from support.tiers import slow

SHORT = ("rounds=4", "training.backend=surrogate")
PLAYED = {
    "a policy for all": ("paper", SHORT, ["random"]),
    "options": ("paper", SHORT, ["fmore(weight=4.5)"]),
    "an agent": ("paper", SHORT, ["mahdrl"]),
    "its own policies, and a sweep": ("interests", ("rounds=3", "runs=[]"), []),
    "a sweep, and a policy for all": ("mechanisms", ("rounds=3",), ["lcfa"]),
    "training": ("quickstart", ("rounds=2",), ["hqfa"]),
    "what changes": ("changing", ("rounds=31", "training.backend=surrogate"), []),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    shelf, found = Shelf(), {}
    for name, (scenario, overrides, policies) in PLAYED.items():
        [run, *_] = plan([load(scenario, list(overrides))], policies, [0], tmp_path_factory.mktemp("runs"), shelf)
        execute(run, shelf)
        found[name] = run
    return found


def copied(run: Run, out: Path) -> Run:
    path = shutil.copytree(run.directory.path, out / run.directory.path.relative_to(run.directory.path.parents[2]))
    return Run(run.scenario, run.policy, run.seed, RunDirectory(path), run.digest, run.sweep, hashed=run.hashed)


def leaves(table: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, value in items:
        yield from leaves(value, (*path, key)) if isinstance(value, dict | list) and value else [(*path, key)]


def other(value: Any, random: Random) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + random.choice([1, 2])
    return f"{value}x" if isinstance(value, str) else value


def value_at(table: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        table = table[key]
    return table


def put(table: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> None:
    table = value_at(table, path[:-1])
    table[path[-1]] = change(table[path[-1]])


def edit_scenario(run: Run, random: Random) -> str:
    path = run.directory.path / "scenario.toml"
    table = tomllib.loads(path.read_text())
    place = random.choice([it for it in leaves(table) if value_at(table, it) not in ({}, [])])
    put(table, place, lambda value: other(value, random))
    path.write_text(tomlkit.dumps(table))
    return f"scenario.toml {place}"


FIXED = (
    "scenario",
    "hash",
    "policy",
    "seed",
    "backend",
    "device",
    "data",
    "hashed",
    "sweep",
    "training",
    "labels",
    "fits",
)
"""What meta.json records that follows from something else. The rest is where, when and by what a run was played."""


def edit_meta(run: Run, random: Random) -> str:
    path = run.directory.path / "meta.json"
    meta = json.loads(path.read_text())
    free = "from", "official", "strokes", "scribbles"  # drawn data are the same everywhere
    places = [it for it in leaves({key: meta[key] for key in FIXED}) if not {*free} & {*it}]
    place = random.choice([it for it in places if other(value_at(meta, it), random) != value_at(meta, it)])
    put(meta, place, lambda value: other(value, random))
    path.write_text(json.dumps(meta))
    return f"meta.json {place}"


def cut(run: Run, random: Random) -> str:
    """End it in an earlier round, as if its scenario had fewer."""
    last = random.randrange(1, run.scenario.rounds)
    for name in ("rounds", "offers", "events"):
        path = run.directory.path / f"{name}.csv"
        header, *rows = path.read_text().splitlines(keepends=True)
        path.write_text("".join([header, *(row for row in rows if int(row.partition(",")[0]) <= last)]))
    path = run.directory.path / "scenario.toml"
    path.write_text(path.read_text().replace(f"rounds = {run.scenario.rounds}\n", f"rounds = {last}\n", 1))
    meta = json.loads((run.directory.path / "meta.json").read_text())
    (run.directory.path / "meta.json").write_text(json.dumps(meta | {"rounds": last}))
    return f"cut after round {last}"


def rename_policy(run: Run, random: Random) -> str:
    """Let another policy play in scenario.toml."""
    table = tomllib.loads((run.directory.path / "scenario.toml").read_text())
    for service in table["services"]:
        service["policy"] = "dearest"
    (run.directory.path / "scenario.toml").write_text(tomlkit.dumps(table))
    return "services play dearest"


def test_runs_as_they_were_written_are_themselves(played: dict[str, Run]) -> None:
    for run in played.values():
        assert [*contradictions(run.directory)] == []
        found = verify(run.directory)
        assert (found.problems, found.unchecked) == ([], [])
        assert split_by_completion([run]) == ([], [run])


def found_by(look: Callable[[], object]) -> bool:
    try:
        return bool(look())
    except InputError:
        return True


@pytest.mark.parametrize("number", [*range(20), *slow(*range(20, 55))])
def test_an_edit_that_the_digests_were_made_to_fit_is_found(
    number: int, played: dict[str, Run], tmp_path: Path
) -> None:
    """By verify, by run before it skips, and by report; training, labels and fits by verify alone."""
    random = Random(number)  # noqa: S311 - reproducible, nothing secret
    run = copied(random.choice([*played.values()]), tmp_path / "runs")
    edit = random.choice([edit_scenario, edit_scenario, edit_meta, edit_meta, edit_meta, cut, rename_policy])
    what = edit(run, random)
    reseal(run.directory.path)
    assert found_by(lambda: verify(run.directory).problems), what
    if not what.startswith(("meta.json ('training'", "meta.json ('labels'", "meta.json ('fits'")):
        assert found_by(lambda: not split_by_completion([run])), what
        assert found_by(lambda: not read([tmp_path])), what


@pytest.mark.slow
def test_a_meta_json_that_lacks_a_value_or_has_another_is_one_sentence(played: dict[str, Run], tmp_path: Path) -> None:
    """Whatever it is, with a digest that fits; and the other runs are reported."""
    whole = copied(played["training"], tmp_path)
    run = copied(played["a policy for all"], tmp_path)
    path = run.directory.path / "meta.json"
    meta = json.loads(path.read_text())
    random = Random(0)  # noqa: S311 - reproducible, nothing secret
    places = [*leaves(meta), *((key,) for key in meta)]
    for place in random.sample(places, 60):
        changed = json.loads(json.dumps(meta))
        if random.random() < 0.5:
            del value_at(changed, place[:-1])[place[-1]]
        else:
            put(changed, place, lambda _: random.choice([None, [], {}, "x", -1, 1e300, True, {"x": []}]))
        path.write_bytes(sealed(changed))
        told: list[str] = []
        assert whole.directory in [it.directory for it in read([tmp_path], told.append)], place
        assert all(text.isprintable() and len(text) < 1_000 for text in told), place
        for look in (lambda: verify(run.directory), lambda: split_by_completion([run])):
            found_by(look)


def sealed(meta: dict[str, Any]) -> bytes:
    """The text of a meta.json with any content, with its own digest."""
    body = {**meta, "sha256": ""}
    blank = (json.dumps({key: body[key] for key in sorted(body)}, indent=2) + "\n").encode()
    own = hashlib.sha256(blank).hexdigest()
    return blank.replace(b'\n  "sha256": ""', f'\n  "sha256": "{own}"'.encode())


@pytest.mark.parametrize("name", ["meta.json", "scenario.toml"])
def test_a_pipe_in_place_of_a_file_is_one_sentence(name: str, played: dict[str, Run], tmp_path: Path) -> None:
    run = copied(played["training"], tmp_path)
    (run.directory.path / name).unlink()
    os.mkfifo(run.directory.path / name)
    assert found_by(lambda: verify(run.directory).problems)
    with pytest.raises(InputError, match=name):
        split_by_completion([run])
    with pytest.raises(InputError, match=name):
        read([tmp_path])


@pytest.mark.parametrize("name", ["hash", "policy", "seed"])
def test_a_run_in_the_folder_of_another_is_found(name: str, played: dict[str, Run], tmp_path: Path) -> None:
    run = copied(played["a policy for all"], tmp_path)
    parts = run.directory.path.relative_to(tmp_path).parts
    other = {
        "hash": ("paper-01234567", *parts[1:]),
        "policy": (parts[0], "hqfa", parts[2]),
        "seed": (*parts[:2], "seed-0007"),
    }
    place = tmp_path.joinpath(*other[name])
    place.parent.mkdir(parents=True, exist_ok=True)
    run.directory.path.rename(place)
    [problem] = verify(RunDirectory(place)).problems
    assert problem == f"meta.json: is that of {'/'.join(parts)}, but lies in a folder of another name"
    with pytest.raises(RunDirectoryError, match="another name"):
        read([tmp_path])


def test_a_copy_in_a_folder_of_any_name_is_a_run(played: dict[str, Run], tmp_path: Path) -> None:
    shutil.copytree(played["training"].directory.path, tmp_path / "best")
    assert verify(RunDirectory(tmp_path / "best")).problems == []
    assert len(read([tmp_path / "best"])) == 1


def test_what_an_earlier_version_did_not_record_is_said(played: dict[str, Run], tmp_path: Path) -> None:
    run = copied(played["training"], tmp_path)
    meta = run.directory.meta()
    del meta["files"], meta["hashed"]
    run.directory.finish(meta)
    found = verify(run.directory)
    assert found.problems == []
    assert found.unchecked == [
        "that scenario.toml is that of the run's hash, as an earlier version did not record what this is of"
    ]
    cut(run, Random(0))  # noqa: S311
    reseal(run.directory.path)
    with pytest.raises(RunDirectoryError, match=r"scenario\.toml: rounds is not that of the run's hash"):
        split_by_completion([run])  # which knows what the hash is of
