"""Clients of a market with some of their fields changed, for all of them alike."""

from dataclasses import fields, replace
from typing import Any

from des.clients.data_tables import Group, PopulationSpec

_OF_GROUPS = {field.name for field in fields(Group)}


def changed(clients: PopulationSpec, **changes: Any) -> PopulationSpec:
    """Return clients with changes of ``PopulationSpec``, and of every one of its groups."""
    of_groups = {name: changes.pop(name) for name in _OF_GROUPS & changes.keys()}
    groups = changes.pop("groups", clients.groups)
    return replace(clients, groups=tuple(replace(group, **of_groups) for group in groups), **changes)
