"""The three things that someone may begin with who has no run, training or scenario file yet."""

from pathlib import Path

from scenarios.loader import builtin_path, builtin_text, dumps, load
from scenarios.running.steering import Start
from tui.state.catalogue import Entry
from tui.state.seek import to_watch

POLICIES = ("random", "lcfa", "hqfa", "mahdrl-paper")
SEEDS = range(3)

Starts = list[tuple[Start, str]]  # each with its run's label


def beginnings() -> list[Entry]:
    """Return them as entries of the home screen; what each does is in the same place in its list of keys."""
    return [
        Entry("beginning", name, builtin_path(scenario), about=about)
        for name, scenario, about in (
            ("Watch one", "quickstart", "Three services compete for 16 clients, at five rounds a second; no download."),
            (
                "Reproduce the paper",
                "paper",
                f"Its services and policies with {len(SEEDS)} seeds, compared. Fitted learning curves stand in for "
                "training, so that it takes seconds; r trains on images.",
            ),
            ("Write your own", "quickstart", "A form with all that a market has, to begin with that of quickstart."),
        )
    ]


def one_to_watch(out: Path) -> Starts:
    name = "quickstart"
    speed = to_watch(load(name).rounds)
    return [(Start(builtin_text(name), name, str(out), speed=speed), f"{name} · as-configured · seed 0")]


def paper(out: Path) -> Starts:
    """Return the paper's market played by its policies on fitted learning curves, as docs/paper.md has it."""
    text = dumps(load("paper", ["training.backend=surrogate"]))
    return [
        (Start(text, "paper", str(out), policy, seed=seed), f"paper · {policy} · seed {seed}")
        for policy in POLICIES
        for seed in SEEDS
    ]
