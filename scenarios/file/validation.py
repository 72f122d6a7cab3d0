"""A scenario's data, examined: the schema first, then what involves several keys."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from scenarios.file.checks import Catalogue, check
from scenarios.file.problems import Finding
from scenarios.file.readable import Readable
from scenarios.file.schema import Scenario
from scenarios.file.wording import findings


def examine(
    # as ``tomllib`` reads it, with a flat ``sweep``; the sweep's keys and values are not examined
    data: Mapping[str, Any],
    catalogue: Catalogue,  # the data sets and policies that it may name
) -> tuple[Scenario | None, list[Finding]]:
    """Return the scenario, or None and all that is wrong with it."""
    scenario, found = read(data)
    found += check(Readable(data, [finding.path for finding in found]), catalogue)
    if scenario and not found and catalogue.obstacles:
        found += catalogue.obstacles(scenario)
    return (None if found else scenario), found


def read(data: Mapping[str, Any]) -> tuple[Scenario | None, list[Finding]]:
    """Return the scenario, or None and what is wrong with single keys."""
    try:
        return Scenario.model_validate(data), []
    except ValidationError as error:
        return None, findings(error.errors(include_url=False))
