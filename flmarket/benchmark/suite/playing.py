"""Plays a policy in the suite's markets: each run by itself, in this process or in several, with the same results."""

from collections.abc import Callable, Sequence
from functools import partial

from fl.arithmetic.ordered_sums import mean
from flmarket.benchmark.suite.submission import Submission
from flmarket.core.errors import InputError, RunError
from flmarket.core.installation import version
from learning.evaluation import evaluate
from learning.policy import POLICIES, agent_digest
from scenarios.build import entrant, market_factory
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario
from scenarios.loader import with_policy
from scenarios.plugin_files import packed, plugins_of
from scenarios.running.fanout import play_games
from scenarios.suite.frozen import RESIDENT, Suite, SuiteRun

DECIMALS = 6  # of an AUC: what sums of floats in another order would change is below that


def entry(
    policy: str,  # ``NAME`` or ``NAME:CHECKPOINT``
    suite: Suite,
    method: str | None = None,  # its name in tables; if not given, the policy's with the digest of its checkpoint
) -> Submission:
    """Return the submission of a policy that has played nothing yet."""
    choice = PolicyChoice.parse(policy, "policy")
    return Submission(
        suite=suite.version,
        digest=suite.digest,
        method=method or choice.label,
        policy=choice.name,
        agent=agent_digest(choice.name, choice.checkpoint),
        plugins=plugins_of(_seated(policy, suite), [choice.name]),
        privileged=POLICIES.load(choice.name).privileged,
        flmarket=version(),
        results={},
    )


def play(
    policy: str,  # ``NAME`` or ``NAME:CHECKPOINT``
    suite: Suite,
    *,
    cells: Sequence[SuiteRun] | None = None,  # the runs; all of the suite's if not given. See ``Suite.cells``.
    begun: Submission | None = None,  # what this policy has played already, which is not played again
    jobs: int = 1,  # processes
    keep: Callable[[Submission], None] = lambda _: None,  # called with what has been played so far, after each run
) -> Submission:
    submission = begun or entry(policy, suite)
    due = [cell for cell in (suite.cells() if cells is None else cells) if cell not in submission.results]

    def add(task: tuple[Scenario, SuiteRun], auc: float) -> None:
        nonlocal submission
        submission = submission.with_results({task[1]: auc})
        keep(submission)

    tasks = [(suite.market(cell.market).scenario, cell) for cell in due]
    play_games(f"{policy}, runs", tasks, partial(_play, policy), add, jobs, packed(_seated(policy, suite)))
    return submission


def _seated(policy: str, suite: Suite) -> Scenario:
    return with_policy(next(iter(suite.markets.values())).scenario, policy)


def _play(policy: str, task: tuple[Scenario, SuiteRun]) -> float:
    """Return the AUC of one run: the mean over services for residents, that of its seat for a visitor."""
    scenario, cell = task
    try:
        seated = with_policy(scenario, policy)
        services = [
            seated.service(it.name) if cell.mode == RESIDENT or it.name == cell.seat else it for it in scenario.services
        ]
        found = evaluate(market_factory(scenario), {cell.place: entrant(services)}, [cell.seed])
    except InputError as error:
        raise InputError(f"{policy} cannot play {cell.place} of the suite: {error}") from error
    except RunError as error:
        raise RunError(f"{policy} failed in {cell.place} of the suite, seed {cell.seed}: {error}") from error
    played = [place for place, name in enumerate(found.services) if cell.mode == RESIDENT or name == cell.seat]
    return round(mean(found.auc()[0, 0, played]), DECIMALS)
