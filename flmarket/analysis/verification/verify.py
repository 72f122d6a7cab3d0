"""``flmarket verify``: does a run's log keep every constraint, and does its money add up?

Every run's logs obey ``RULES``: constraints, sums, and agreement between the tables. The clients' data and bids are
drawn again, and offers are cleared again, by what defines them in ``des``; sums, statuses and the timeline are worked
out from the logs. What cannot be derived from the logs is checked by ``flmarket verify --rerun``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest

from des.money import Micro
from flmarket.analysis.log_frames import BadTableError, text_of
from flmarket.analysis.verification.evidence import Logs
from flmarket.analysis.verification.findings import Finding
from flmarket.analysis.verification.offer_rules import cores, interests, not_cleared, payments, responses, world
from flmarket.analysis.verification.ongoing_rules import work
from flmarket.analysis.verification.row_rules import accuracies, progress, scenario, shape, totals
from flmarket.analysis.verification.time_rules import timeline
from flmarket.core.errors import InputError
from scenarios.logs.columns import ALL_TABLES, ROUNDS, tables_of
from scenarios.logs.directory import RunDirectory
from scenarios.logs.identity import contradictions
from scenarios.logs.run_state import RunState

Rule = Callable[[Logs], Iterator[Finding]]

RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        shape, scenario, world, interests, responses, payments, cores, totals, progress, accuracies, timeline, work
    )
}  # fmt: skip
"""All rules, by the name by which columns refer to them; docs/logs.md has each docstring. Where ``shape`` finds
something, the others are not asked."""

BLOCK = 50_000  # lines of a table that are read at a time
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
    # last, as what is wrong with the values says more
    spelling: Rule = partial(_spelling, run, dict.fromkeys(ALL_TABLES, 0))
    rules = {**RULES, "spelling": spelling}
    findings: dict[str, dict[str, str]] = {name: {} for name in rules}
    try:
        for logs in Logs.blocks(run, BLOCK):
            for name, rule in rules.items():
                if name in logs.unasked:
                    continue
                if not findings["shape"] or name in ("shape", "spelling"):
                    for finding in rule(logs):
                        findings[name].setdefault(finding.first_of or str(finding), str(finding))
            verdict.rounds += len(logs.numbers)
            verdict.offers += len(logs.offers)
    except InputError as error:
        if isinstance(error, BadTableError) or not any(findings.values()):  # else what was found says why
            raise
    for name in ("shape", "spelling") if findings["shape"] else rules:
        verdict.problems += findings[name].values()
    verdict.paid = int(logs.rounds["spent"].sum())
    verdict.unchecked = [] if verdict.problems else [*logs.unknown(), *not_cleared(logs.scenario)]


def _spelling(run: RunDirectory, read: dict[str, int], logs: Logs) -> Iterator[Finding]:
    """Yield the first line of each table that flmarket would write differently, its values being what they are.

    ``read`` has the bytes of each table that were looked at in earlier blocks.
    """
    for name in tables_of(**logs.scenario.logged):
        frame, whole = getattr(logs, name), name == ROUNDS.name
        if whole and read[name]:
            continue
        right = text_of(frame, name, header=not read[name]).encode()
        with ALL_TABLES[name].path(run.path).open("rb") as file:
            file.seek(read[name])
            text = file.read(None if whole or logs.last else len(right))
            different = (text + file.readline(), right) if text != right else ()
        lines = zip_longest(*(it.decode(errors="replace").split("\n") for it in different))
        for line, (one, other) in enumerate(lines, start=frame.index.start + 2 if read[name] else 1):
            if one != other:
                sentence = f"{_short(one)} should be written {_short(other)}"
                yield Finding(sentence, name, line, f"spelling of {name}")
                break
        read[name] += len(right)


def _short(line: str | None) -> str:
    return "nothing" if line is None else repr(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}...")
