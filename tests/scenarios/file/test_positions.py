"""Lines of values in a TOML text."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scenarios.file.problems import Path
from scenarios.file.toml import Positions, value_text

TEXT = '''\
plain = 1
"a.b".'c' = """two
lines with ] and = and ""quotes"\\"""" # a comment = 1
[table]
list = [ 1, # ] one
  [2, 3], "]", \'\'\'
'\'\',
  { x = 1, "y" = [ 4,
    5 ] } ]
date = 1979-05-27 07:32:00

[[services]]
name = "a"
[services.options] # of the first
deep = { er = {} }
[[ services ]]
[u.v.w]
x.y = 1
[u]
z = 0
'''


def test_every_value_has_its_line() -> None:
    tomllib.loads(TEXT)
    assert Positions(TEXT).lines == {
        ("plain",): 1,
        ("a.b",): 2,
        ("a.b", "c"): 2,
        ("table",): 4,
        ("table", "list"): 5,
        ("table", "list", 0): 5,
        ("table", "list", 1): 6,
        ("table", "list", 1, 0): 6,
        ("table", "list", 1, 1): 6,
        ("table", "list", 2): 6,
        ("table", "list", 3): 6,
        ("table", "list", 4): 8,
        ("table", "list", 4, "x"): 8,
        ("table", "list", 4, "y"): 8,
        ("table", "list", 4, "y", 0): 8,
        ("table", "list", 4, "y", 1): 9,
        ("table", "date"): 10,
        ("services",): 12,
        ("services", 0): 12,
        ("services", 0, "name"): 13,
        ("services", 0, "options"): 14,
        ("services", 0, "options", "deep"): 15,
        ("services", 0, "options", "deep", "er"): 15,
        ("services", 1): 16,
        ("u",): 19,
        ("u", "v"): 17,
        ("u", "v", "w"): 17,
        ("u", "v", "w", "x"): 18,
        ("u", "v", "w", "x", "y"): 18,
        ("u", "z"): 20,
    }


def test_what_is_absent_has_the_line_of_what_is_around_it() -> None:
    positions = Positions(TEXT)
    assert positions.line(("services", 0, "budget")) == 12
    assert positions.line(("services", 1, "options", "deep")) == 16
    assert positions.line(("nothing",)) == 1


def test_windows_line_ends_are_one_line_each() -> None:
    assert Positions('a = """\r\n"""\r\nb = 1\r\n').line(("b",)) == 3


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.lists(st.dictionaries(st.text(), VALUES, max_size=3)))
def test_every_value_of_any_text_is_found(table: dict[str, Any], array: list[dict[str, Any]]) -> None:
    """Whatever the keys and strings hold, the scanner sees what ``tomllib`` sees."""
    lines = ["[t]", *(f"{value_text(key)} = {value_text(value)} # ']" for key, value in table.items())]
    for item in array:
        lines += ["[[a.b]]", *(f"  {value_text(key)}\t= {value_text(value)}" for key, value in item.items())]
    text = "\n".join(lines)
    positions = Positions(text).lines
    assert set(positions) == set(_paths(tomllib.loads(text)))
    for i, key in enumerate(table):
        assert positions["t", key] == i + 2


def _paths(value: Any, path: Path = ()) -> list[Path]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in [(*path, key), *_paths(item, (*path, key))]]
