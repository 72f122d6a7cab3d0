"""``data.partition``: a rule, such as ``shards(2)``, or a file that lists the images of each client.

A file is CSV with the header ``client,image``, or JSON: ``{"0": [17, 4], "1": [5]}``. Images are counted from 0, in the
order of the data set's training split.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from fl.backends import BACKENDS
from fl.data.dirichlet import LEAST, MOST
from fl.data.partition import Dirichlet, Division, Iid, Listed, Partition, Shards
from fl.data.registry import info
from flmarket.core.errors import InputError
from flmarket.core.files import expanded, read_regular
from flmarket.core.text import counted, printable
from scenarios.file.number_table import decoded, rows, whole
from scenarios.file.problems import number
from scenarios.file.schema import Scenario

COLUMNS = ("client", "image")
_RULE = re.compile(r"(iid|dirichlet|shards)(?:\(([^()]*)\))?")
_RULES = "iid, dirichlet(CONCENTRATION), shards(NUMBER)"


def partitions_of(scenario: Scenario) -> dict[str, Partition] | None:
    """Return how the images of each data set are divided among the clients; None where they belong to nobody."""
    if not scenario.data.given:
        return None
    names = dict.fromkeys(service.dataset for service in scenario.services)
    return {name: partition_of(scenario, name) for name in names}


def without_images(scenario: Scenario) -> frozenset[int]:
    """Return the clients that own no image. They are offline in all rounds.

    Raises:
        InputError: a client owns images of one data set, and none of another.
    """
    found = partitions_of(scenario) or {}
    none = {name: frozenset(np.flatnonzero(np.equal(it.sizes, 0)).tolist()) for name, it in found.items()}
    for name, own in none.items():
        for other, theirs in none.items():
            if lacking := sorted(own - theirs):
                raise InputError(
                    f"client {lacking[0]} owns images of {other!r}, but none of {name!r}; give it some, or take it out"
                )
    return next(iter(none.values()), frozenset())


def digests(scenario: Scenario) -> dict[str, str]:
    """Return the SHA-256 of each file that lists the images of clients, by data set."""
    found = partitions_of(scenario) or {}
    return {name: it.division.sha256 for name, it in found.items() if isinstance(it.division, Listed)}


def require_same_files(scenario: Scenario, meta: Mapping[str, Any], where: str) -> None:
    """Check that files that list the images of clients are those that meta.json records of a run."""
    recorded = meta.get("partition")
    for name, digest in digests(scenario).items():
        if not isinstance(recorded, Mapping) or recorded.get(name) != digest:
            text = printable(str(scenario.data.partition_of(name)))
            raise InputError(f"{where}: {text} is not the file with which the run was played")


def partition_of(scenario: Scenario, name: str) -> Partition:
    """Return how the images of one data set are divided."""
    text, clients = scenario.data.partition_of(name), scenario.clients.count
    if text is None:
        raise InputError(f"{name!r} has none, and other data sets have one; give all of them one, or none")
    trains = BACKENDS[scenario.training.backend].trains
    division = _division(text, clients, info(name).train_size)
    found = Partition(name, division, clients, scenario.training.validation if trains else 0.0)
    if isinstance(division, Listed):
        if found.validation:
            raise InputError(
                f"{printable(text)}: all images of a file belong to clients; set training.validation = 0, which "
                "measures accuracy on the test images"
            )
    elif not min(found.sizes):
        raise InputError(f"{text}: the training images of {name!r} are too few for {number(clients)} clients")
    least, groups = min(filter(None, found.sizes)), scenario.clients.groups
    for group, kind in scenario.clients.kinds():
        if short := [size for size in kind.data_size if size > least]:
            at = f"client {found.sizes.index(least)} owns" if len(found.sizes) > 1 else "each client owns"
            own = None if group is None or groups[group].data_size is None else groups[group].name
            key = "clients" if own is None else f"clients.groups.{own}"
            raise InputError(
                f"{printable(text)}: {at} {counted(least, 'image')} of {name!r}, fewer than the {number(short[0])} of "
                f"{key}.data_size"
            )
    return found


def _division(text: str, clients: int, images: int) -> Division:
    if match := _RULE.fullmatch(text.replace(" ", "")):
        rule, value = match.groups()
        try:
            if rule == "iid" and value is None:
                return Iid()
            if rule == "dirichlet" and LEAST <= float(value) <= MOST:
                return Dirichlet(float(value))
            if rule == "shards" and int(value) >= 1:
                return Shards(int(value))
        except (TypeError, ValueError):
            pass
        limits = f"a CONCENTRATION is {LEAST:g} to {MOST:g}, a NUMBER at least 1"
        raise InputError(f"{printable(text)}: must be one of {_RULES}, or a file; {limits}")
    try:
        content = read_regular(expanded(text))
    except OSError as error:
        raise InputError(f"{printable(text)} is neither {_RULES} nor a file: {error.strerror}") from error
    return _listed(printable(text), content, clients, images)


@lru_cache(maxsize=8)
def _listed(path: str, content: bytes, clients: int, images: int) -> Listed:
    own: list[list[int]] = [[] for _ in range(clients)]
    owner: dict[int, str] = {}
    for where, client, image in _entries(path, content):
        if client >= clients:
            raise InputError(f"{where}: unknown client {number(client)}; clients are 0 to {number(clients - 1)}")
        if image >= images:
            raise InputError(f"{where}: unknown image {number(image)}; images are 0 to {number(images - 1)}")
        if image in owner:
            raise InputError(f"{where}: image {image} is listed twice; see {owner[image]}")
        owner[image] = where
        own[client].append(image)
    if not owner:
        raise InputError(f"{path}: no client owns an image")
    arrays = tuple(np.array(listed, dtype=np.int64) for listed in own)
    return Listed(arrays, hashlib.sha256(content).hexdigest())


def _entries(path: str, content: bytes) -> Iterator[tuple[str, int, int]]:
    text = decoded(path, content)
    if text.lstrip()[:1] in {"{", "["}:
        yield from _entries_of_json(path, text)
    else:
        for where, (client, image) in rows(path, text, COLUMNS):
            yield where, client, image


def _entries_of_json(path: str, text: str) -> Iterator[tuple[str, int, int]]:
    try:
        found = json.loads(text, object_pairs_hook=tuple)  # a mapping would forget a client that is listed twice
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise InputError(f"{path}: is nested too deeply") from error
    except ValueError as error:
        raise InputError(f"{path}: has a number of thousands of digits") from error
    if not isinstance(found, tuple) or not all(isinstance(own, list) for _, own in found):
        raise InputError(f'{path}: must list the images of each client: {{"0": [17, 4], "1": [5]}}')
    seen: set[int] = set()
    for client, own in found:
        where = f"{path}: client {printable(client[:20])}"
        if (index := whole(f"{path}: client", client)) in seen:
            raise InputError(f"{where} is listed twice")
        seen.add(index)
        for image in own:
            yield where, index, whole(f"{where}: image", str(image) if type(image) is int else repr(image))
