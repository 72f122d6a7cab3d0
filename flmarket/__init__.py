"""flmarket: federated-learning services compete for clients under monetary budgets, round after round.

    results = flmarket.run("quickstart", policies=["random", "hqfa"], seeds=3)    # and then results.summary()

Importing the package is cheap; torch and pandas are imported by the functions that need them.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from des.allocation import NO_CORE, allocate
    from des.behaviour import Behaviour, Outcomes, Setting, behaviour
    from des.cost import Cost, Work, cost
    from des.mechanism import (
        Asks,
        Book,
        Clearing,
        Deliveries,
        Mechanism,
        Menu,
        RoundView,
        by_service,
        choose,
        mechanism,
    )
    from des.observation import Feedback, Observation, Offer, Status
    from des.response import Awards, BestResponse, Response, response
    from fl.arithmetic.streams import stream
    from fl.data.registry import dataset
    from fl.training.aggregator import Aggregator, Updates, aggregator
    from fl.training.models import model
    from fl.training.trigger import Gathered, Trigger, trigger
    from flmarket.analysis.dataframes import Results
    from flmarket.analysis.results.replayed import contributions
    from flmarket.analysis.results.run_results import RunTables
    from flmarket.analysis.what_if.fork import Fork
    from flmarket.api import load
    from flmarket.core.errors import InputError, RunError
    from flmarket.core.plugins import PluginError
    from flmarket.learn import parallel_env, service_env, spaces, train, vector_env
    from flmarket.play import fork, read, run
    from flmarket.trackers import MLflow, TensorBoard, WandB
    from learning.client_selection.selection import fill_budget
    from learning.environments.agent_policy import policy_from
    from learning.policy import Policy, PolicyContext, policy
    from learning.statistics.intervals import mean_interval
    from learning.statistics.measure import measure
    from scenarios.file.problems import ScenarioError
    from scenarios.file.schema import Scenario
    from scenarios.plugin_files import load_plugin, registered
    from scenarios.running.batch import BatchFailed
    from scenarios.running.progress import Tracker

    __version__: str

__all__ = [
    "NO_CORE",
    "Aggregator",
    "Asks",
    "Awards",
    "BatchFailed",
    "Behaviour",
    "BestResponse",
    "Book",
    "Clearing",
    "Cost",
    "Deliveries",
    "Feedback",
    "Fork",
    "Gathered",
    "InputError",
    "MLflow",
    "Mechanism",
    "Menu",
    "Observation",
    "Offer",
    "Outcomes",
    "PluginError",
    "Policy",
    "PolicyContext",
    "Response",
    "Results",
    "RoundView",
    "RunError",
    "RunTables",
    "Scenario",
    "ScenarioError",
    "Setting",
    "Status",
    "TensorBoard",
    "Tracker",
    "Trigger",
    "Updates",
    "WandB",
    "Work",
    "aggregator",
    "allocate",
    "behaviour",
    "by_service",
    "choose",
    "contributions",
    "cost",
    "dataset",
    "fill_budget",
    "fork",
    "load",
    "load_plugin",
    "mean_interval",
    "measure",
    "mechanism",
    "model",
    "parallel_env",
    "policy",
    "policy_from",
    "read",
    "registered",
    "response",
    "run",
    "service_env",
    "spaces",
    "stream",
    "train",
    "trigger",
    "vector_env",
]

_NAMES: Mapping[str, tuple[str, ...]] = {
    "des.allocation": ("NO_CORE", "allocate"),
    "des.behaviour": ("Behaviour", "Outcomes", "Setting", "behaviour"),
    "des.cost": ("Cost", "Work", "cost"),
    "des.mechanism": (
        "Asks",
        "Book",
        "Clearing",
        "Deliveries",
        "Mechanism",
        "Menu",
        "RoundView",
        "by_service",
        "choose",
        "mechanism",
    ),
    "des.observation": ("Feedback", "Observation", "Offer", "Status"),
    "des.response": ("Awards", "BestResponse", "Response", "response"),
    "fl.arithmetic.streams": ("stream",),
    "fl.data.registry": ("dataset",),
    "fl.training.aggregator": ("Aggregator", "Updates", "aggregator"),
    "fl.training.models": ("model",),
    "fl.training.trigger": ("Gathered", "Trigger", "trigger"),
    "flmarket.analysis.dataframes": ("Results",),
    "flmarket.analysis.results.replayed": ("contributions",),
    "flmarket.analysis.results.run_results": ("RunTables",),
    "flmarket.analysis.what_if.fork": ("Fork",),
    "flmarket.api": ("load",),
    "flmarket.core.errors": ("InputError", "RunError"),
    "flmarket.core.plugins": ("PluginError",),
    "flmarket.learn": ("parallel_env", "service_env", "spaces", "train", "vector_env"),
    "flmarket.play": ("fork", "read", "run"),
    "flmarket.trackers": ("MLflow", "TensorBoard", "WandB"),
    "learning.client_selection.selection": ("fill_budget",),
    "learning.environments.agent_policy": ("policy_from",),
    "learning.policy": ("Policy", "PolicyContext", "policy"),
    "learning.statistics.intervals": ("mean_interval",),
    "learning.statistics.measure": ("measure",),
    "scenarios.file.problems": ("ScenarioError",),
    "scenarios.file.schema": ("Scenario",),
    "scenarios.plugin_files": ("load_plugin", "registered"),
    "scenarios.running.batch": ("BatchFailed",),
    "scenarios.running.progress": ("Tracker",),
}
"""The names of each module, as the imports above and ``__all__`` have them."""

_ELSEWHERE = {name: module for module, names in _NAMES.items() for name in names}
"""The module of each name; it is imported when it is first used."""


def __getattr__(name: str) -> Any:
    from flmarket.core.installation import require_one_place, version

    if name == "__version__":
        return version()
    if name in _ELSEWHERE:
        require_one_place()
        value = globals()[name] = getattr(import_module(_ELSEWHERE[name]), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
