"""The training regime: how clients train. Declared once, for trainers, fits and the scenario file. Light: no torch."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

from flmarket.core.declared import Unit

Kernel = Literal["auto", "fused", "reference"]
"""The code that trains on a CPU (``fl.training.trainers``): decides the last bits of a result, not what is learned."""

Device = Literal["cpu", "cuda"]  # where models train; only ``cpu`` gives the same bytes on every run


@dataclass(frozen=True, slots=True)
class Regime:
    """The local training for one data set; besides the data set, a learning curve depends on this alone.

    The last step of an epoch may have fewer images than ``batch_size``; momentum starts afresh in every round.

    A field that is added here is also a key of ``[training]`` in the scenario file (``scenarios.file.schema``).
    """

    model: Annotated[
        str,
        Doc("""Network: cnn (two convolutions, three fully connected layers; the paper's), mlp (two hidden layers),
        logistic (logistic regression), resnet8 (three residual blocks with group normalisation), or one that a plug-in
        registers."""),
    ] = "cnn"
    local_epochs: Annotated[
        int, Ge(1), Le(1_000), Unit("epochs"), Doc("Passes of a client over its data in one round (E).")
    ] = 1
    batch_size: Annotated[int, Ge(1), Le(100_000), Unit("images"), Doc("Images in one step of local SGD.")] = 10
    learning_rate: Annotated[float, Gt(0), Le(100), Doc("Step size of local SGD.")] = 0.05
    momentum: Annotated[float, Ge(0), Lt(1), Doc("Momentum of local SGD; 0 is plain SGD.")] = 0.0

    def __str__(self) -> str:
        return (
            f"{self.model}, local_epochs {self.local_epochs}, batch_size {self.batch_size}, "
            f"learning_rate {self.learning_rate:g}, momentum {self.momentum:g}"
        )
