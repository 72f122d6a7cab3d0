"""flmarket: federated-learning services compete for clients under monetary budgets, round after round.

    results = flmarket.run("quickstart", policies=["random", "hqfa"], seeds=3)    # and then results.summary()

Importing the package is cheap; torch and pandas are imported by the functions that need them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from des.allocation import NO_CORE, allocate
    from des.behaviour import Behaviour, Outcomes, Setting, behaviour
    from des.mechanism import Asks, Book, Clearing, Mechanism, mechanism
    from des.observation import Feedback, Observation, Offer, Status
    from fl.data.registry import dataset
    from fl.training.models import model
    from flmarket._fork import fork
    from flmarket.analysis.dataframes import Results
    from flmarket.analysis.what_if.fork import Fork
    from flmarket.api import load, parallel_env, read, run, service_env, spaces, train, vector_env
    from flmarket.core.errors import InputError, RunError
    from flmarket.core.plugins import PluginError
    from flmarket.trackers import MLflow, TensorBoard, WandB
    from learning.client_selection.selection import fill_budget
    from learning.environments.agent_policy import policy_from
    from learning.policy import Policy, PolicyContext, policy
    from scenarios.file.problems import ScenarioError
    from scenarios.file.schema import Scenario
    from scenarios.plugin_files import load_plugin
    from scenarios.running.batch import BatchFailed
    from scenarios.running.observer import Tracker

    __version__: str

__all__ = [
    "NO_CORE",
    "Asks",
    "BatchFailed",
    "Behaviour",
    "Book",
    "Clearing",
    "Feedback",
    "Fork",
    "InputError",
    "MLflow",
    "Mechanism",
    "Observation",
    "Offer",
    "Outcomes",
    "PluginError",
    "Policy",
    "PolicyContext",
    "Results",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Setting",
    "Status",
    "TensorBoard",
    "Tracker",
    "WandB",
    "allocate",
    "behaviour",
    "dataset",
    "fill_budget",
    "fork",
    "load",
    "load_plugin",
    "mechanism",
    "model",
    "parallel_env",
    "policy",
    "policy_from",
    "read",
    "run",
    "service_env",
    "spaces",
    "train",
    "vector_env",
]

_ELSEWHERE = {
    "NO_CORE": "des.allocation",
    "Asks": "des.mechanism",
    "BatchFailed": "scenarios.running.batch",
    "Behaviour": "des.behaviour",
    "Book": "des.mechanism",
    "Clearing": "des.mechanism",
    "Feedback": "des.observation",
    "Fork": "flmarket.analysis.what_if.fork",
    "InputError": "flmarket.core.errors",
    "MLflow": "flmarket.trackers",
    "Mechanism": "des.mechanism",
    "Observation": "des.observation",
    "Offer": "des.observation",
    "Outcomes": "des.behaviour",
    "PluginError": "flmarket.core.plugins",
    "Policy": "learning.policy",
    "PolicyContext": "learning.policy",
    "Results": "flmarket.analysis.dataframes",
    "RunError": "flmarket.core.errors",
    "Scenario": "scenarios.file.schema",
    "ScenarioError": "scenarios.file.problems",
    "Setting": "des.behaviour",
    "Status": "des.observation",
    "TensorBoard": "flmarket.trackers",
    "Tracker": "scenarios.running.observer",
    "WandB": "flmarket.trackers",
    "allocate": "des.allocation",
    "behaviour": "des.behaviour",
    "dataset": "fl.data.registry",
    "fill_budget": "learning.client_selection.selection",
    "fork": "flmarket._fork",
    "load": "flmarket.api",
    "load_plugin": "scenarios.plugin_files",
    "mechanism": "des.mechanism",
    "model": "fl.training.models",
    "parallel_env": "flmarket.api",
    "policy": "learning.policy",
    "policy_from": "learning.environments.agent_policy",
    "read": "flmarket.api",
    "run": "flmarket.api",
    "service_env": "flmarket.api",
    "spaces": "flmarket.api",
    "train": "flmarket.api",
    "vector_env": "flmarket.api",
}
"""The module of each name; it is imported when it is first used. The imports above and ``__all__`` name the same."""


def __getattr__(name: str) -> Any:
    from flmarket.core.installation import require_one_place, version

    if name == "__version__":
        return version()
    if name in _ELSEWHERE:
        require_one_place()
        found = globals()[name] = getattr(import_module(_ELSEWHERE[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
