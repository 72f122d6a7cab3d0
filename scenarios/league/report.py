"""What a league shows: tables for people, and CSV files for pandas."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fl.counting import counted
from fl.files import write_rows
from learning.intervals import Interval, holm
from scenarios.league.crossplay import Cell
from scenarios.league.league import League
from scenarios.league.ratings import Rating

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]  # the heads of its columns, and its rows

SIGNIFICANT = 0.05  # A gain is marked whose p-value is at most this, adjusted for the number of gains


@dataclass(frozen=True, slots=True)
class Standing:
    """What came of a league."""

    league: League  # what was played
    cells: Sequence[Cell]  # its cross-play, resident by resident
    ratings: Sequence[Rating]  # the best first
    # three policies that beat each other in a circle, and the clearest interval of the narrowest victory
    cycle: tuple[tuple[str, str, str], Interval] | None

    @property
    def adjusted(self) -> dict[tuple[str, str], float]:
        """The p-value of each visitor's gain among other residents, adjusted for their number (Holm)."""
        others = [it for it in self.cells if it.visitor != it.resident]
        found = holm([it.gain.p for it in others])
        return {(it.visitor, it.resident): p for it, p in zip(others, found, strict=True)}

    def name(self, label: str) -> str:
        """Return a policy's name in tables, marked where it is privileged."""
        return f"{label}*" if self.league.is_privileged(label) else label


def title(standing: Standing) -> str:
    """Return what was played."""
    league = standing.league
    kind = "real training" if league.trains else "surrogate"
    return (
        f"{league.scenario.name} ({kind}): {len(league.policies)} policies, "
        f"{counted(len(league.services), 'seat')}, {counted(len(league.seeds), 'seed')}"
    )


def ratings_table(standing: Standing) -> Table:
    """Return the ratings, with what each policy gets where all play it, and who exploits it most."""
    own = {it.resident: it.payoff for it in standing.cells if it.visitor == it.resident}
    rows: list[tuple[str, ...]] = []
    for it in standing.ratings:
        among = [cell for cell in standing.cells if cell.resident == it.policy and cell.visitor != it.policy]
        worst = max(among, key=lambda cell: cell.gain.estimate, default=None)
        rows.append(
            (
                standing.name(it.policy),
                _signed(it.rating),
                f"{it.share:.3f}",
                "" if it.stays != it.stays else f"{it.stays:.0%}",
                f"{own[it.policy].estimate:.4f}",
                "" if worst is None else standing.name(worst.visitor),
                "" if worst is None else _signed(worst.gain),
            )
        )
    return ("policy", "rating", "share", "stays", "AUC of all", "best visitor", "its gain"), rows


def gains_table(standing: Standing) -> Table:
    """Return the gains: a row for each visitor, a column for each resident, in the order of the ratings."""
    order, adjusted = [it.policy for it in standing.ratings], standing.adjusted
    found = {(it.visitor, it.resident): it.gain.estimate for it in standing.cells}

    def cell(visitor: str, resident: str) -> str:
        if visitor == resident:
            return "."
        mark = "!" if adjusted[visitor, resident] <= SIGNIFICANT else ""
        return f"{found[visitor, resident]:+.3f}{mark}"

    rows = [(standing.name(a), *(cell(a, b) for b in order)) for a in order]
    return ("visitor", *map(standing.name, order)), rows


def sentences(standing: Standing) -> Iterator[str]:
    """Yield what the tables leave unsaid."""
    if any(standing.league.is_privileged(label) for label in standing.league.policies):
        yield "* sees what the paper hides from services"
    yield (
        f"! p <= {SIGNIFICANT:g} of a gain or loss, adjusted for {counted(len(standing.adjusted), 'comparison')} (Holm)"
    )
    if standing.cycle is not None:
        (a, b, c), narrowest = standing.cycle
        yield f"{a} beats {b}, {b} beats {c}, and {c} beats {a}, by {_signed(narrowest)} or more"


def write(standing: Standing, folder: Path) -> list[Path]:
    """Write the tables as CSV files; return them."""
    league, adjusted = standing.league, standing.adjusted
    seeds = len(league.seeds)
    files: dict[str, tuple[tuple[str, ...], list[tuple[object, ...]]]] = {
        "cross-play.csv": (
            (
                "visitor", "resident", "visitor_privileged", "resident_privileged", "seeds", *_columns("payoff"),
                *_columns("gain"), "gain_p", "gain_p_holm",
            ),
            [
                (
                    it.visitor, it.resident, league.is_privileged(it.visitor), league.is_privileged(it.resident),
                    seeds, *_numbers(it.payoff), *_numbers(it.gain), _known(it.gain.p),
                    _known(adjusted.get((it.visitor, it.resident), float("nan"))),
                )
                for it in standing.cells
            ],
        ),
        "ratings.csv": (
            ("policy", "privileged", "seeds", *_columns("rating"), "share", "stays"),
            [
                (
                    it.policy, league.is_privileged(it.policy), seeds, *_numbers(it.rating), _known(it.share),
                    _known(it.stays),
                )
                for it in standing.ratings
            ],
        ),
    }  # fmt: skip
    for name, (columns, rows) in files.items():
        write_rows(folder / name, columns, rows)
    return [folder / name for name in files]


def _columns(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _numbers(interval: Interval) -> tuple[object, ...]:
    return tuple(_known(number) for number in (interval.estimate, interval.low, interval.high))


def _known(number: float) -> object:
    """Return a number for a CSV file, where one that is not known is empty."""
    return "" if number != number else round(number, 9)


def _signed(interval: Interval) -> str:
    if not interval.known:
        return f"{interval.estimate:+.4f}"
    return f"{interval.estimate:+.4f} [{interval.low:+.4f}, {interval.high:+.4f}]"
