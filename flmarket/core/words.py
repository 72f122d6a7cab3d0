"""The words in which messages name options: the shell's, ``--fresh``, or Python's, ``fresh=True``.

Everything that raises an error names the options of the command line. What Python calls goes through ``in_python``,
which puts the message into the words of the function's parameters. This is the only place that knows both.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from flmarket.core.errors import InputError, RunError

_PHRASES = {
    "with --plugin FILE": "with flmarket.load_plugin(FILE)",
    "--plugin FILE": "flmarket.load_plugin(FILE)",
    "choose another --out": "choose another out=",
    "train into another --out": "train into another out=",
    "with --set": "with load's overrides",
    "add --rotate": "add rotate=True",
    "raise --episodes": "raise episodes=",
    "--together is": "together is",
    "--tensorboard:": "tensorboard:",
    "--engine ray": "engine='ray'",
    "--decision-timeout SECONDS": "decision_timeout=SECONDS",
}
"""Python's words for an option and the words around it."""

_SWITCHES = {"fresh", "fresh-changed", "resume", "rotate"}
_VALUES = {
    "out",
    "part",
    "policy",
    "baseline",
    "rounds",
    "backend",
    "seeds",
    "ray-address",
    "rivals",
    "together",
    "decision-timeout",
}
_NAMES = {"policy": "policies"}
_OPTION = re.compile(
    rf"(?<![\w-])--(?:(?P<switch>{'|'.join(sorted(_SWITCHES))})(?![\w-])"
    rf"|option (?P<key>\w+)"
    rf"|(?P<option>{'|'.join(sorted(_VALUES))})(?![\w-])(?: (?P<value>'[^']*'|[^\s;,]+?)(?=:?(?:[\s;,]|$)))?)"
)


def pythonic(text: str) -> str:
    """Return a message in Python's words: ``baseline='x': no run has that policy`` for ``--baseline x: ...``."""
    for phrase, words in _PHRASES.items():
        text = text.replace(phrase, words)
    return _OPTION.sub(_parameter, text)


def _parameter(found: re.Match[str]) -> str:
    if switch := found["switch"]:
        return f"{switch.replace('-', '_')}=True"
    if key := found["key"]:
        return f"options[{key!r}]"
    name = _NAMES.get(found["option"], found["option"].replace("-", "_"))
    value = found["value"]
    if value is None:
        return f"{name}="
    return f"{name}={value if value.startswith(chr(39)) or value.isdigit() else repr(value)}"


@contextmanager
def in_python() -> Iterator[None]:
    """Put the messages of the errors that users can meet into Python's words. A decorator, too."""
    try:
        yield
    except (InputError, RunError) as error:
        error.reword(pythonic)
        raise
