"""Reading a scenario takes work in proportion to its size, whatever is in it: no file stalls whoever opens it."""

import sys
from collections.abc import Callable

import pytest

from scenarios.file.problems import ScenarioError
from scenarios.loader import parse


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(lambda size: " " * size + "x", id="spaces"),
        pytest.param(lambda size: "a" + "\t" * size, id="key-and-tabs"),
        pytest.param(lambda size: "[" * size, id="brackets"),
        pytest.param(lambda size: "a = " + "[" * size, id="lists-in-lists"),
        pytest.param(lambda size: ".".join("a" * (size // 2)) + " = 1", id="long-dotted-key"),
        pytest.param(lambda size: "x = {" + ".".join("a" * (size // 2)) + " = 1}", id="long-dotted-key-in-a-table"),
        pytest.param(lambda size: "x = {" + " . ".join(["'a'"] * (size // 6)) + " = 1}", id="long-quoted-key"),
        pytest.param(lambda size: (".".join(["ab"] * 30) + "\n") * (size // 90), id="many-dotted-keys"),
        pytest.param(lambda size: "a" * size + " = 1", id="long-key"),
        pytest.param(lambda size: 'a = "' + '\\"' * (size // 2), id="open-string"),
        pytest.param(lambda size: 'a = """' + '"" ' * (size // 3), id="open-text"),
        pytest.param(lambda size: "a = '''" + "'' " * (size // 3), id="open-literal-text"),
        pytest.param(lambda size: 'a = "' + "a." * (size // 2) + '"', id="dots-in-a-string"),
        pytest.param(lambda size: "#" * size, id="comment"),
        pytest.param(lambda size: "a = [\n" + "# b\n" * (size // 4), id="comments-in-a-list"),
        pytest.param(
            lambda size: 'a = "' + ("1" * 3_990 + "x") * (size // 4_000) + '"\nb = ' + "1" * 5_000, id="digits"
        ),
        pytest.param(lambda size: "a = 0." + "1" * size, id="decimals"),
    ],
)
@pytest.mark.timeout(60)  # it takes half a second at most; what grows with the square would take minutes
def test_a_megabyte_that_regular_expressions_read_is_no_stall(text: Callable[[int], str]) -> None:
    with pytest.raises(ScenarioError):
        parse(text(1_000_000), "x.toml")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(lambda size: "[[services]]\n" * (size // 13), id="empty-services"),
        pytest.param(lambda size: "[[interventions]]\nround = 1\n" * (size // 28), id="interventions"),
        pytest.param(lambda size: "".join(f"[t{n}]\n" for n in range(size // 8)), id="unknown-tables"),
        pytest.param(lambda size: '[sweep]\n"clients.cores" = [' + "1," * (size // 2) + "]", id="sweep"),
        pytest.param(
            lambda size: (
                "".join(f'[[services]]\nname = "s{n}"\n' for n in range(size // 60))
                + f'[sweep]\n"services.s1.budget" = {list(range(size // 20))}'
            ),
            id="sweep-and-services",
        ),
    ],
)
def test_four_times_the_size_makes_no_more_than_ten_times_as_many_calls(text: Callable[[int], str]) -> None:
    """What grows with the square makes sixteen times as many."""

    def calls(size: int) -> int:
        content, events = text(size), []
        sys.setprofile(lambda *_: events.append(None))
        try:
            with pytest.raises(ScenarioError):
                parse(content, "x.toml")
        finally:
            sys.setprofile(None)
        return len(events)

    assert calls(20_000) < 10 * calls(5_000)
