"""The public interface changes only together with the changelog."""

from api import public, recorded


def test_the_interface_is_the_one_written_down() -> None:
    """After a change that is meant: a line in CHANGELOG.md, then ``make api``."""
    assert public() == recorded()[1]
