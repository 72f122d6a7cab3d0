"""The training regime: how clients train. Declared once, for trainers, fits and the scenario file. Light: no torch."""

from dataclasses import dataclass, field
from typing import Literal

Kernel = Literal["auto", "fused", "reference"]
"""The code that trains on a CPU (``fl.training.trainers``): decides the last bits of a result, not what is learned."""

Device = Literal["cpu", "cuda"]  # where models train; only ``cpu`` gives the same bytes on every run


@dataclass(frozen=True, slots=True)
class Regime:
    """The local training for one data set; besides the data set, a learning curve depends on this alone.

    The last step of an epoch may have fewer images than ``batch_size``; momentum starts afresh in every round.

    The metadata of each field describes it to people and limits its values. The scenario file's schema is made from it
    (``scenarios.file.schema``), so a field that is added here is also a key of ``[training]``.
    """

    model: str = field(
        default="cnn",
        metadata={
            "description": "Network: cnn (two convolutions, three fully connected layers; the paper's), mlp (two "
            "hidden layers), logistic (logistic regression), resnet8 (three residual blocks with group normalisation), "
            "or one that a plug-in registers."
        },
    )
    local_epochs: int = field(
        default=1,
        metadata={
            "ge": 1,
            "le": 1_000,
            "description": "Passes of a client over its data in one round (E).",
            "json_schema_extra": {"unit": "epochs"},
        },
    )
    batch_size: int = field(
        default=10,
        metadata={
            "ge": 1,
            "le": 100_000,
            "description": "Images in one step of local SGD.",
            "json_schema_extra": {"unit": "images"},
        },
    )
    learning_rate: float = field(default=0.05, metadata={"gt": 0, "le": 100, "description": "Step size of local SGD."})
    momentum: float = field(
        default=0.0,
        metadata={
            "ge": 0,
            "lt": 1,
            "description": "Momentum of local SGD; 0 is plain SGD.",
        },
    )

    def __str__(self) -> str:
        return (
            f"{self.model}, local_epochs {self.local_epochs}, batch_size {self.batch_size}, "
            f"learning_rate {self.learning_rate:g}, momentum {self.momentum:g}"
        )
