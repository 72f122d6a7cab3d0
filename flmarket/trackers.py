"""Trackers of experiments that runs are sent to as they are played: TensorBoard, MLflow, Weights & Biases (extras).

Each run is a run there: its rounds are steps, its numbers those of rounds.csv, by service. Money is in units.
"""

import math
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flmarket.core.errors import InputError
from flmarket.core.files import expanded
from flmarket.core.installation import require_extra
from flmarket.core.names import unknown
from flmarket.core.plugin_errors import describe
from scenarios.file.differences import flattened
from scenarios.logs.directory import require_folder_place
from scenarios.running.batch_run import Run
from scenarios.running.progress import Tracker
from scenarios.running.run_options import Place

if TYPE_CHECKING:
    from learning.training.records import Row


class TensorBoard(Tracker):
    """Writes the curves of each run to a folder of its own in one for TensorBoard (extra ``tensorboard``)."""

    def __init__(self, folder: Place = "tensorboard") -> None:
        """Track runs below a folder, which is made if need be."""
        require_extra("tensorboard", "flmarket.TensorBoard", "TensorBoard and PyTorch", "tensorboard", "torch")
        self._folder, self._writers = expanded(folder), dict[Path, Any]()
        require_folder_place(self._folder)

    def begin(self, run: Run) -> None:
        """Begin a run's curves, in place of those that are there."""
        from torch.utils.tensorboard import SummaryWriter

        *_, market, policy, seed = run.directory.path.parts
        folder = self._folder / market / f"{policy}-{seed}"  # no directory of a run, should it be the folder of runs
        self._writers[run.directory.path] = SummaryWriter(str(folder), purge_step=0)

    def round(self, run: Run, number: int, values: Mapping[str, float]) -> None:
        """Add a point to each curve."""
        for name, value in values.items():
            self._writers[run.directory.path].add_scalar(name, value, number)

    def end(self, run: Run, error: Exception | None) -> None:
        """Close a run's file."""
        self._writers.pop(run.directory.path).close()


class TrainingBoard:
    """Writes every row of the log of a training to a folder for TensorBoard (extra ``tensorboard``).

    A resumed training plays the episodes after its last state again, so TensorBoard's earlier records of them are
    dropped.
    """

    def __init__(self, folder: Path) -> None:
        """Write to a folder for this training alone; TensorBoard shows it by its path."""
        require_extra("tensorboard", "a log for TensorBoard", "TensorBoard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be written: {error.strerror}") from error
        self._folder, self._kind = folder, SummaryWriter
        self._writer: Any = None

    def __call__(self, row: "Row") -> None:
        """Add one row: a point to the curve of each number. Training episodes and evaluations have separate curves."""
        if self._writer is None:
            self._writer = self._kind(str(self._folder), purge_step=row.episode)
        for name, value in row.values().items():
            if isinstance(value, float) and math.isfinite(value):
                self._writer.add_scalar(f"{row.phase}/{name}", value, row.episode)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


class MLflow(Tracker):
    """Sends runs to an experiment of MLflow (extra ``mlflow``), the scenario's keys as parameters."""

    def __init__(self, experiment: str = "flmarket", uri: str | None = None) -> None:
        """Track runs in an experiment, which is made if need be; ``uri`` as MLflow's own setting if not given."""
        require_extra("mlflow", "flmarket.MLflow", "MLflow", "mlflow")
        from mlflow import MlflowClient

        self._client, self._ids = MlflowClient(uri), dict[Path, str]()
        known = self._client.get_experiment_by_name(experiment)
        self._experiment = self._client.create_experiment(experiment) if known is None else known.experiment_id

    def begin(self, run: Run) -> None:
        """Make a run of MLflow's."""
        from mlflow.entities import Param

        created = self._client.create_run(
            self._experiment, run_name=run.label, tags={"directory": str(run.directory.path)}
        )
        self._ids[run.directory.path] = created.info.run_id
        params = [Param(re.sub(r"[^\w./ -]", "_", key), str(value)) for key, value in _configuration(run).items()]
        for first in range(0, len(params), 100):  # the most that MLflow takes at once
            self._client.log_batch(created.info.run_id, params=params[first : first + 100])

    def round(self, run: Run, number: int, values: Mapping[str, float]) -> None:
        """Send a round as a step of each metric."""
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [Metric(name, value, now, number) for name, value in values.items()]
        self._client.log_batch(self._ids[run.directory.path], metrics=metrics)

    def end(self, run: Run, error: Exception | None) -> None:
        """Say how the run ended."""
        self._client.set_terminated(self._ids.pop(run.directory.path), "FINISHED" if error is None else "FAILED")


class WandB(Tracker):
    """Sends runs to a project of Weights & Biases (extra ``wandb``), the scenario's keys as their configuration."""

    def __init__(self, project: str = "flmarket", **settings: Any) -> None:
        """Track runs in a project; ``settings`` are for ``wandb.init``: ``mode="offline"``."""
        require_extra("wandb", "flmarket.WandB", "Weights & Biases", "wandb")
        self._settings, self._runs = {"project": project, **settings}, dict[Path, Any]()

    def begin(self, run: Run) -> None:
        """Make a run of theirs, in a group with those that differ in the seed alone."""
        import wandb

        about = {"name": run.label, "group": run.group, "config": _configuration(run), "reinit": "create_new"}
        self._runs[run.directory.path] = wandb.init(**about, **self._settings)

    def round(self, run: Run, number: int, values: Mapping[str, float]) -> None:
        """Send a round as a step."""
        self._runs[run.directory.path].log(dict(values), step=number)

    def end(self, run: Run, error: Exception | None) -> None:
        """Say how the run ended."""
        self._runs.pop(run.directory.path).finish(exit_code=int(error is not None))


TRACKERS: dict[str, Callable[..., Tracker]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}


def kind_of(text: str) -> Callable[..., Tracker]:
    """Return the kind of tracker that ``--track`` names: ``NAME``, or ``NAME=WHERE``, a folder, experiment or project.

    Nothing is made of it yet, neither a folder nor an experiment.
    """
    name, _, _ = text.partition("=")
    if name not in TRACKERS:
        raise InputError(unknown("tracker", name, TRACKERS))
    return TRACKERS[name]


def named(text: str) -> Tracker:
    """Return the tracker that ``--track`` names."""
    kind, (_, _, where) = kind_of(text), text.partition("=")
    try:
        return kind(*filter(None, [where]))
    except InputError:
        raise
    except Exception as error:  # theirs, such as a server that cannot be reached
        raise InputError(f"tracker {text!r}: {describe(error)}") from error


def _configuration(run: Run) -> dict[str, Any]:
    return flattened(run.scenario.model_dump(mode="json")) | {"policy": run.policy, "seed": run.seed}
