"""The training log for TensorBoard (extra ``tensorboard``)."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fl.errors import InputError
from fl.extras import needs_extra
from learning.mahdrl.training_log import Row


class Board:
    """Writes every row of a training log to a TensorBoard folder.

    A resumed training plays the episodes after its last state again, so TensorBoard's earlier records of them are
    dropped.
    """

    def __init__(
        self,
        folder: Path,  # for this training alone; TensorBoard shows it by its path
    ) -> None:
        with needs_extra("tensorboard", "--tensorboard", "TensorBoard", modules=["tensorboard"]):
            from torch.utils.tensorboard import SummaryWriter
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--tensorboard: {folder}: cannot be written: {error.strerror}") from error
        self._folder, self._kind = folder, SummaryWriter
        self._writer: Any = None

    def __call__(self, row: Row) -> None:
        """Add one row: a point to the curve of each number. Training episodes and evaluations have separate curves."""
        if self._writer is None:
            self._writer = self._kind(str(self._folder), purge_step=row.episode)
        numbers = asdict(row)
        losses = numbers.pop("losses")
        for name, value in (numbers | losses).items():
            if isinstance(value, float) and math.isfinite(value):
                self._writer.add_scalar(f"{row.phase}/{name}", value, row.episode)
        self._writer.flush()

    def close(self) -> None:
        """Close the file, if any row was written."""
        if self._writer is not None:
            self._writer.close()
