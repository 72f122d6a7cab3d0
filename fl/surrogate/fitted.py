"""Fits: the parameters of eq. (6), learning curves, and stale updates, by data set. Light: no torch, no SciPy.

Fits of our own experiments come with the package (``fl/surrogate/fits/*.json``). ``flmarket calibrate`` adds users'
fits to the folder ``own_folder()``; they take precedence.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache, lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, Literal, cast, get_args

from fl.training.regime import Regime
from flmarket.core.errors import InputError
from flmarket.core.files import asked_for, expanded, home, read_regular, require_folder, version

Kind = Literal["dqi", "surrogate", "staleness"]

_SHIPPED = Path(__file__).with_name("fits")
_VARIABLE = "FLMARKET_FITS"


class FitError(InputError):
    """A fit is missing, or a file of fits cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Fit:
    kind: Kind  # ``dqi`` (eq. 6), ``surrogate`` (a learning curve), or ``staleness`` (what it learns of stale updates)
    dataset: str  # name of the data set
    regime: Regime  # how the clients trained whose curve was measured, or (``dqi``) the experiments' networks
    parameters: Mapping[str, float]  # the fitted parameters, by name
    quality: Mapping[str, Any]  # measures of how well they fit, by name
    source: Mapping[str, Any]  # what was measured, for people

    @property
    def digest(self) -> str:
        """SHA-256 of what results depend on: part of the hash of runs that use the fit."""
        content = json.dumps([self.kind, self.dataset, asdict(self.regime), dict(self.parameters)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def own_folder() -> Path:
    """Return the folder of the user's own fits: ``FLMARKET_FITS``, or ``~/.config/flmarket/fits``."""
    if chosen := os.environ.get(_VARIABLE):
        return expanded(chosen)
    return Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config") / "flmarket" / "fits"


def dqi_fit(dataset: str) -> Fit:
    """Return the fit of eq. (6) for a data set."""
    for fit in _all("dqi"):
        if fit.dataset == dataset:
            return fit
    raise FitError(
        f"data set {dataset!r} has no fit of the data quality indicator (eq. 6); make one with "
        'flmarket calibrate dqi SCENARIO, or set dqi = "published"'
    )


def surrogate_fit(dataset: str, regime: Regime) -> Fit:
    """Return the learning curve of a data set in a training regime."""
    fits = [fit for fit in _all("surrogate") if fit.dataset == dataset]
    for fit in fits:
        if fit.regime == regime:
            return fit
    known = "; ".join(str(fit.regime) for fit in fits)
    raise FitError(
        f"data set {dataset!r} has no surrogate fit for {regime}"
        + (f" (it has one for {known})" if known else "")
        + "; make one with flmarket calibrate surrogate SCENARIO, or choose another training.backend"
    )


def shipped_regime(dataset: str) -> Regime | None:
    """Return the regime in which the fits that come with the package were measured; None where it has none.

    A data set's curve and its DQI were measured in one regime, but for the epochs: those of the DQI's experiments are
    not those of a round.
    """
    return next((fit.regime for fit in _shipped_curves() if fit.dataset == dataset), None)


def shipped_curve(dataset: str, regime: Regime) -> Fit | None:
    """Return the learning curve of a data set that comes with the package, in that regime or else in another.

    None where it has none. Users' own are left out: what a run does must not depend on fits that its hash is not of.
    """
    found = [fit for fit in _shipped_curves() if fit.dataset == dataset]
    return next((fit for fit in found if fit.regime == regime), found[0] if found else None)


def staleness_fit(dataset: str, regime: Regime) -> Fit | None:
    """Return what is learned of stale updates, as measured for a data set in a regime; None where it was not."""
    return next((fit for fit in _shipped("staleness") if (fit.dataset, fit.regime) == (dataset, regime)), None)


def _shipped_curves() -> list[Fit]:
    return _shipped("surrogate")


@cache
def _shipped(kind: Kind) -> list[Fit]:
    return read(_SHIPPED / f"{kind}.json")


def add(path: Path, fit: Fit) -> None:
    """Put a fit into a file, in place of the one that it has for the same data set (and, of curves, regime)."""
    kept = [other for other in read(path) if _key(other) != _key(fit)] if path.exists() else []
    require_folder(path.parent)
    entries = [asdict(each) for each in sorted([*kept, fit], key=_key)]
    for entry in entries:
        del entry["kind"]  # which the file's name says
    with asked_for(path) as file:
        file.write(json.dumps(entries, indent=1, sort_keys=True) + "\n")


def read(path: Path) -> list[Fit]:
    """Return the fits of a file, whose name says their kind (``dqi.json``, ``surrogate.json``, ``staleness.json``)."""
    kind = cast("Kind", path.stem) if path.stem in get_args(Kind) else "surrogate"
    try:
        return [_fit(kind, entry) for entry in json.loads(read_regular(path))]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise FitError(f"{path}: is not a file of fits: {error}; remove it, or run flmarket calibrate again") from error


def _fit(kind: Kind, entry: Mapping[str, Any]) -> Fit:
    regime = Regime(**{field.name: entry["regime"][field.name] for field in fields(Regime)})  # none has a default here
    parameters = {name: float(value) for name, value in entry["parameters"].items()}
    if not all(map(isfinite, parameters.values())):
        raise ValueError(f"a parameter of {entry['dataset']} is not a finite number")
    return Fit(**{**entry, "kind": kind, "regime": regime, "parameters": parameters})


def _key(fit: Fit) -> tuple[str, str]:
    return fit.dataset, "" if fit.kind == "dqi" else str(fit.regime)


def _all(kind: Kind) -> list[Fit]:
    fits: list[Fit] = []
    for folder in (own_folder(), _SHIPPED):
        path = folder / f"{kind}.json"
        if path.exists():  # most users have none of their own
            fits += _read_once(path, version(path.stat()))
    return fits


@lru_cache(maxsize=16)
def _read_once(path: Path, _version: tuple[int, ...]) -> list[Fit]:
    return read(path)
