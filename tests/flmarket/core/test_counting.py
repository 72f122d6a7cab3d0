"""Counts and times in words."""

import pytest

from flmarket.core.text import counted, duration, spans


def test_a_noun_has_its_plural_but_for_one() -> None:
    assert [counted(n, "round") for n in (0, 1, 2, 1000)] == ["0 rounds", "1 round", "2 rounds", "1,000 rounds"]


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((4,), "4"), ((3, 4), "3-4"), ((1, 2, 3, 7, 9, 10), "1-3, 7, 9-10")]
)
def test_numbers_that_follow_one_another_are_a_span(numbers: tuple[int, ...], text: str) -> None:
    assert spans(numbers) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (11.2, "12 s"), (59.9, "60 s"), (60, "1 min"), (3599, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_times_are_rounded_up(seconds: float, text: str) -> None:
    assert duration(seconds) == text
