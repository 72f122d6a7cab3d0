"""``--seeds``: a count, a list, ranges, or a mistake with a name."""

import pytest

from flmarket.core.errors import InputError
from scenarios.running.seeds import parse_seeds


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
        with pytest.raises(InputError, match="--seeds"):
            parse_seeds(text)
    else:
        assert parse_seeds(text) == seeds
