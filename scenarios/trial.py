"""Whether what a scenario names can be created as it asks: policies, mechanism and models, with their options.

Loading a scenario checks names alone, which is quick. Creating things is what a run does first; it is tried before a
batch starts, so that no run is played in vain, and by ``flmarket validate``.
"""

from collections.abc import Callable, Iterator
from functools import partial

from des.mechanisms import create as create_mechanism
from fl.datasets import info
from fl.errors import InputError
from fl.model_names import BUILTIN as BUILTIN_MODELS
from scenarios.build import CreatePolicy, build_policy, images_of
from scenarios.file.problems import Finding, Path
from scenarios.file.schema import Scenario


def obstacles(scenario: Scenario) -> Iterator[Finding]:
    """Yield what cannot be created as the scenario asks."""
    for path, attempt in _parts(scenario, build_policy):
        try:
            attempt()
        except InputError as error:
            yield Finding(path, str(error))


def require_playable(scenario: Scenario, create: CreatePolicy = build_policy) -> None:
    """Raise the first error that creating the scenario's parts would raise in a run.

    Args:
        scenario: without a sweep.
        create: creates each policy.

    Raises:
        PolicyOptionsError, MechanismOptionsError: a policy or the mechanism does not take its options.
        PluginError: a plug-in cannot be used; of a model: for the images of a data set.
        CheckpointError: a learned agent cannot be read.
    """
    for _, attempt in _parts(scenario, create):
        attempt()


def _parts(scenario: Scenario, create: CreatePolicy) -> Iterator[tuple[Path, Callable[[], object]]]:
    """Yield what a run creates: the key that is at fault if that fails, and a function that creates it."""
    market = scenario.market
    key = "options" if market.options else "mechanism"
    yield ("market", key), partial(create_mechanism, market.mechanism, market.options)
    for i, service in enumerate(scenario.services):
        key = "policy_options" if service.policy_options else "checkpoint" if service.checkpoint else "policy"
        yield ("services", i, key), partial(create, scenario, service)
    for name in images_of(scenario):
        model = scenario.training_for(name).model
        if model not in BUILTIN_MODELS:
            yield ("training", "model"), partial(_build_model, model, name)


def _build_model(model: str, dataset: str) -> None:
    from fl.models import build  # brings torch

    known = info(dataset)
    build(model, known.labels, known.shape, 0, "trial")
