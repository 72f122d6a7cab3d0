"""Measures: numbers that runs are judged by; the one seam for them.

A measure has one value for a whole run, its market's, and one for each service where that makes sense. Those that come
with flmarket stand in ``flmarket.analysis.results.measures``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, update_wrapper
from math import inf
from typing import Any, Literal, cast

import numpy as np

from flmarket.core.errors import RunError
from flmarket.core.plugin_errors import definition, plugin_code
from flmarket.core.plugins import PluginError, Registry

MARKET = "market"  # takes the place of a service's name where a measure is of the whole market

ANY = (-inf, inf)  # limits of measures that can have any value

BETTER = {"more": 1, "less": -1, None: 0}
"""Directions by their names; None where it depends on who looks."""


class MeasureError(RunError):
    """The function of a measure failed, or returned what cannot be meant."""


@dataclass(eq=False)  # not frozen: one that a function is decorated with takes over its name and module
class Measure:
    """One way to judge a run."""

    name: str  # the measure's name, in tables and as a column
    meaning: str  # one sentence, with the unit
    better: int  # 1 if more is better, -1 if less is, 0 where that depends on who looks
    # returns the values of a run (``RunResult``) by service, and the market's; nothing where the measure does not apply
    values: Callable[[Any], Mapping[str, float]]
    digits: int = 2  # decimals in Markdown and HTML
    limits: tuple[float, float] = (0.0, inf)  # the lowest and the highest value that it can have

    @property
    def summary(self) -> str:
        """Its meaning in one line, for ``flmarket plugins``."""
        return self.meaning.partition(";")[0]

    def text(self, value: float, sign: str = "") -> str:
        """Return a value as tables show it; ``sign`` is ``+`` for differences."""
        rounded = round(value, self.digits) + 0.0  # -0.0 + 0.0 is 0.0
        return f"{rounded:{sign}.{self.digits}f}"


def _problem(thing: Any) -> str | None:
    return None if isinstance(thing, Measure) else f"{thing!r} is no measure; put @flmarket.measure(NAME) on a function"


RESERVED = ("scenario", "policy", "service", "service_policy", "seeds", "measure", "point", "key", "regret")
"""Columns of summaries and tables, and the measure of ``flmarket report --bounds`` whose name a plug-in could have."""

ALL_MEASURES: Registry[Measure] = Registry(
    "measure", "flmarket.measures", "flmarket.analysis.results.measures:BUILT_IN", _problem, reserved=RESERVED
)
"""All measures, by name."""


def measure(
    name: str,
    *,
    better: Literal["more", "less"] | None = None,
    per_service: Literal["mean", "sum"] | None = None,
    digits: int = 2,
) -> Callable[[Callable[..., object]], Measure]:
    """Return a decorator that makes a measure of a function, whose docstring says what it is: one sentence, its unit.

    The function gets a run, ``flmarket.RunTables``, and returns one number, or None where the run has none.

    Args:
        name: what tables call it.
        better: whether more or less of it is better; left out, that depends on who looks, and no difference is tested.
        per_service: that the function returns a number for each service, in their order or by their names; the whole
            market's is the ``mean`` or the ``sum`` of these.
        digits: decimals in tables.

    Raises:
        PluginError: the name is taken or invalid, or the function has no docstring.
    """
    register = ALL_MEASURES.decorator(name)

    def decorated(function: Callable[..., object]) -> Measure:
        meaning = " ".join((getattr(function, "__doc__", None) or "").partition("\n\n")[0].split())
        problems = {
            "is no function": not callable(function) or isinstance(function, type),
            "its function needs a docstring: one sentence that says what is measured, with the unit": not meaning,
            f"better is {better!r}; it must be 'more', 'less' or left out": better not in BETTER,
            f"digits is {digits!r}; it must be a whole number from 0 to 12": (
                type(digits) is not int or not 0 <= digits <= 12
            ),
            f"per_service is {per_service!r}; it must be 'mean', 'sum' or left out": per_service not in _MARKET,
        }
        for problem in (it for it, there in problems.items() if there):
            raise PluginError(f"measure {name!r}: {problem}")
        values = partial(_values, name, function, per_service)
        made: Any = Measure(name, meaning.rstrip("."), BETTER[better], values, digits, ANY)
        update_wrapper(made, function)
        return register(cast(Measure, made))

    return decorated


_MARKET: Mapping[str | None, Callable[..., Any]] = {"mean": np.mean, "sum": np.sum, None: float}


def _values(name: str, function: Callable[..., object], per_service: str | None, run: Any) -> dict[str, float]:
    """Return what a function of a plug-in says of a run, by service, and of the market."""
    what = f"measure {name!r} of {run.directory.path}"
    with plugin_code(what, MeasureError):
        given: Any = function(run.in_units)
    if given is None:
        return {}
    services = list(run.setting.services)
    wanted = "a number for each service, or None" if per_service else "a number or None"
    shown, by_name = repr(given), given.to_dict() if hasattr(given, "to_dict") else given  # a pandas Series
    if per_service and isinstance(by_name, Mapping):
        wanted = f"{wanted}: {', '.join(services)}"
        given = [by_name[it] for it in services] if by_name.keys() == set(services) else None
    numbers = np.asarray(given)
    shape = (len(services),) if per_service else ()
    if numbers.shape != shape or numbers.dtype.kind not in "bif" or not np.isfinite(numbers).all():
        where = f" ({defined})" if (defined := definition(function)) else ""
        raise MeasureError(f"{what}: must return {wanted}, finite, not {' '.join(shown.split())[:80]}{where}")
    if not per_service:
        return {MARKET: float(numbers)}
    of_market = {MARKET: float(_MARKET[per_service](numbers[run.present].astype(np.float64)))}
    values = zip(services, numbers.astype(np.float64).tolist(), run.came, strict=True)
    return {service: value for service, value, came in values if came} | of_market
