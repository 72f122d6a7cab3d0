"""The leaderboard and one method's results, as tables and as an HTML page."""

import html
from collections.abc import Sequence

from flmarket.benchmark.suite.scoring import SuiteStanding, against_zero
from flmarket.core.text import counted, printable
from flmarket.core.text_table import TextTable, html_document
from learning.statistics.intervals import FEWEST, Interval
from scenarios.suite.frozen import MODES, RESIDENT, VISITOR, Suite

_HEADER = [
    "policy", "score", "resident", "visitor", "against the best rival: resident", "visitor", "visitor, contested",
    "worst market, resident", "trainings",
]  # fmt: skip


def leaderboard(standings: Sequence[SuiteStanding], title: str = "Leaderboard") -> TextTable:
    """Return a line for each method."""
    rows = []
    for it in standings:
        worst = it.worst(RESIDENT)
        rows.append(
            [
                name(it),
                *(_cell(it.score(mode), "z.3f") for mode in (None, *MODES)),
                *(_cell(it.difference(mode), "+z.4f") for mode in MODES),
                _cell(it.difference(VISITOR, contested=True), "+z.4f"),
                "" if worst is None else f"{worst.market.name} {worst.differences.mean():+z.4f}",
                str(it.trainings),
            ]
        )
    return TextTable(title, _HEADER, rows)


def markets(standings: Sequence[SuiteStanding], mode: str) -> TextTable:
    """Return the score of each method in each market."""
    cells = [{it.market.name: f"{it.scores.mean():z.2f}" for it in standing.chosen(mode)} for standing in standings]
    played = dict.fromkeys(market for scores in cells for market in scores)
    rows = [[market, *(scores.get(market, "") for scores in cells)] for market in played]
    return TextTable(f"Scores as {mode}s", ["market", *map(name, standings)], rows)


def details(standing: SuiteStanding) -> TextTable:
    """Return what a method reached in each market, and what it is measured by."""
    header = ["market", "mode", "AUC", "random", "reference", "score", "best rival", "AUC - best rival"]
    rows = []
    for it in standing.results:
        difference = _cell(against_zero(it.differences), "+z.4f")
        if standing.trainings > 1:
            difference += f", worst training {it.differences.mean(axis=1).min():+z.4f}"
        rows.append(
            [
                it.market.name,
                it.mode,
                f"{it.auc.mean():.4f}",
                f"{it.floor.mean():.4f}",
                f"{it.reference.mean():.4f} {it.reference_name}",
                _cell(against_zero(it.scores), "z.3f"),
                f"{it.rival.mean():.4f} {it.rival_name}",
                difference,
            ]
        )
    return TextTable(f"{standing.method} in each market", header, rows)


def introduction(standings: Sequence[SuiteStanding], suite: Suite, part: str = "") -> list[str]:
    """Return what must be known to read the tables, one paragraph each; ``part`` names what counts, if not all."""
    compared = "this part" if part else "the suite"
    text = [
        f"Suite version {suite.version}, digest {suite.digest[:16]}. A score of 0 is random, 1 the privileged "
        "reference; means over markets with 95 % intervals over the seeds, training and market seeds crossed; fewer "
        f"than {FEWEST} seeds have none. Against the best rival: AUC minus that of the best unprivileged reference of "
        "each market and mode."
    ]
    if any(it.privileged for it in standings):
        text.append("Policies marked * see what the paper hides from services.")
    if part:
        text.append(f"Only a part of the suite is compared: {part}.")
    whole = standings[0].wanted
    if partly := [it for it in standings if it.missing]:
        lacking = ", ".join(f"{it.method} lacks {it.missing}" for it in partly)
        text.append(
            f"Marked †: not all of {compared} is played, so scores are of other markets or seeds. Of its "
            f"{counted(whole, 'result')}, one for each market and mode with all seeds, {lacking}."
        )
    else:
        text.append(f"All of {compared} is played: {whole} of {whole} results, one for each market and mode.")
    return text


def tables(standings: Sequence[SuiteStanding]) -> list[TextTable]:
    """Return the leaderboard, and the scores by market."""
    return [leaderboard(standings), *(it for mode in MODES if (it := markets(standings, mode)).rows)]


def page(standings: Sequence[SuiteStanding], suite: Suite, made_by: str, part: str = "") -> str:
    """Return the leaderboard as one self-contained HTML page, each method's results folded below it."""
    parts = ["<h1>flmarket suite</h1>"]
    parts += [f"<p>{html.escape(text)}</p>" for text in introduction(standings, suite, part)]
    parts += [f"<h2>{it.title}</h2>{it.html()}" for it in tables(standings)]
    parts.append("<h2>Each policy</h2>")
    for it in standings:
        parts.append(f"<details><summary>{html.escape(name(it))}</summary>{details(it).html()}</details>")
    parts.append(f"<h2>Markets</h2>{contents(suite).html()}")
    parts.append(f"<h2>Made by</h2><pre>{html.escape(made_by)}</pre>")
    return html_document("flmarket suite", parts)


def contents(suite: Suite) -> TextTable:
    """Return what the suite's markets are."""
    header = ["market", "kind", "services", "clients x cores", "rounds", "contested", "what it is for"]
    rows = []
    for market in suite.markets.values():
        it = market.scenario
        sizes = [str(len(it.services)), f"{it.clients.count} x {it.clients.cores}", str(it.rounds)]
        rows.append([market.name, market.kind, *sizes, "yes" if market.contested else "", it.description])
    return TextTable("Markets", header, rows)


def name(standing: SuiteStanding) -> str:
    """Return a method's name with its marks."""
    return printable(standing.method) + "*" * standing.privileged + "†" * (standing.missing > 0)


def _cell(interval: Interval | None, form: str) -> str:
    return "" if interval is None else interval.text(form)
