"""The hyper-parameters of `mahdrl`, and the ranges by which those of both agents are checked."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

Count = Annotated[int, Field(ge=1, le=10_000_000)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Part = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(gt=0.0, le=1.0)]

Payments = Literal["plan", "bid"]


@dataclass(frozen=True, slots=True)
class MahdrlSettings:
    """The hyper-parameters of an agent: its inputs, its actions and its learning."""

    payments: Payments = "plan"  # ``plan`` overbids where that promises more; ``bid`` never does
    # sees how many mean bids its budget is. Only for trainings with several budgets: where there is just one, what an
    # agent learns about budgets is noise, and harms it under another budget.
    budget: bool = False
    # sees which market this is, and what came of its offers so far (``market_model.context``), for trainings in many
    # markets
    context: bool = False
    # besides the context, sees the learning curve that was fitted to its data set, if there is one
    # (``market_model.knowledge``)
    curve: bool = False
    # among clients that are worth the same, a random draw decides; otherwise the one with the lower number comes first,
    # and services that decide alike all want the same ones
    lots: bool = False
    # how many critics an agent has, each of which learns from batches of its own. It decides by their mean: where
    # training has said little, they differ, and the mean errs less than they do on average.
    members: Count = 1
    average: Rate = 0.003  # rate at which the networks that are played follow those that learn; 1: they are the same
    learning_rate: Positive = 1e-3  # Adam's, for all networks
    batch: Count = 32  # transitions of each service in an update
    replay: Count = 4000  # transitions of each service that are kept
    updates: Positive = 1.0  # updates for each round played
    horizon: Count = 20  # of the advantage; see ``advantages.advantages``
    # credit is what a decision added to the accuracies of the whole run, as the market's learning curves tell in
    # hindsight (``advantages.Usual``). Only for trainings on curves (backend ``noiseless`` or ``surrogate``).
    hindsight: bool = False
    scale: Positive = 3.0  # of the advantage


DEFAULTS = MahdrlSettings()
