"""What a training writes for those who watch it, in ``NAME.training/record``; nothing that is learned depends on it.

``plan.json``        what is trained on what, and for how long
``baselines.csv``    what heuristics reach in the markets of an evaluation, where that takes little time
``preferences.csv``  which clients the agent took in each evaluation, service by service

All are replaced in one step, so that a reader finds each of them whole. A resumed training writes the same bytes.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fl.files import replacing
from learning.mahdrl import preferences
from learning.mahdrl.checkpoint import CheckpointError
from learning.mahdrl.preferences import Preferences
from learning.mahdrl.training_log import Row, text

PLAN, BASELINES, PREFERENCES = "plan.json", "baselines.csv", "preferences.csv"
BASELINE_COLUMNS = ("policy", "reward", "auc", "reached", "markup")


def folder_of(out: Path) -> Path:
    """Return the folder of an agent's record."""
    return out.with_suffix(".training") / "record"


class TrainingRecord:
    """Writes the record of one training."""

    def __init__(
        self,
        folder: Path,
        done: int,  # the last episode that is not played again; what is recorded of later ones is dropped
    ) -> None:
        self._folder = folder
        self._lines = _kept(folder / PREFERENCES, done)

    def write_plan(self, content: Mapping[str, Any]) -> None:
        """Record what is trained on what, and for how long."""
        self._write(PLAN, json.dumps(dict(content), indent=1) + "\n")

    def has_baselines(self) -> bool:
        return (self._folder / BASELINES).exists()

    def write_baselines(self, rows: Mapping[str, Row]) -> None:
        """Record what other policies reach, by their names."""
        lines = [[name, *(getattr(row, column) for column in BASELINE_COLUMNS[1:])] for name, row in rows.items()]
        self._write(BASELINES, _csv([BASELINE_COLUMNS, *lines]))

    def write_preferences(self, found: Preferences, episode: int) -> None:
        """Record what the agent did in the evaluation after an episode."""
        rows = [[row[column] for column in preferences.COLUMNS] for row in found.rows(episode)]
        self._lines += _csv(rows).splitlines(keepends=True)
        self._write(PREFERENCES, _csv([preferences.COLUMNS]) + "".join(self._lines))

    def _write(self, name: str, content: str) -> None:
        path = self._folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(content.encode())
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be written: {error.strerror}") from error


def _kept(path: Path, done: int) -> list[str]:
    """Return the lines of a table of episodes that are not played again; none where it cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]
    except (OSError, UnicodeError):
        return []
    numbers = [line.partition(",")[0] for line in lines]
    return [line for line, n in zip(lines, numbers, strict=True) if n.isascii() and n.isdigit() and int(n) <= done]


def _csv(rows: Iterable[Sequence[object]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([text(value) for value in row] for row in rows)
    return written.getvalue()
