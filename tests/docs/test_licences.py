"""docs/licences.md lists what flmarket needs; the licences of these, and of what they need, are permissive."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/licences.md").read_text(encoding="utf-8")
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
OURS = {Requirement(it).name for it in DECLARED}
PERMISSIVE = re.compile(r"\b(MIT|BSD|0BSD|Apache|ISC|Zlib|CC0|PSF|Python Software Foundation)\b")
RESTRICTED = re.compile(r"GPL|MPL|Mozilla|EUPL|CDDL|SSPL|Commercial|Proprietary", re.I)


def needed(package: str) -> set[str]:
    """Return the packages that a package needs without an extra, on this machine."""
    requirements = map(Requirement, metadata.requires(package) or [])
    return {it.name.lower() for it in requirements if it.marker is None or it.marker.evaluate({"extra": ""})}


def licence(package: str) -> str:
    about = metadata.metadata(package)
    classifiers = [it.rpartition(" :: ")[2] for it in about.get_all("Classifier") or [] if it.startswith("License ::")]
    return about.get("License-Expression") or "; ".join(classifiers) or about.get("License") or ""


def test_the_page_lists_what_is_needed_with_its_licence() -> None:
    listed = dict(re.findall(r"^\| `([\w-]+)` \| (\w+)", PAGE, re.M))
    assert listed.keys() == OURS
    for package, kind in listed.items():
        assert re.search(kind.replace("PSF", "PSF|Python Software Foundation"), licence(package)), package


def test_all_licences_are_permissive() -> None:
    found: dict[str, str] = {}
    waiting = set(OURS)
    while waiting:
        package = waiting.pop()
        found[package] = licence(package)
        waiting |= needed(package) - found.keys()
    assert len(found) > 30
    refused = {name: text for name, text in found.items() if not PERMISSIVE.search(text) or RESTRICTED.search(text)}
    assert refused == {}
