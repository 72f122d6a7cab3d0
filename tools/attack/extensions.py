"""Mistakes in models, data sets and mechanisms: each fails its own scenario's runs, and the other scenario is whole."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from attack.campaign import Campaign
from attack.plugins import DEEDS
from attack.shell import differences, flmarket, results

KINDS = {
    "model": ("""\
@flmarket.model("mistaken")
def mistaken(labels, shape):
    {build}
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(shape.channels * shape.height * shape.width, labels)

        def forward(self, x):
            {forward}
            return self.linear(x.flatten(1))

    return Module()
""", ("build", "forward"), ('model = "mlp"', 'model = "mistaken"')),
    "data set": ("""\
@flmarket.dataset("mistaken")
def mistaken():
    {make}
    import numpy as np
    labels = np.arange(2000) % 4
    images = np.random.default_rng(0).integers(0, 256, (2000, 8, 8), dtype=np.uint8)
    {made}
    return images, labels, images[:200], labels[:200]
""", ("make", "made"), ('dataset = "digits"', 'dataset = "mistaken"')),
    "mechanism": ("""\
@flmarket.mechanism("mistaken")
class Mistaken(flmarket.Mechanism):
    def __init__(self):
        {init}

    def clear(self, book):
        {clear}
        raise ValueError("mistaken")
""", ("init", "clear"), ("[[services]]", '[market]\nmechanism = "mistaken"\n\n[[services]]')),
}  # fmt: skip
"""The text of a plug-in, the places of its deed, and what makes a scenario use it."""

ENDING = ("os._exit 0", "segfault", "kill")
"""Deeds that end the process which loads a data set or checks a model: the command's own (docs/reliability.md)."""

SCENARIO = """
name = "good"
rounds = 2
dqi = "published"
clients = {count = 4, cores = 1, data_size = [20, 40], emd = [0.2, 1.0], cost = {per_sample = 0.05, per_emd = 0.5}}
training = { model = "mlp", local_epochs = 1, learning_rate = 0.1 }

[[services]]
name = "only"
dataset = "digits"
budget = 5
target_accuracy = 0.9
reward_base = 60
policy = "random"
"""


def attempt(random: Random, folder: Path) -> Iterator[str]:
    """Play or check a scenario with a mistake in a plug-in, and one without."""
    kind, deed = random.choice(list(KINDS)), random.choice([it for it in DEEDS if it not in ENDING])
    text, places, (old, new) = KINDS[kind]
    place = random.choice(places)
    filled = {name: DEEDS[deed].replace("{{", "{").replace("}}", "}") if name == place else "pass" for name in places}
    (folder / "mistaken.py").write_text("import flmarket\n\n\n" + text.format(**filled))
    (folder / "good.toml").write_text(SCENARIO)
    (folder / "mistaken.toml").write_text(SCENARIO.replace('"good"', '"mistaken"').replace(old, new))
    what = f"{deed} in {place} of a {kind}: "
    plugin = ("--plugin", "mistaken.py")
    checked = flmarket("validate", "mistaken.toml", *plugin, folder=folder)
    yield from (what + problem for problem in checked.wrong(0, 2))
    jobs = str(random.choice((1, 2)))
    full = ("run", "mistaken.toml", "good.toml", "--workers", "1", "--jobs", jobs, "--out", "out", *plugin)
    done = flmarket(*full, folder=folder)
    yield from (what + problem for problem in done.wrong(0, 1, 2))
    complete = [path for path in folder.rglob("out/*/*/*/meta.json") if '"complete"' in path.read_text()]
    if done.status == 0 and len(complete) != 2:
        yield f"{what}status 0, but {2 - len(complete)} runs are missing"
    if (checked.status == 2) != (done.status == 2):
        shown = f"{checked.errors[-500:]} {done.errors[-500:]}"
        yield f"{what}validate ends with {checked.status}, run with {done.status}: {shown}"
    if done.status == 1:
        yield from flmarket("run", "good.toml", "--workers", "1", "--out", "alone", folder=folder).wrong(0)
        found = results(folder / "out")
        expected = results(folder / "alone")
        yield from (
            what + problem for problem in differences(expected, {name: found.get(name, b"") for name in expected})
        )
    if done.status and "mistaken" not in done.out + done.errors:
        yield f"{what}nothing names it: {done.errors[-1000:]}"


CAMPAIGNS = (
    Campaign(
        "mistaken-extensions", "a model, data set or mechanism that raises or exits: `validate` and `run`", 100,
        attempt,
    ),
)  # fmt: skip
