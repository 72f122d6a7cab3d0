"""Earlier selves of an agent that learns, as rivals for it: what it once did must not defeat it later."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fl.arrays import Float32Array
from fl.streams import stream
from learning.mahdrl.brain import Brain
from learning.mahdrl.policy import Player
from learning.policy import PolicyContext

ITSELF = "itself"  # the rival of a training that an earlier self plays

EVERY = 160  # episodes between two of them


class Selves:
    """What an agent played like after every so many episodes."""

    def __init__(self, seed: int, *, wanted: bool = True) -> None:
        self._seed, self._wanted = seed, wanted
        self._kept: list[dict[str, Float32Array]] = []

    def keep(self, episode: int, played: Brain) -> None:
        """Keep a copy of the networks after an episode, if it is time to."""
        if self._wanted and episode % EVERY == 0:
            self._kept.append({name: values.copy() for name, values in played.tensors().items()})

    def player(self, context: PolicyContext, episode: int, now: Brain) -> Player | None:
        """Return one of them to play a service, drawn at random; None if there are none yet."""
        if not self._kept:
            return None
        drawn = int(stream(self._seed, "self", episode, context.service).integers(len(self._kept)))
        return Player(context, Brain(**self._kept[drawn], design=now.design))

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must hold, by name."""
        if not self._kept:
            return {}
        return {f"selves.{name}": np.stack([one[name] for one in self._kept]) for name in self._kept[0]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a ``state``."""
        stacked = {name.removeprefix("selves."): it for name, it in state.items() if name.startswith("selves.")}
        number = max((len(values) for values in stacked.values()), default=0)
        self._kept = [{name: values[at].copy() for name, values in stacked.items()} for at in range(number)]
