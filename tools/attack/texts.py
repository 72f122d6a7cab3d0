"""Scenario files: whatever is in them, the answer is a scenario or a list of problems, and it comes soon."""

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from attack.campaign import Campaign
from scenarios.file.toml import value_text
from scenarios.loader import ScenarioError, builtin_names, builtin_text, dumps, parse, points

BATCH = 100
"""Texts of one attempt."""
SLOW = 10.0
"""Seconds; no text of these sizes may take as long."""

VALUES: tuple[object, ...] = (
    0, 1, -1, 2**31, 2**63, 10**30, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), True, False, "", " ", [],
    [[]], "mnist", "random", "\x1b[2J", "[bold]x", "=cmd()", "../../x", "a/b", "<script>", "\u202e", "x" * 5_000,
    "\x00", {}, [1] * 5_000, ["a"], [0.5, 1.5], {"a": {"b": 1}}, [{"name": "x"}], "1979-05-27", "services.0.budget",
    "clients.cores",
)  # fmt: skip
PIECES = (
    "[[services]]\n", "[sweep]\n", "[clients]\n", "[[interventions]]\n", "{}", "=", '"', "'''", '"""', "\\", "#", "\r",
    "\x00", "\ufeff", "\ud800", "[" * 100, "a." * 40, "1" * 5_000, "\n", "  ", ",", "é", "\U0001f600",
)  # fmt: skip


def mutated(random: Random) -> str:
    """Return a built-in scenario with some of its text changed."""
    text = builtin_text(random.choice(builtin_names()))
    for _ in range(random.randint(1, 4)):
        match random.randrange(5):
            case 0:  # another value
                lines = text.split("\n")
                line = random.randrange(len(lines))
                key, equals, _rest = lines[line].partition("=")
                if equals:
                    lines[line] = f"{key}= {value_text(random.choice(VALUES))}"
                text = "\n".join(lines)
            case 1:  # something else in between, or in place of something
                start = random.randrange(len(text) + 1)
                stop = min(len(text), start + random.choice((0, 0, 1, 5, 40)))
                text = text[:start] + random.choice(PIECES) + text[stop:]
            case 2:  # a line twice, or gone
                lines = text.split("\n")
                line = random.randrange(len(lines))
                lines[line : line + 1] = [lines[line]] * random.choice((0, 2))
                text = "\n".join(lines)
            case 3:  # a bit
                place = random.randrange(len(text))
                text = text[:place] + chr(ord(text[place]) ^ (1 << random.randrange(7))) + text[place + 1 :]
            case _:  # lines in another order
                lines = text.split("\n")
                one, other = random.randrange(len(lines)), random.randrange(len(lines))
                lines[one], lines[other] = lines[other], lines[one]
                text = "\n".join(lines)
    return text


def attempt(random: Random, folder: Path) -> Iterator[str]:
    """Read a batch of mutated scenarios."""
    for _ in range(BATCH):
        text = mutated(random)
        begin = time.perf_counter()
        try:
            scenario = parse(text, "x.toml")
            if parse(dumps(scenario)) != scenario or not points(scenario):
                yield f"is not what it says when written and read again: {text!r}"
        except ScenarioError as error:
            if not error.problems or not all(str(problem).isprintable() for problem in error.problems):
                yield f"has no problem, or one that is not printable: {text!r}"
        except Exception as error:
            yield f"{error!r}: {text!r}"
        if (seconds := time.perf_counter() - begin) > SLOW:
            yield f"took {seconds:.1f} s: {text!r}"


CAMPAIGNS = (
    Campaign("scenario-files", f"{BATCH} mutated scenario files: a scenario or a list of problems, soon", 200, attempt),
)
