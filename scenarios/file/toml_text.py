"""Scenarios written as TOML: one text for one scenario, whatever file it came from."""

import json
from collections.abc import Mapping
from typing import Any

from fl.backends import BACKENDS
from scenarios.file.clients import ClientBehaviour, ClientLasting, Cost
from scenarios.file.problems import BARE_KEY
from scenarios.file.schema import Market, Scenario, Training

_PLAIN = {"market": Market().model_dump(), "sweep": {}, "runs": (), "interventions": ()}
"""Tables that are not written while they hold nothing special."""

_SECRETS = ("bids", "dqi", "dqi_noise")
"""Keys of the market that are not written where they are as in the paper: a scenario's text stays what it was."""

_SPLIT = Training().validation

_PLAIN_CLIENTS = {
    "emd": (),
    "label_mix": {},
    "behaviour": ClientBehaviour().model_dump(),
    "lasting": ClientLasting().model_dump(),
}


def dumps(scenario: Scenario) -> str:
    """Return a scenario as TOML with every default written out; it loads back to an equal scenario.

    Keys stand in the order of the schema. What has no value (a deadline, say) is left out, as TOML has no word for it;
    of the keys of a regime see ``scenarios.file.settled``. A sweep, runs and interventions are left out where there are
    none, a service's arrival where it is the first round, and the rules of the market, noise, and how clients behave
    and how their data lasts and its labels are drawn, where that is as in the paper; and the default of the validation
    split where nothing is trained.
    """
    data = scenario.model_dump(exclude_none=True)
    for key, plain in _PLAIN.items():
        if data[key] == plain:
            del data[key]
    for key, plain in _PLAIN_CLIENTS.items():
        if data["clients"][key] == plain:
            del data["clients"][key]
    for key in _SECRETS:
        if "market" in data and data["market"][key] == Market.model_fields[key].default:
            del data["market"][key]
    if data["clients"]["cost"]["noise"] == Cost.model_fields["noise"].default:
        del data["clients"]["cost"]["noise"]
    if data["training"]["validation"] == _SPLIT and not BACKENDS[scenario.training.backend].trains:
        del data["training"]["validation"]
    for service in data["services"]:
        if service["arrival"] == 1:
            del service["arrival"]
    lines = _table((), data)
    return "\n".join(lines).strip("\n") + "\n"


def value_text(value: Any) -> str:
    """Return a value as TOML, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)  # the shortest text that reads back as the same number
        case str():
            return _string(value)
        case Mapping():
            pairs = ", ".join(f"{key_text(key)} = {value_text(item)}" for key, item in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case _:
            return f"[{', '.join(map(value_text, value))}]"


def key_text(key: str) -> str:
    """Return a key as TOML, in quotes where it needs them."""
    return key if BARE_KEY.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    """Write a basic string. JSON escapes all that TOML wants escaped, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(path: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
    """Write what a table holds itself, then the tables below it under headers of their own."""
    lines, below = [], []
    for key, value in table.items():
        header = ".".join(map(key_text, (*path, key)))
        if isinstance(value, tuple | list) and value and all(isinstance(item, Mapping) for item in value) and not path:
            for item in value:
                below += ["", f"[[{header}]]", *_table((*path, key), item)]
        elif isinstance(value, Mapping) and _has_header(path, value):
            below += ["", f"[{header}]", *_table((*path, key), value)]
        else:
            lines.append(f"{key_text(key)} = {value_text(value)}")
    return lines + below


def _has_header(path: tuple[str, ...], table: Mapping[str, Any]) -> bool:
    """Whether a table stands under a header: at the top, and where it holds further tables; small ones are inline."""
    return bool(table) and (not path or any(isinstance(value, Mapping) for value in table.values()))
