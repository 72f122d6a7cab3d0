"""Whatever the text, the answer is a scenario or a ``ScenarioError``."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenarios.file.toml import value_text
from scenarios.loader import Problem, ScenarioError, dumps, parse, points
from support.tiers import examples

FUZZ = settings(examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])

VALUES = st.recursive(
    st.booleans()
    | st.integers()
    | st.sampled_from([0, 1, 2**63, 10**400, 0.5, 1e308, -0.0, 97])
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["mnist", "random", "real", "clients.cores", "a/b", "\x1b[2J", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["name", "rounds", "clients", "clients.cores", "clients.emd", "clients.data_size", "clients.cost", "services",
     "training.by_dataset.mnist", "timeline.slot", "sweep", "sweep.rounds", "services.mnist.budget", "sweep.sweep",
     "services.digits.policy_options", "services.mnist.name", "services.mnist.dataset", "zzz", "name.x.y"]
)  # fmt: skip


def attempt(text: str, overrides: Sequence[str] = ()) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        scenario = parse(text, "f", overrides)
    except ScenarioError as error:
        problems = error.problems
    else:
        assert parse(dumps(scenario)) == scenario.with_seats({})
        assert points(scenario)
        return
    assert problems
    assert all(str(problem).isprintable() for problem in problems)
    assert all(problem.line is None or 1 <= problem.line <= text.count("\n") + 1 for problem in problems)


@FUZZ
@given(text=st.text())
def test_any_text(text: str) -> None:
    attempt(text)


@FUZZ
@given(data=st.data())
def test_any_cut_and_paste(market: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(market)))
    end = data.draw(st.integers(start, min(len(market), start + 40)))
    paste = data.draw(
        st.text(max_size=3) | st.sampled_from(["[[services]]\n", "[sweep]\n", "[clients.x]\n", "{}", "="])
    )
    attempt(market[:start] + paste + market[end:])


@FUZZ
@given(lines=st.lists(st.integers(0, 33), max_size=4), values=st.lists(VALUES, min_size=4, max_size=4))
def test_any_value_at_any_key(market: str, lines: list[int], values: list[Any]) -> None:
    text = market.split("\n")
    for line, value in zip(lines, values, strict=False):
        key, equals, _ = text[line].partition("=")
        if equals:
            text[line] = f"{key}= {value_text(value)}"
    attempt("\n".join(text))


@FUZZ
@given(settings=st.lists(st.tuples(KEYS, VALUES), max_size=3))
def test_any_override(market: str, settings: list[tuple[str, Any]]) -> None:
    attempt(market, [f"{key}={value_text(value)}" for key, value in settings])


@FUZZ
@given(override=st.text())
def test_any_text_as_an_override(market: str, override: str) -> None:
    attempt(market, [override])


@FUZZ
@given(sweep=st.dictionaries(KEYS, st.lists(VALUES, max_size=3) | VALUES, max_size=3))
def test_any_sweep(market: str, sweep: dict[str, Any]) -> None:
    attempt(market + "[sweep]\n" + "".join(f'"{k}" = {value_text(v)}\n' for k, v in sweep.items()))


def test_a_path_in_place_of_a_data_set(market: str) -> None:
    """Found by the fuzzer above."""
    attempt(market, ['services.mnist.dataset="/"'])
