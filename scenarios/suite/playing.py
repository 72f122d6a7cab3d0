"""Plays a policy in the suite's markets: each run by itself, in this process or in several, with the same results."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

from fl.errors import InputError, RunError
from fl.installation import version
from fl.ordered import mean
from learning.evaluation import Results, evaluate, lineup
from learning.policy import agent_digest, is_privileged
from scenarios.build import Shelf, policy_options
from scenarios.factory import market_factory
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario
from scenarios.loader import with_policy
from scenarios.plugins import packed, plugins_of
from scenarios.suite.frozen import RESIDENT, Cell, Suite, SuiteMarket
from scenarios.suite.submission import Submission

DECIMALS = 6  # of an AUC: what sums of floats in another order would change is below that


def entry(
    policy: str,  # ``NAME`` or ``NAME:CHECKPOINT``
    suite: Suite,  # what it is to play
    # what it is called in tables; if not given, the policy with the digest of its checkpoint. Submissions of one method
    # are its training seeds.
    method: str | None = None,
) -> Submission:
    """Return the submission of a policy that has played nothing yet."""
    choice = PolicyChoice.parse(policy, "policy")
    seated = with_policy(next(iter(suite.markets.values())).scenario, policy)
    return Submission(
        method=method or choice.label,
        policy=choice.name,
        agent=agent_digest(choice.name, choice.checkpoint),
        plugins=plugins_of(seated, [choice.name]),
        privileged=is_privileged(choice.name),
        flmarket=version(),
        suite=suite.version,
        digest=suite.digest,
        results={},
    )


def play(
    policy: str,  # ``NAME`` or ``NAME:CHECKPOINT``
    suite: Suite,
    *,
    cells: Sequence[Cell] | None = None,  # the runs; all of the suite's if not given. See ``Suite.cells``.
    begun: Submission | None = None,  # what has been played already, which is not played again
    jobs: int = 1,  # processes
    keep: Callable[[Submission], None] = lambda _: None,  # called with what has been played so far, after each run
) -> Submission:
    submission = begun or entry(policy, suite)
    if not submission.continues(entry(policy, suite, submission.method)):
        raise InputError(f"what was begun, {submission.method!r}, is not of policy {policy!r} as it is here")
    todo = [cell for cell in (suite.cells() if cells is None else cells) if cell not in submission.results]
    with closing(_aucs([(suite.market(cell.market), policy, cell) for cell in todo], jobs)) as aucs:
        for place, found in aucs:
            submission = submission.with_results({todo[place]: found})
            keep(submission)
    return submission


Task = tuple[SuiteMarket, str, Cell]  # A market, a policy, and one of its runs there


def _aucs(tasks: Sequence[Task], jobs: int) -> Generator[tuple[int, float], None, None]:
    """Yield the place and the AUC of each task as soon as it is over.

    With plug-ins, one job has a process of its own, too, which is all that they can end.
    """
    if not tasks:
        return
    sent = packed(with_policy(tasks[0][0].scenario, tasks[0][1]))
    if jobs == 1 and not sent:
        yield from enumerate(map(_play, tasks))
        return
    from scenarios.running.fanout import as_they_end

    ended = "the process of a run ended: a plug-in or the system ended it; the same command plays what is missing"
    yield from as_they_end(_play, tasks, jobs, sent, ended)


def _play(task: Task) -> float:
    market, policy, cell = task
    try:
        return auc(market, cell, with_policy(market.scenario, policy), Shelf())
    except InputError as error:
        raise InputError(f"{policy} cannot play {cell.place} of the suite: {error}") from error
    except RunError as error:
        raise RunError(f"{policy} failed in {cell.place} of the suite, seed {cell.seed}: {error}") from error


def auc(market: SuiteMarket, cell: Cell, seated: Scenario, shelf: Shelf) -> float:
    """Return the AUC of one run: the mean over services for residents, that of its seat for a visitor."""
    names = {service.name: service.policy for service in market.scenario.services}
    options: dict[str, dict[str, Any]] = {it.name: policy_options(it) for it in market.scenario.services}
    played = [service for service in seated.services if cell.mode == RESIDENT or service.name == cell.seat]
    names |= {service.name: service.policy for service in played}
    options |= {service.name: policy_options(service) for service in played}

    results = evaluate(market_factory(market.scenario, shelf), {cell.place: lineup(names, options)}, [cell.seed])
    return round(_mean(results, [service.name for service in played]), DECIMALS)


def _mean(results: Results, services: Sequence[str]) -> float:
    return mean(results.auc()[0, 0, [results.services.index(name) for name in services]])
