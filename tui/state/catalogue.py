"""The entries of the home screen, and those that it has at once: scenarios. ``known_runs`` lists runs and trainings."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from flmarket.core.errors import InputError
from flmarket.core.files import BYTE_ORDER_MARK, read_regular
from scenarios.builtin import builtin_names, builtin_path, builtin_text

MOST_RUNS = 200  # that are listed, the newest

SEEDS = range(3)
"""The seeds of the paper's market, as the home screen offers it to play."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the home screen's list."""

    kind: str  # beginning, built-in, file, training or run
    name: str  # its name in the list
    path: Path  # the scenario file, the training's log, or the run's directory
    # of a run, its ``RunState``; of a file, whether it has problems. An entry stays the same entry when its state
    # changes.
    state: str = field(default="", compare=False)
    result: str = field(default="", compare=False)  # of a run, in a few words
    age: str = field(default="", compare=False)  # of a run or a training, in a few words
    about: str = field(default="", compare=False)  # of a scenario, its description; of a beginning, what it does

    @property
    def title(self) -> str:
        """Its line in the list: the name, the state, and what there is to say about a run."""
        words = ", ".join(filter(None, (self.state, self.result, self.age)))
        return f"{self.name} ({words})" if words else self.name

    @property
    def is_run(self) -> bool:
        return self.kind == "run"

    @property
    def scenario_file(self) -> Path:
        """A scenario's file; of a run, that in its directory."""
        return self.path / "scenario.toml" if self.is_run else self.path


def beginnings() -> list[Entry]:
    """Return what someone may begin with who has no run, training or scenario file yet."""
    return [
        Entry("beginning", name, builtin_path(scenario), about=about)
        for name, scenario, about in (
            ("Watch one", "quickstart", "Three services compete for 16 clients, at five rounds a second; no download."),
            (
                "Reproduce the paper",
                "paper",
                f"Its services and policies with {len(SEEDS)} seeds, compared. Fitted learning curves stand in for "
                "training, so it takes less than a minute; r trains on images.",
            ),
            ("Write your own", "quickstart", "A form with all that a market has, to begin with that of quickstart."),
        )
    ]


def scenarios(folder: Path, out: Path) -> list[Entry]:
    """Return what can be listed at once: with the scenarios what to begin with, where no run seems to be there."""
    begun = any(out.glob("*/*/seed-*")) or any(any(place.glob("*.csv")) for place in (folder, folder / "agents"))
    return entries_with(own_files(folder), begun=begun)


def entries_with(own: list[Entry], *, begun: bool = False) -> list[Entry]:
    """Return all entries: the user's own after the built-in scenarios, and before both what to begin with if need be.

    ``begun``: there are runs or trainings that are not among them.
    """
    return [*([] if own or begun else beginnings()), *builtins(), *own]


def builtins() -> list[Entry]:
    """Return the built-in scenarios, the one for beginners first."""
    names = sorted(builtin_names(), key=lambda name: (name != "quickstart", name))
    about = (tomllib.loads(builtin_text(name))["description"] for name in names)
    return [Entry("built-in", name, builtin_path(name), about=words) for name, words in zip(names, about, strict=True)]


def own_files(folder: Path) -> list[Entry]:
    """Return the scenario files in a folder, without other TOML files; those that are no valid TOML are marked."""
    entries = []
    for path in sorted(folder.glob("*.toml")):
        try:
            text = read_scenario(path).removeprefix(BYTE_ORDER_MARK)
        except InputError:
            continue
        about = ""
        try:
            values = tomllib.loads(text)
            is_scenario, state, about = "services" in values, "", str(values.get("description", ""))
        except (ValueError, RecursionError):  # it may be one that is being written
            is_scenario, state = "services" in text, "has problems"
        if is_scenario:
            entries.append(Entry("file", path.name, path, state, about=" ".join(about.split())))
    return entries


def read_scenario(file: Path) -> str:
    """Return a scenario file's text, with its byte-order mark and line ends."""
    try:
        return read_regular(file).decode()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeError as error:
        raise InputError(f"{file}: cannot be read: it is not UTF-8 text") from error


def age(seconds: float) -> str:
    """Return how long ago something was, in the largest unit: ``3 min ago``."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"
