"""Command lines: whatever is asked for, the answer is one of the announced statuses and no traceback."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from attack.campaign import Campaign
from attack.shell import TINY, flmarket

WORDS = (
    "", "-", "--", "=", "a=b", "\x1b[2J", "[bold]", "../../x", "/dev/null", "/dev/full", "~", "~/x", "x" * 4_000, "é",
    "0", "-1", "1e400", "nan", "9" * 5_000, "[" * 5_000, "clients.cores=2", "clients.cores=[1,2]",
    "services.digits.budget=nan",
    "sweep={}", "training.backend=surrogate", "0..3", "3..0", "0,0,0", "mahdrl", "hqfa", "hqfa:x", "mahdrl:/dev/zero",
    "quickstart", "scarce", "paper", "runs", ".", "/", "/proc/self/mem", "x.toml", "nowhere/nowhere", "random",
)  # fmt: skip
OPTIONS = {
    "run": ("--policy", "--seeds", "--rounds", "--set", "--jobs", "--workers", "--out", "--plugin", "--engine"),
    "validate": ("--set", "--plugin"),
    "report": ("--baseline", "--figures", "--csv", "--html"),
    "export": ("--csv", "--parquet", "--table", "--shape"),
    "verify": ("--plugin",),
    "policies": ("--plugin",),
    "datasets": (),
    "scenarios": (),
    "train": ("--out", "--episodes", "--option", "--rivals", "--set", "--policy"),
    "calibrate": ("--out", "--datasets"),
}


def attempt(random: Random, folder: Path) -> Iterator[str]:
    """Run one nonsensical command, beside files of nonsense."""
    (folder / "x.toml").write_bytes(random.randbytes(200))
    (folder / "runs").mkdir()
    name = random.choice(list(OPTIONS))
    arguments = [name]
    if name in ("run", "train"):
        arguments += ["--dry-run"] if name == "run" and random.random() < 0.5 else []
        arguments += list(TINY) if name == "run" else ["--episodes", "1", "--set", "rounds=2"]
        arguments += ["quickstart"] if random.random() < 0.7 else []
    arguments += [random.choice(WORDS) for _ in range(random.randint(0, 2))]
    for _ in range(random.randint(0, 2)):
        if OPTIONS[name]:
            arguments += [random.choice(OPTIONS[name]), random.choice(WORDS)]
    if name == "calibrate" and "--help" not in arguments:
        arguments += ["--no-such-option"]  # nonsense is to be refused; what is not would measure for an hour
    if any("\x00" in argument for argument in arguments):
        return
    yield from flmarket(*arguments, folder=folder).wrong()


CAMPAIGNS = (Campaign("command-lines", "a nonsensical command line: status 0, 1 or 2, and a word", 300, attempt),)
