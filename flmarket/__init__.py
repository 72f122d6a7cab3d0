"""flmarket: federated-learning services compete for clients under monetary budgets, round after round.

    results = flmarket.run("quickstart", policies=["random", "hqfa"], seeds=3)    # and then results.summary()

Importing the package is cheap; torch and pandas are imported by the functions that need them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from des.allocation import allocate
    from des.behaviour import Behaviour, Outcomes, Setting, behaviour
    from des.mechanism import Book, Clearing, Mechanism, mechanism
    from des.observation import Feedback, Observation, Offer
    from fl.datasets import dataset
    from fl.model_names import model
    from flmarket._face import load, parallel_env, read, run, service_env, train, vector_env
    from flmarket._fork import fork
    from flmarket.core.errors import InputError, RunError
    from flmarket.core.plugins import PluginError
    from learning.policy import Policy, PolicyContext, policy
    from learning.selection import fill_budget
    from scenarios.file.problems import ScenarioError
    from scenarios.file.schema import Scenario
    from scenarios.fork import Fork
    from scenarios.judging.dataframes import Results
    from scenarios.plugins import load_plugin
    from scenarios.running.batch import BatchFailed

    __version__: str

__all__ = [
    "BatchFailed",
    "Behaviour",
    "Book",
    "Clearing",
    "Feedback",
    "Fork",
    "InputError",
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
    "read",
    "run",
    "service_env",
    "train",
    "vector_env",
]

_ELSEWHERE = {
    "BatchFailed": "scenarios.running.batch",
    "Behaviour": "des.behaviour",
    "Book": "des.mechanism",
    "Clearing": "des.mechanism",
    "Feedback": "des.observation",
    "Fork": "scenarios.fork",
    "InputError": "flmarket.core.errors",
    "Mechanism": "des.mechanism",
    "Observation": "des.observation",
    "Offer": "des.observation",
    "Outcomes": "des.behaviour",
    "PluginError": "flmarket.core.plugins",
    "Policy": "learning.policy",
    "PolicyContext": "learning.policy",
    "Results": "scenarios.judging.dataframes",
    "RunError": "flmarket.core.errors",
    "Scenario": "scenarios.file.schema",
    "ScenarioError": "scenarios.file.problems",
    "Setting": "des.behaviour",
    "allocate": "des.allocation",
    "behaviour": "des.behaviour",
    "dataset": "fl.datasets",
    "fill_budget": "learning.selection",
    "fork": "flmarket._fork",
    "load": "flmarket._face",
    "load_plugin": "scenarios.plugins",
    "mechanism": "des.mechanism",
    "model": "fl.model_names",
    "parallel_env": "flmarket._face",
    "policy": "learning.policy",
    "read": "flmarket._face",
    "run": "flmarket._face",
    "service_env": "flmarket._face",
    "train": "flmarket._face",
    "vector_env": "flmarket._face",
}
"""Where a name comes from; it is imported when it is first used. The imports above and ``__all__`` name the same."""


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
    return sorted({*globals(), *__all__})
