"""Submissions: a policy plays the suite's markets, and what it reached is a JSON file that others compare.

Each run is played by itself, in this process or in several, with the same results.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from fl.arithmetic.ordered_sums import mean
from flmarket.core.errors import InputError, RunError
from flmarket.core.files import alone_in, asked_for
from flmarket.core.installation import version
from learning.evaluation import evaluate
from learning.policy import POLICIES, agent_digest
from scenarios.build import entrant, market_factory
from scenarios.file.policy_choice import PolicyChoice
from scenarios.file.schema import Scenario
from scenarios.loader import with_policy
from scenarios.plugin_files import Records, packed, plugins_of
from scenarios.running.pool import play_games
from scenarios.suite.frozen import RESIDENT, Suite, SuiteRun

FORMAT = 1  # of the file


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission: a method and the games it played."""

    suite: int  # the suite's version
    digest: str  # of the suite
    method: str  # its name in tables; submissions of one name are trainings of one method with different seeds
    policy: str  # the policy's name
    agent: str | None  # SHA-256 of what it has learned; None if it loads nothing
    plugins: Records  # the plug-ins that it needs, with their SHA-256
    privileged: bool  # whether it sees what the paper hides
    flmarket: str  # the version that played
    results: Mapping[SuiteRun, Annotated[float, Field(ge=0, le=1)]]  # the AUC of each run

    def with_results(self, results: Mapping[SuiteRun, float]) -> "Submission":
        return replace(self, results={**self.results, **results})

    def text(self, suite: Suite) -> str:
        """Return the file's content: a line for each seat, in the suite's order."""
        places: dict[str, dict[int, float]] = {}
        for cell in suite.cells():
            if cell in self.results:
                places.setdefault(cell.place, {})[cell.seed] = self.results[cell]
        head = {"format": FORMAT} | {it.name: getattr(self, it.name) for it in fields(self) if it.name != "results"}
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        results = ",\n".join(f"    {json.dumps(place)}: {json.dumps(aucs)}" for place, aucs in places.items())
        return "{\n" + ",\n".join(lines) + ',\n  "results": {\n' + results + "\n  }\n}\n"

    def write(self, path: Path, suite: Suite) -> None:
        with asked_for(path) as file:
            file.write(self.text(suite))


def read(path: Path, suite: Suite) -> Submission:
    known = {(cell.place, str(cell.seed)): cell for cell in suite.cells()}
    try:
        content = json.loads(path.read_bytes())
        if (content.pop("format"), content["suite"], content["digest"]) != (FORMAT, suite.version, suite.digest):
            raise InputError(f"{path}: was played in another version of the suite than {suite.version}")
        places = content["results"].items()
        content["results"] = {known[place, seed]: auc for place, aucs in places for seed, auc in aucs.items()}
        return TypeAdapter(Submission).validate_python(content)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: is not a submission to version {suite.version} of the suite") from error


def read_all(places: Iterable[Path], suite: Suite) -> list[Submission]:
    """Read the submissions among some files, and all in some folders, in the order of their paths."""
    places = list(places)
    paths = [path for place in places for path in (sorted(place.glob("*.json")) if place.is_dir() else [place])]
    if not paths:
        named = ", ".join(map(str, places))
        raise InputError(f"{named}: no submissions; `flmarket suite POLICY --out FOLDER` makes them")
    return [read(path, suite) for path in {path.resolve(): path for path in paths}.values()]


def continued(path: Path, submission: Submission, suite: Suite) -> Submission:
    """Return a submission together with the results that its file holds already, if it is there."""
    if not path.exists():
        return submission
    there = read(path, suite)
    if replace(there, results={}) != replace(submission, results={}):
        raise InputError(
            f"{path}: was played by another policy, agent, plug-in or version of flmarket, or under another "
            "method's name; start over with the option fresh, or choose another file"
        )
    return there.with_results(submission.results)


def keep(path: Path, submission: Submission, suite: Suite) -> None:
    """Write a submission, together with what another process has played for it meanwhile."""
    with alone_in(path.parent):
        continued(path, submission, suite).write(path, suite)


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
        results = evaluate(market_factory(scenario), {cell.place: entrant(services)}, [cell.seed])
    except InputError as error:
        raise InputError(f"{policy} cannot play {cell.place} of the suite: {error}") from error
    except RunError as error:
        raise RunError(f"{policy} failed in {cell.place} of the suite, seed {cell.seed}: {error}") from error
    played = [place for place, name in enumerate(results.services) if cell.mode == RESIDENT or name == cell.seat]
    return round(mean(results.auc()[0, 0, played]), DECIMALS)
