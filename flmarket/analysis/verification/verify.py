"""``flmarket verify``: does a run's log keep every constraint, and does its money add up?

The rules are in ``flmarket.analysis.verification.rules``. What cannot be derived from the logs is checked by
``flmarket verify --rerun``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from des.money import Micro
from flmarket.analysis.log_frames import BadTableError, text_of
from flmarket.analysis.verification.clearing_rules import not_cleared
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.rules import RULES
from flmarket.core.errors import InputError
from scenarios.logs.columns import ALL_TABLES, tables_of
from scenarios.logs.directory import RunDirectory
from scenarios.logs.identity import contradictions
from scenarios.logs.run_state import RunState

_LONGEST = 200  # characters of a line in a message


@dataclass(slots=True)
class Verdict:
    """The findings in one run."""

    rounds: int = 0  # how many rounds there are
    offers: int = 0  # how many offers there are
    paid: Micro = 0  # what all clients were paid, micro-units
    problems: list[str] = field(default_factory=list)  # one sentence each; none for a valid run
    unchecked: list[str] = field(default_factory=list)  # in words, what could not be derived again here, and why


def verify(run: RunDirectory) -> Verdict:
    """Check a run's logs. The plug-ins that it was played with are not needed."""
    verdict = Verdict()
    if run.state is not RunState.COMPLETE:
        raise InputError(f"{run.path}: {run.unfinished()}")
    verdict.problems += run.damage(digests=True)
    try:
        for problem in contradictions(run):
            verdict.problems.append(problem)
        _follow(run, verdict)
    except BadTableError as error:
        verdict.problems.append(str(error))
    except InputError:
        if not verdict.problems:  # what was found says why
            raise
    return verdict


def _follow(run: RunDirectory, verdict: Verdict) -> None:
    """Check that the tables follow from the scenario and the seed."""
    logs = Logs.read(run)
    before = len(verdict.problems)
    for name, rule in RULES.items():
        for finding in rule(logs):
            verdict.problems.append(str(finding))
        if name == "shape" and len(verdict.problems) > before:
            break
    for name in tables_of(truthful=logs.clients is None):  # last, as what is wrong with the values says more
        verdict.problems += _spelling(logs, run, name)
    verdict.rounds = len(logs.numbers)
    verdict.offers = len(logs.offers)
    verdict.paid = int(logs.rounds["spent"].sum())
    verdict.unchecked = [] if verdict.problems else [*logs.unknown(), *not_cleared(logs.scenario)]


def _spelling(logs: Logs, run: RunDirectory, name: str) -> Iterator[str]:
    """Yield the first line of a table that flmarket would write differently, its values being what they are."""
    with ALL_TABLES[name].path(run.path).open(encoding="utf-8", newline="") as file:
        text = file.read()
    right = text_of(getattr(logs, name), name)
    lines = enumerate(zip_longest(text.split("\n"), right.split("\n")), start=1)
    for line, (one, other) in lines if text != right else ():
        if one != other:
            yield f"{name}.csv, line {line}: {_short(one)} should be written {_short(other)}"
            return


def _short(line: str | None) -> str:
    return "nothing" if line is None else repr(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}...")
