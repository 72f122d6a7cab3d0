"""Play everything whose values are golden, and print their digests: ``python -m golden.science``.

The recorded values are those of revision 354198b; those of keys that it did not have are of when their cases were
added. A change of values is a change of the science: its reason is in the changelog, and only the values that changed
are written again.
"""

import hashlib
import json
import sys
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import flmarket
from golden.commands import ASKED, Shell, answers, first_run, verdicts
from golden.science_cases import CASES, TRAININGS
from golden.values import Run, digest, runs

FILE = Path(__file__).with_name("science.json")


def recorded() -> Mapping[str, Any]:
    """Return the recorded digests: of ``logs`` by case, of ``agents`` and ``commands`` by name, and ``verdicts``."""
    found: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def logs(name: str, folder: Path) -> list[Run]:
    """Play a case, and return the digests of its runs."""
    case = CASES[name]
    flmarket.run(flmarket.load(case.scenario, case.changes), seeds=[3], out=folder, progress=False)
    return runs(folder)


def agent(name: str, folder: Path) -> str:
    """Train an agent for three episodes, and return the digest of its numbers; the last bits depend on torch's CPU."""
    from safetensors.numpy import load_file

    policy, options = TRAININGS[name]
    market = flmarket.load("paper", {"training.backend": "surrogate", "rounds": 6})
    path = flmarket.train(market, folder / "agent", policy=policy, episodes=3, evaluate_every=3, options=options)
    tensors = load_file(path)
    return hashlib.sha256(b"".join(tensors[key].tobytes() for key in sorted(tensors))).hexdigest()[:12]


def said(shell: Shell, names: Container[str] = ASKED) -> dict[str, str]:
    """Return the digest of what each command says in numbers, and how many there are; runs are in the folder after."""
    # In order, as verify goes by the names of folders, and these follow from digests.
    return {name: f"{len(found)} {digest(sorted(found))}" for name, found in answers(shell, names)}


def judged() -> str:
    """Return verify's verdicts on damaged logs of the runs in the folder: 1 where it finds the damage."""
    folders = [first_run(Path(name).resolve()) for name in "abcd"]
    return "".join(str(int(found)) for _, found in verdicts(folders, 50))


def main() -> None:
    """Print the digests of everything."""
    import os
    import tempfile

    from support.shell import flmarket as shell

    found: dict[str, Any] = {"logs": {}}
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found["logs"][name] = logs(name, Path(folder))
    found["agents"] = {}
    for name in TRAININGS:
        with tempfile.TemporaryDirectory() as folder:
            found["agents"][name] = agent(name, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found["commands"] = said(lambda *arguments: shell(*arguments).stdout)
        found["verdicts"] = judged()
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
