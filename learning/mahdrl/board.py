"""The training log as TensorBoard shows it (extra ``tensorboard``)."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fl.errors import InputError
from learning.mahdrl.training_log import Row


class Board:
    """Writes every line of a training log to a TensorBoard folder.

    A resumed training plays the episodes after its last state again: TensorBoard is told to forget what it had of them.
    """

    def __init__(self, folder: Path) -> None:
        """Open a folder.

        Args:
            folder: of this training alone; TensorBoard shows it by its path.

        Raises:
            InputError: tensorboard is not installed, or the folder can't be written.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise InputError("--tensorboard needs TensorBoard: pip install 'flmarket[tensorboard]'") from error
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--tensorboard: {folder}: can't be written: {error.strerror}") from error
        self._folder, self._kind = folder, SummaryWriter
        self._writer: Any = None

    def __call__(self, row: Row) -> None:
        """Add one line: a curve for each number, training episodes apart from evaluations."""
        if self._writer is None:
            self._writer = self._kind(str(self._folder), purge_step=row.episode)
        numbers = asdict(row)
        losses = numbers.pop("losses")
        for name, value in (numbers | losses).items():
            if isinstance(value, float) and math.isfinite(value):
                self._writer.add_scalar(f"{row.phase}/{name}", value, row.episode)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
