"""The hyper-parameters of `mahdrl`, and the ranges of those of both agents (checked by ``scenarios.train``)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le
from pydantic import FiniteFloat

Count = Annotated[int, Ge(1), Le(10_000_000)]
Positive = Annotated[FiniteFloat, Gt(0)]
NotNegative = Annotated[FiniteFloat, Ge(0)]
Part = Annotated[float, Ge(0), Le(1)]
Rate = Annotated[float, Gt(0), Le(1)]

Payments = Literal["plan", "far", "bid"]


@dataclass(frozen=True, slots=True)
class MahdrlSettings:
    """The hyper-parameters of an agent: its inputs, its actions and its learning."""

    payments: Annotated[
        Payments,
        Doc("""plan overbids where that promises more; far also looks at prices of up to three times the highest rival's
        bid where there are at most five cores for each service (``planner.FAR``); bid never overbids."""),
    ] = "plan"
    budget: Annotated[
        bool,
        Doc("""Sees how many mean bids its budget is. Only for trainings with several budgets: where there is just one,
        what an agent learns about budgets is noise, and harms it under another budget."""),
    ] = False
    context: Annotated[
        bool,
        Doc("""Sees which market this is, and what came of its offers so far (``market_model.context``), for trainings
        in many markets."""),
    ] = False
    curve: Annotated[
        bool,
        Doc("""Besides the context, sees the learning curve that was fitted to its data set, if there is one
        (``market_model.knowledge``)."""),
    ] = False
    lots: Annotated[
        bool,
        Doc("""Among clients that are worth the same, a random draw decides; otherwise the one with the lower number
        comes first, and services that decide alike all want the same ones."""),
    ] = False
    members: Annotated[
        Count,
        Doc("""How many critics an agent has, each of which learns from batches of its own. It decides by their mean:
        where training has said little, they differ, and the mean errs less than they do on average."""),
    ] = 1
    average: Annotated[
        Rate, Doc("Rate at which the networks that are played follow those that learn; 1: they are the same.")
    ] = 0.003
    learning_rate: Annotated[Positive, Doc("Adam's, for all networks.")] = 1e-3
    batch: Annotated[Count, Doc("Transitions of each service in an update.")] = 32
    replay: Annotated[Count, Doc("Transitions of each service that are kept.")] = 4000
    updates: Annotated[Positive, Doc("Updates for each round played.")] = 1.0
    horizon: Annotated[Count, Doc("Of the advantage; see ``advantages.advantages``.")] = 20
    hindsight: Annotated[
        bool,
        Doc("""Credit is what a decision added to the accuracies of the whole run, as the market's learning curves tell
        in hindsight (``advantages.Usual``). Only for trainings on curves (backend ``noiseless`` or ``surrogate``)."""),
    ] = False
    scale: Annotated[Positive, Doc("Of the advantage.")] = 3.0


DEFAULTS = MahdrlSettings()
