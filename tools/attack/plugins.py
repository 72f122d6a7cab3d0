"""Mistakes in plug-ins: the run of a policy fails with a line that names it, and the others are whole."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from attack.campaign import Campaign
from attack.shell import TINY, differences, flmarket, results

PLACES = {
    "import": "{deed}\n",
    "__init__": "def __init__(self, context):\n        {deed}",
    "act": "def act(self, observation):\n        {deed}\n        return Offer.none()",
    "learn": "def learn(self, observation, offer, feedback):\n        {deed}",
    "state": "def state(self):\n        {deed}\n        return {{}}",
}
DEEDS = {
    "raise": "raise ValueError('no')",
    "assert": "assert False",
    "exit 0": "import sys; sys.exit(0)",
    "exit 3": "raise SystemExit(3)",
    "os._exit 0": "import os; os._exit(0)",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "escape": "raise ValueError('\\x1b[2J[bold]')",
    "recursion": "f = lambda: f(); f()",
    "print": "print('x' * 1000000); raise ValueError",
    "thread": "import threading, time; threading.Thread(target=lambda: time.sleep(60)).start(); raise ValueError",
    "chdir": "import os; os.chdir('/'); raise ValueError",
    "nonsense": "return object()",
    "nan": "import numpy as np; return np.full(7, np.nan)",
    "objects": "import numpy as np; return {{'x': np.array([object()])}}",
}


def attempt(random: Random, folder: Path) -> Iterator[str]:
    """Play a run of a policy with a mistake next to runs of a good one."""
    place, deed = random.choice(list(PLACES)), random.choice(list(DEEDS))
    if place == "import" and ("return" in DEEDS[deed] or deed == "os._exit 0"):  # the latter ends the command itself
        deed = "raise"
    body = PLACES[place].format(deed=DEEDS[deed].replace("{{", "{").replace("}}", "}"))
    (folder / "mistaken.py").write_text(
        "import flmarket\nfrom flmarket import Offer, Policy\n"
        + (body if place == "import" else "")
        + "class Base(Policy):\n    def __init__(self, context):\n        pass\n"
        "    def act(self, observation):\n        return Offer.none()\n"
        "@flmarket.policy('mistaken')\nclass Mistaken(Base):\n    '''Mistaken.'''\n    "
        + (body if place != "import" else "pass")
        + "\n"
    )
    good = ("run", "scarce", *TINY, "--policy", "hqfa", "--seeds", "2", "--out")
    jobs = str(random.choice((1, 2)))
    done = flmarket(
        *good, "out", "--policy", "mistaken", "--plugin", "mistaken.py", "--jobs", jobs, folder=folder,
        extra={"PYTHONFAULTHANDLER": "0"},
    )  # fmt: skip
    what = f"{deed} in {place}, --jobs {jobs}: "
    for problem in done.wrong(0, 1, 2):
        yield what + problem
    played = results(folder / "out") if (folder / "out").exists() else {}
    mistaken = {name for name in played if "/mistaken/" in name}
    metas = [path for path in folder.rglob("out/*/mistaken/*/meta.json") if '"complete"' in path.read_text()]
    if done.status == 0 and len(metas) != 2:
        yield f"{what}status 0, but {2 - len(metas)} runs are missing"
    if done.status == 1:  # the good runs must be there, and as they are without it
        alone = flmarket(*good, "alone", folder=folder)
        yield from alone.wrong(0)
        found = {name: content for name, content in played.items() if name not in mistaken}
        yield from (what + problem for problem in differences(results(folder / "alone"), found))
    if done.status and "mistaken" not in done.out + done.errors:
        yield f"{what}nothing names the policy: {done.errors[-1000:]}"


CAMPAIGNS = (Campaign("mistaken-policies", "a policy that raises, exits, crashes or returns nonsense", 150, attempt),)
