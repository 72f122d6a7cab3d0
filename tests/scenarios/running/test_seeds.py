"""Seeds as the shell and the run dialog take them: a count, a list, ranges, or a mistake with a name."""

import pytest

from flmarket.core.errors import InputError
from scenarios.running.run_options import parse_seeds


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("1", [0]),
        ("10", list(range(10))),
        ("0,3,7", [0, 3, 7]),
        ("0..3", [0, 1, 2, 3]),
        ("5,", None),
        ("2..4,9,3", [2, 3, 4, 9]),
        (" 7 , 8 ", [7, 8]),
        ("0", None),
        ("4..2", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("0..99999999", None),
    ],
)
def test_seeds(text: str, seeds: list[int] | None) -> None:
    if seeds is None:
        with pytest.raises(InputError, match="seeds"):
            parse_seeds(text)
    else:
        assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "seeds"), [("3..3", [3]), ("0, 3", [0, 3]), ("0..4", [0, 1, 2, 3, 4]), (" 7,2..3,7 ", [7, 2, 3])]
)
def test_one_seed_is_a_range_and_each_is_named_once(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "two", "4..0", "1,,2", "-1", "1234567890", "²"])
def test_what_is_no_seed_is_named(text: str) -> None:
    with pytest.raises(InputError, match=r"is neither a seed of at most nine digits \(3\) nor a range|runs backwards"):
        parse_seeds(text)
