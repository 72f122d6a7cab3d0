"""Who takes part in a round, and with how much money: services that arrive later, and budgets for the whole run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from des.ledger import Ledger
from des.money import Micro
from des.records import Status
from des.service import ServiceSpec, ServiceState


def first_state(spec: ServiceSpec, accuracy: float, test_accuracy: float | None) -> ServiceState:
    """Return the state of a service before the first round."""
    status = Status.WAITING if spec.arrival > 1 else Status.TRAINING
    return ServiceState(accuracy, accuracy if test_accuracy is None else test_accuracy, status)


def totals(specs: Sequence[ServiceSpec]) -> dict[str, Micro]:
    """Return the budgets for the whole run, of the services that have one."""
    return {spec.name: spec.total_budget for spec in specs if spec.total_budget is not None}


def steady(specs: Sequence[ServiceSpec]) -> bool:
    """Whether no round changes by itself who takes part and with how much money: only interventions do."""
    return all(spec.arrival == 1 and spec.total_budget is None for spec in specs)


def present(spec: ServiceSpec, state: ServiceState, round_: int) -> bool:
    """Whether a service takes part in the next round, ``round_``, given its state after the last one."""
    return state.active or (state.status is Status.WAITING and spec.arrival <= round_)


def arrive(specs: Sequence[ServiceSpec], states: Sequence[ServiceState], round_: int) -> None:
    """Let services take part from a round on whose first one it is."""
    for spec, state in zip(specs, states, strict=True):
        if state.status is Status.WAITING and spec.arrival <= round_:
            state.status = Status.TRAINING


def seated(specs: Sequence[ServiceSpec], service: str, policy: str, *, privileged: bool) -> tuple[ServiceSpec, ...]:
    """Return the services with another policy in place of that of ``service``."""
    return tuple(
        replace(spec, policy=policy, privileged=privileged) if spec.name == service else spec for spec in specs
    )


def funded(
    specs: Sequence[ServiceSpec],  # the services
    states: Sequence[ServiceState],  # their states in the round
    budgets: Mapping[str, Micro],  # B_m per round by service, micro-units
    ledger: Ledger,  # what was paid so far
) -> tuple[ServiceSpec, ...]:
    """Return the services with what each may offer in a round.

    That is its budget per round, or what is left of the one for the whole run, if that is less; nothing before it
    arrives.
    """
    found = []
    for spec, state in zip(specs, states, strict=True):
        left, budget = ledger.left(spec.name), budgets[spec.name]
        if state.status is Status.WAITING:
            budget = 0
        elif left is not None:
            budget = min(budget, left)
        found.append(spec if spec.budget == budget else replace(spec, budget=budget))
    return tuple(found)
