"""Messages that quote what they found stay readable."""

import pytest

from flmarket.core.errors import shortened


@pytest.mark.parametrize(
    ("message", "shown"), [("x" * 300, "x" * 300), ("x" * 301, "x" * 300 + "..."), ("plain", "plain")]
)
def test_a_long_message_loses_its_end(message: str, shown: str) -> None:
    assert shortened(ValueError(message)) == shown
