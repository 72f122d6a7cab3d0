"""Whether a run is the one that its files say: its folder and meta.json, held against scenario.toml and the run's hash.

meta.json records the text that the hash is of, so the hash says which scenario was played, whatever defaults later
versions have. Who changes both, and the logs, is found by ``flmarket verify --rerun`` alone.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import lru_cache, partial
from typing import Any

from pydantic import ValidationError

from fl.backends import BACKENDS
from fl.data.embedded import DRAWN
from flmarket.core.errors import InputError, shortened
from learning.policy import AS_CONFIGURED
from scenarios.file.client_files import digests_in
from scenarios.file.differences import flattened
from scenarios.file.overrides import COUNT, AddressError, addresses, put, service_tables
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario
from scenarios.loader import digest_of
from scenarios.logs.directory import AGAIN, META, SCENARIO, RunDirectory, RunDirectoryError

_SEAT = ("policy", "policy_options", "checkpoint")
"""The keys of a service that ``--policy`` changes; the hash is of those before."""


def scenario_of(run: RunDirectory) -> Scenario:
    """Return the scenario of a run that was played: its names need not be known here."""
    try:
        return _parsed(run.scenario_text())
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise InputError(f"{run.path / SCENARIO}: is not the scenario of a run: {problem}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{run.path / SCENARIO}: is not the scenario of a run: {shortened(error)}") from error


@lru_cache(maxsize=64)  # the runs of a batch differ in their seeds alone
def _parsed(text: str) -> Scenario:
    return Scenario.model_validate(tomllib.loads(text))


def require_itself(run: RunDirectory, hashed: str | None = None) -> None:
    """Check that a complete run is the one that its files say; see ``contradictions``."""
    for problem in contradictions(run, hashed):
        raise RunDirectoryError(f"{run.path}/{problem}; {AGAIN}")


def contradictions(
    run: RunDirectory,  # complete
    hashed: str | None = None,  # what the hash is of, where meta.json, of an earlier version, does not record it
) -> Iterator[str]:
    """Yield a sentence for each thing that a run's files say of it and that is not so; they begin with the file."""
    meta, scenario = run.meta(), scenario_of(run)
    yield from _misnamed(run, meta, scenario.name)
    text: str | None = meta.get("hashed", hashed)
    wanted = {"scenario": scenario.name, "backend": scenario.training.backend, "device": scenario.training.device}
    for key, value in wanted.items():
        if meta.get(key, value) != value:
            yield f"{META}: {key} is {meta[key]!r}, but {SCENARIO} has {value!r}"
    base: dict[str, Any] | None = None
    if text is not None:
        if digest_of(text) != meta["hash"]:
            yield f"{META}: hash is {meta['hash']}, but what it is of has {digest_of(text)}"
            return
        base, inputs = _unhashed(text)
        if other := _other_key(run.scenario_text(), text):
            yield f"{SCENARIO}: {other} is not that of the run's hash"
        yield from _other_inputs(meta, inputs)
    if _label(meta, scenario, base) != meta["policy"]:
        yield f"{META}: policy is {meta['policy']!r}, which is not what the services of {SCENARIO} play"
    for key, value in meta["sweep"].items():
        if base is not None and not _has(base, key, value):
            yield f"{META}: sweep: {key} is {value!r}, but {SCENARIO} has another value"


def _misnamed(run: RunDirectory, meta: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield where a folder has a name as flmarket gives it, but another run's."""
    right = f"{name}-{meta['hash']}", meta["policy"], f"seed-{meta['seed']:04d}"
    here = ("", "", *run.path.absolute().parts)[-3:]
    ours = re.fullmatch(r".+-[0-9a-f]{8}", here[0]) is not None
    if (ours and here[:2] != right[:2]) or (re.fullmatch(r"seed-\d{4,}", here[2]) and here[2] != right[2]):
        yield f"{META}: is that of {'/'.join(right)}, but lies in a folder of another name"


def _unhashed(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the scenario that a hash is of, as TOML would have it, and the digests of files, by name."""
    scenario, _, inputs = text.partition("\0")
    without_none = partial(filter, lambda item: item[1] is not None)  # TOML has no null
    return json.loads(scenario, object_pairs_hook=lambda items: dict(without_none(items))), json.loads(inputs)


@lru_cache(maxsize=64)
def _other_key(text: str, hashed: str) -> str | None:
    """Return a key in which scenario.toml is not the scenario of the hash, but for who plays; None if there is none."""
    found, (wanted, _) = tomllib.loads(text), _unhashed(hashed)
    if not BACKENDS[wanted["training"]["backend"]].trains:  # its hash is the same whatever part is held out
        wanted["training"]["validation"] = found["training"]["validation"]
    for table in (found, wanted):
        for service in service_tables(table):
            for key in _SEAT:
                service.pop(key, None)
    if found == wanted:
        return None
    here, there = flattened(found), flattened(wanted)
    return next((key for key in sorted({*here, *there}) if here.get(key) != there.get(key)), "something")


def _other_inputs(meta: Mapping[str, Any], inputs: Mapping[str, str]) -> Iterator[str]:
    """Yield which digests of files, as meta.json records them, are not those of the hash."""
    recorded = {name: it["sha256"] for name, it in meta["data"].items()}
    found = {f"{name}/{file}": of for name, digests in recorded.items() for file, of in digests.items()}
    found |= digests_in(meta)
    found |= meta["agents"] if meta["policy"] == AS_CONFIGURED else {}
    wanted = {name: of for name, of in inputs.items() if name in found or not re.match(r"agent/|\w+ fit/", name)}
    for name in sorted({*found, *wanted}):
        if found.get(name) != wanted.get(name) and name.partition("/")[0] not in DRAWN:  # those are always the same
            yield f"{META}: the digest of {name} is not that of the run's hash"
            return


def _label(meta: Mapping[str, Any], scenario: Scenario, base: Mapping[str, Any] | None) -> str | None:
    """Return the label that a run should have by who plays in scenario.toml; None if it has another."""
    label = meta["policy"]
    if label == AS_CONFIGURED:
        same = base is None or _seats(scenario.model_dump(exclude_none=True)) == _seats(base)
        return label if same else None
    try:
        return PolicyChoice.again(label, scenario, meta["agents"]).label_in(scenario)
    except KeyError:
        return None


def _seats(data: Mapping[str, Any]) -> list[list[Any]]:
    return [[table.get(key) for key in _SEAT] for table in service_tables(data)]


def _has(base: Mapping[str, Any], key: str, value: Any) -> bool:
    """Whether a scenario has a value under a dotted key, as a sweep gives it."""
    if key == COUNT:
        return bool(len(base["services"]) == value)
    changed = deepcopy(dict(base))
    try:
        for path in addresses(changed, key):
            put(changed, path, value)
        return Scenario.model_validate(changed) == Scenario.model_validate(base)
    except (AddressError, ValueError, LookupError, TypeError):
        return False
