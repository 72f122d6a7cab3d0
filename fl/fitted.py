"""Fits: the parameters of eq. (6) and of the learning curves, by data set. Light: no torch, no SciPy.

Fits of our own experiments come with the package (``fl/fits/*.json``). ``flmarket calibrate`` adds users' fits to the
folder ``own_folder()``; they take precedence.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from fl.errors import InputError
from fl.files import replacing
from fl.home import expanded, home
from fl.regime import Regime

Kind = Literal["dqi", "surrogate"]

_SHIPPED = Path(__file__).with_name("fits")
_VARIABLE = "FLMARKET_FITS"


class FitError(InputError):
    """A fit is missing, or a file of fits cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Fit:
    """One fit."""

    kind: Kind  # ``dqi`` (eq. 6) or ``surrogate`` (a learning curve)
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
    found = [fit for fit in _all("surrogate") if fit.dataset == dataset]
    for fit in found:
        if fit.regime == regime:
            return fit
    known = "; ".join(str(fit.regime) for fit in found)
    raise FitError(
        f"data set {dataset!r} has no surrogate fit for {regime}"
        + (f" (it has one for {known})" if known else "")
        + "; make one with flmarket calibrate surrogate SCENARIO, or choose another training.backend"
    )


@cache
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


@cache
def _shipped_curves() -> tuple[Fit, ...]:
    return tuple(read(_SHIPPED / "surrogate.json"))


def add(path: Path, fits: list[Fit]) -> None:
    """Put fits into a file, in place of those it has for the same data set (and, of curves, regime)."""
    kept = [fit for fit in read(path) if _key(fit) not in {_key(new) for new in fits}] if path.exists() else []
    entries = [
        {key: value for key, value in asdict(fit).items() if key != "kind"} for fit in sorted([*kept, *fits], key=_key)
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write((json.dumps(entries, indent=1, sort_keys=True) + "\n").encode())
    except OSError as error:
        raise FitError(f"{path}: cannot be written: {error.strerror}") from error


def read(path: Path) -> list[Fit]:
    """Return the fits of a file, whose name says their kind (``dqi.json``, ``surrogate.json``)."""
    kind: Kind = "dqi" if path.stem == "dqi" else "surrogate"
    try:
        return _parse(kind, path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FitError(f"{path}: is not a file of fits: {error}; remove it, or run flmarket calibrate again") from error


def _parse(kind: Kind, text: str) -> list[Fit]:
    entries = json.loads(text)
    if not isinstance(entries, list):
        raise TypeError("it holds no list")
    return [_fit(kind, **entry) for entry in entries]


def _fit(
    kind: Kind,
    *,
    dataset: str,
    regime: Mapping[str, Any],
    parameters: Mapping[str, float],
    quality: Mapping[str, Any],
    source: Mapping[str, Any],
) -> Fit:
    if missing := {field.name for field in fields(Regime)} - set(regime):  # what is absent must not become a default
        raise TypeError(f"a regime lacks {', '.join(sorted(missing))}")
    numbers = {str(name): float(value) for name, value in parameters.items()}
    return Fit(kind, str(dataset), Regime(**regime), numbers, dict(quality), dict(source))


def _key(fit: Fit) -> tuple[str, str]:
    return fit.dataset, str(fit.regime) if fit.kind == "surrogate" else ""


def _all(kind: Kind) -> list[Fit]:
    found: list[Fit] = []
    for folder in (own_folder(), _SHIPPED):
        path = folder / f"{kind}.json"
        try:
            state = path.stat()
        except OSError:  # most users have none of their own
            continue
        found += _read_once(path, state.st_mtime_ns, state.st_size)
    return found


@lru_cache(maxsize=16)
def _read_once(path: Path, _modified: int, _size: int) -> tuple[Fit, ...]:
    return tuple(read(path))
