"""Names that are refused, and what an error suggests in place of an unknown one."""

import pytest

from flmarket.core.names import LONGEST_NAME, did_you_mean, folder_problem, name_problem, nearest, suggest


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        ("target", ["targets", "target_accuracy"], "targets"),
        ("rate", ["ratio", "rate_of_departure"], "rate_of_departure"),
        ("rat", ["ratio", "brat"], "ratio"),
        ("ra", ["random", "rap"], "rap"),
        ("ra", ["random_accuracy"], None),
        ("bugdet", ["budget", "rounds"], "budget"),
        ("CNN", ["mlp", "cnn"], "cnn"),
        ("entirely", ["other", "names"], None),
        ("until", ["count", "rate"], None),
        ("x" * 10_000, ["x" * 90], "x" * 90),
        (7, ["7"], None),
    ],
)
def test_the_nearest_name_begins_with_what_was_given_or_is_like_it(
    given: object, known: list[str], expected: str | None
) -> None:
    assert nearest(given, known) == expected


def test_without_a_near_one_all_are_named() -> None:
    assert did_you_mean("best", ["random", "lcfa"]) == ""
    assert suggest("best", ["random", "lcfa"]) == "; choose from random, lcfa"
    assert suggest("randon", ["random", "lcfa"]) == did_you_mean("randon", ["random"]) == "; did you mean 'random'?"
    assert suggest("best", []) == ""


def test_names_have_a_longest_length_and_no_sign_that_a_path_or_a_formula_begins_with() -> None:
    assert name_problem("a" * LONGEST_NAME) is None
    assert name_problem("a" * (LONGEST_NAME + 1)) == "a name has at most 64 characters"
    wrong = "a name consists of letters, digits, '.', '_' and '-', and does not start with '.' or '-'"
    assert [name_problem(name) for name in ("..", "-x", "=x", "a/b", "", "x\n")] == [wrong] * 6
    assert folder_problem("mahdrl@mine-1a2b3c4d") is None
    assert folder_problem("a" * 200) is None
    assert folder_problem("a" * 201) == f"{'a' * 60!r} cannot be the name of a folder"
    assert folder_problem("@mine") == "'@mine' cannot be the name of a folder"
