"""The hyper-parameters of a training: ``--option key=value``, checked against the settings of the policy."""

from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from fl.errors import InputError
from fl.names import suggest
from scenarios.file.addresses import AddressError
from scenarios.file.overrides import read_value

_LONGEST_SHOWN = 60


def parse_options(texts: Sequence[str]) -> dict[str, Any]:
    """Read ``--option key=value``; values as in TOML, and bare words as text."""
    options: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--option {_shortened(text)!r}: must be KEY=VALUE")
        try:
            parsed = read_value(value.strip())
        except AddressError as error:
            raise InputError(f"--option {_shortened(text)}: {error}") from error
        if (name := key.strip()) in options:
            raise InputError(f"--option {name}: is given twice; leave one out")
        options[name] = tuple(parsed) if isinstance(parsed, list) else parsed
    return options


def settings_of(
    kind: Any,  # the class of the settings, whose annotations say what a value must be
    options: Mapping[str, Any],  # values of its fields, by name
    policy: str,  # what messages call it
) -> Any:
    """Return a policy's settings, with options in place of the defaults."""
    known = get_type_hints(kind, include_extras=True)
    if unknown := sorted(options.keys() - known.keys()):
        raise InputError(f"--option {unknown[0]}: unknown hyper-parameter of {policy}{suggest(unknown[0], known)}")
    valid = {}
    for name, value in options.items():
        try:
            valid[name] = TypeAdapter(known[name]).validate_python(value, strict=True)
        except ValidationError as error:
            raise InputError(
                f"--option {name}: {error.errors()[0]['msg'].lower()}, not {_shortened(repr(value))}"
            ) from error
    return kind(**valid)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
