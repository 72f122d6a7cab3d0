"""Notes that ``flmarket run`` prints before a batch: what a user should know before believing the results."""

from collections.abc import Collection, Iterator

from des.behaviour import BEHAVIOURS
from fl.data.embedded import DRAWN
from fl.data.registry import info
from fl.training import fused
from fl.training.models import MODELS
from flmarket.core.counting import counted
from scenarios.build import Shelf, backend_of, datasets_of, images_of
from scenarios.file.partition import without_images
from scenarios.file.schema import Scenario
from scenarios.loader import regimes_of
from scenarios.world import bid_range

_OWN = {"plug-in": "a plug-in", "file": "your own"}


def notes(scenarios: Collection[Scenario], shelf: Shelf) -> list[str]:
    """Return the notes on a batch of these scenarios, which have no sweep, each once."""
    found = []
    for backend in dict.fromkeys(map(backend_of, scenarios)):
        if backend.remark:
            found.append(backend.remark)
    published = [scenario for scenario in scenarios if scenario.dqi == "published"]
    if published:
        found.append(
            'dqi = "published": the paper\'s parameters make DQI fall as data size grows (docs/decisions/dqi.md)'
        )
    for name in sorted({name for scenario in published for name in datasets_of(scenario)}):
        if info(name).source in _OWN:
            found.append(
                f"data set {name!r} has the DQI of parameters that were measured on EMNIST; `flmarket calibrate dqi "
                'SCENARIO` measures its own, for dqi = "fitted"'
            )
    for name in sorted({name for scenario in scenarios for name in images_of(scenario)} - DRAWN.keys()):
        dataset = shelf.get(name)
        if (what := _OWN.get(dataset.info.source)) is not None:
            found.append(f"data set {name!r} is {what}: meta.json holds its digests; publish them with any result")
        elif not dataset.official:
            found.append(f"data set {name!r}: the files are not known to be the official ones; say so with any result")
    found += dict.fromkeys(problem for scenario in scenarios for problem in _unaffordable(scenario))
    found += dict.fromkeys(
        f"{scenario.name}: {counted(len(none), 'client')} without an image: offline in all rounds"
        for scenario in scenarios
        if (none := without_images(scenario))
    )
    found += [
        f"data set {chosen.dataset!r} is trained as its fits were measured, where the scenario leaves it open: "
        f"{chosen.regime}"
        for chosen in regimes_of(scenarios)
        if chosen.departs
    ]
    obstacles = {problem for scenario in scenarios for problem in _obstacles(scenario)}
    return found + [
        f"{problem}; training takes the reference path, which is about ten times slower (docs/performance.md)"
        for problem in sorted(obstacles)
    ]


def _unaffordable(scenario: Scenario) -> Iterator[str]:
    """Yield that no service can ever buy a client."""
    if not BEHAVIOURS.is_builtin(scenario.clients.behaviour.kind):  # what a plug-in's clients ask is up to it
        return
    budgets = [service.budget for service in scenario.services]
    budgets += [change.value for change in scenario.interventions if change.key.endswith(".budget")]
    if max(budgets) < (least := bid_range(scenario)[0]):
        owned = scenario.data.given and not scenario.clients.data_size
        yield (
            f"{scenario.name}: no service can buy a client: none asks less than {least:.2f}, and the largest budget is "
            f"{max(budgets):g}" + "; clients.data_size lets them train on fewer of their images in a round" * owned
        )


def _obstacles(scenario: Scenario) -> Iterator[str]:
    """Yield why the fused kernel cannot train what it could be expected to: built-in models on a CPU."""
    training = scenario.training
    if training.device != "cpu" or training.kernel == "reference":
        return
    for name in images_of(scenario):
        model = scenario.training_for(name).model
        if MODELS.is_builtin(model) and (problem := fused.obstacle(model, info(name).shape)):
            yield problem
