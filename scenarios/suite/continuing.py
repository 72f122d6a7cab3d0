"""Plays a policy in the suite into the file of its submission, where a later call continues."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fl.errors import InputError
from scenarios.file.policy_choice import PolicyChoice
from scenarios.suite.frozen import Cell, Suite
from scenarios.suite.playing import entry, play
from scenarios.suite.submission import Submission, alone_with, prepare, read


@dataclass(frozen=True, slots=True)
class Begun:
    """A policy that is to play."""

    policy: str  # as it is registered, with its checkpoint
    label: str  # what messages call it
    path: Path  # of its submission
    submission: Submission  # what is there, or one without results
    fresh: bool  # whether what is there is replaced

    @classmethod
    def of(cls, policy: str, suite: Suite, out: Path, *, method: str | None = None, fresh: bool = False) -> "Begun":
        """Read what is there."""
        label = PolicyChoice.parse(policy, "policy").label
        path = out if out.suffix == ".json" else out / f"{label}.json"
        begun = entry(policy, suite, method)
        if not fresh:
            begun = _continued(path, begun, suite)
        prepare(path)
        return cls(policy, label, path, begun, fresh)

    def lacking(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return those of some runs that have not been played yet."""
        return [cell for cell in cells if cell not in self.submission.results]

    def play(
        self, suite: Suite, cells: Sequence[Cell], *, jobs: int = 1, report: Callable[[int], None] = lambda _: None
    ) -> Submission:
        """Play those of some runs that are lacking, and keep each when it is over."""

        def keep(so_far: Submission) -> None:
            with alone_with(self.path):
                # With what another process may have played; what is of something else is not replaced.
                found = so_far if self.fresh else _continued(self.path, so_far, suite)
                found.write(self.path, suite)
            report(len(so_far.results) - len(self.submission.results))

        return play(self.policy, suite, cells=cells, begun=self.submission, jobs=jobs, keep=keep)


def _continued(path: Path, submission: Submission, suite: Suite) -> Submission:
    """Return the submission with the results in its file, if that is there."""
    if not path.exists():
        return submission
    there = read(path, suite)
    if not there.continues(submission):
        raise InputError(
            f"{path}: was played by another policy, agent, plug-in or version of flmarket, or under another "
            "--method; start over with --fresh, or choose another --out"
        )
    return there.with_results(submission.results)
