"""Every number that is painted is the one in the run's files: panel by panel, at all sizes, on drawn runs.

What is wanted is read from the CSV files alone, or worked out by the oracles in ``audit``, which share no code with
the packages. A number on the screen is right if it is the exact one, rounded to as many decimals as are shown.
"""

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from math import isnan
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from textual.pilot import Pilot

import flmarket
from audit.runs import MICRO, Run
from audit.world import World, quality
from scenarios.logs.run_state import RunState
from support.numbers import Checked, Exact, cells_of, lines_of, listed, words_of
from support.screens import until
from tui.app import MarketApp
from tui.panels import gantt as cores
from tui.panels.answers import AnswerPanel, BestLines, WhyTable
from tui.panels.client_grid import LABEL, ClientGrid
from tui.panels.curves import CurvesPanel, HistoryTable
from tui.panels.event_log import EventLines, EventsPanel
from tui.panels.gantt import CoreLines, CoresPanel
from tui.panels.order_book import BookPanel, BookTable, GrowingText
from tui.panels.rivalry import Earnings, Money, RivalryLines, RivalryPanel, RivalsPage, SummaryPage
from tui.panels.services import ServicesTable
from tui.panels.status_line import StatusLine
from tui.screens.market import MarketScreen
from tui.widgets.line_view import GUTTER

TIMES = "\N{MULTIPLICATION SIGN}"
SIZES = ((80, 24), (120, 40), (160, 48), (200, 60))


class Market:
    """A run on the market screen, and what its files say of the round that is shown."""

    def __init__(self, pilot: Pilot[None], screen: MarketScreen, run: Run, checked: Checked) -> None:
        """Watch a screen with a run that is read."""
        self.pilot, self.screen, self.run, self.checked = pilot, screen, run, checked
        self.names, self.world = list(run.services), World(run)
        self._rows = {number: rows.set_index("service") for number, rows in run.rounds.groupby("round")}
        self._offers = {number: list(offers.itertuples()) for number, offers in run.offers.groupby("round")}
        self.learns = run.scenario["clients"]["behaviour"]["kind"] != "truthful"
        self.plain_dqi = run.scenario["market"]["dqi"] == "value" and not run.scenario["market"]["dqi_noise"]

    @property
    def number(self) -> int:
        return self.screen.head.round

    @property
    def rows(self) -> pd.DataFrame:
        """The services' rows of the round."""
        return self._rows[self.number]

    @property
    def offers(self) -> list[Any]:
        """The lines of the round in offers.csv."""
        return self._offers.get(self.number, [])

    def offers_to(self, client: int) -> list[Any]:
        """The offers that a client got, those that hold a core first, by their cores."""
        return sorted((offer for offer in self.offers if offer.client == client), key=lambda offer: offer.core)

    def offer(self, service: str, client: int) -> Any:
        """The offer of a service to a client, if it made one."""
        return next((offer for offer in self.offers_to(client) if offer.service == service), None)

    @property
    def number_of_pairs(self) -> int:
        """Clients times services; 0 where what clients ask or are worth is not known to the oracles."""
        known = self.plain_dqi and not self.learns
        return known * len(self.names) * int(self.run.scenario["clients"]["count"])

    @property
    def offline(self) -> set[int]:
        """The clients that interventions have taken off by now."""
        changes = [it for it in self.run.scenario["interventions"] if it["key"] == "clients.offline"]
        begun = [it["value"] for it in changes if it["round"] <= self.number]
        return set(begun[-1]) if begun else set()

    @property
    def until_now(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The services' rows and the offers of all rounds up to this one."""
        rounds, offers = self.run.rounds, self.run.offers
        return rounds[rounds["round"] <= self.number], offers[offers["round"] <= self.number]

    def cores(self, client: int) -> int:
        """Return how many cores a client has: its group's, or all clients' own."""
        clients, first = self.run.scenario["clients"], 0
        for group in clients.get("groups", []):
            if first <= client < first + group["count"]:
                return int(group.get("cores", clients["cores"]))
            first += group["count"]
        return int(clients["cores"])

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def go_to(self, number: int) -> None:
        await self.press("g", *str(number), "enter")
        assert self.number == number


def cash(*micro: float) -> list[float]:
    return [amount / MICRO for amount in micro]


STATUS = {"training": "▶ training", "reached": "✔ reached", "left": "⏏ left", "waiting": "… waiting"}


async def services(market: Market) -> None:
    await market.press("1")
    numbers, last = market.checked.numbers, market.run.rounds["round"].max()
    for place, cells in cells_of(market.screen.query_one(ServicesTable)):
        row = market.rows.iloc[place]
        known = 1.0 if row.accuracy == row.accuracy else float("nan")
        missed = row.status == "training" and market.number == last
        assert cells["status"].strip() == ("✘ missed" if missed else STATUS[row.status])
        wanted: dict[str, Sequence[Exact]] = {
            "accuracy": [100 * row.accuracy, 100 * row.target_accuracy],
            "spent": cash(row.spent, row.budget),
            "served": [row.served],
            "refused": [row.refused],
            "markup": [row.mean_payment / row.mean_bid if row.mean_bid else None],
            "reward": [row.reward * known],
        }
        if "left" in cells and 0 < market.number_of_pairs <= 200:
            wanted["left"] = [left_on_the_table(market, market.names[place])]
        for key in cells.keys() & wanted.keys():
            numbers("services", cells[key], *wanted[key])


def left_on_the_table(market: Market, service: str) -> float | None:
    """How much more DQI the best set within its budget has than what a service got; None where it is not known."""
    row, clients = market.rows.loc[service], range(market.run.scenario["clients"]["count"])
    if market.run.mechanism != "pay-as-offered" or row.status not in ("training", "reached"):
        return None
    there = [client for client in clients if client not in market.offline]
    gains = [max(0.0, float(asked(market, service, client)["dqi"] or 0)) for client in there]
    prices = [wins_at(market, service, client, float(asked(market, service, client)["bid"] or 0)) for client in there]
    had = float(market.run.served(market.number, service).dqi.clip(lower=0).sum())
    return knapsack(np.array(gains), np.round(MICRO * np.array(prices)), row.budget) - had


def knapsack(gains: np.ndarray, prices: np.ndarray, budget: float) -> float:
    """Return the most that things within a budget are worth: of all sets of one half, each with the best of the other.

    A solver of linear programs is no judge here: it takes what is dearer by a millionth for affordable.
    """

    def sets(part: slice) -> tuple[np.ndarray, np.ndarray]:
        values, costs = np.zeros(1), np.zeros(1)
        for gain, price in zip(gains[part], prices[part], strict=True):
            values, costs = np.append(values, values + gain), np.append(costs, costs + price)
        order = np.argsort(costs)
        return values[order], costs[order]

    middle = len(gains) // 2
    (first, cost), (second, others) = sets(slice(middle)), sets(slice(middle, None))
    best = np.maximum.accumulate(second)
    places = np.searchsorted(others, budget - cost, side="right") - 1
    return float((first + best[places])[places >= 0].max())


async def status(market: Market) -> None:
    words, rows = words_of(market.screen.query_one(StatusLine)), market.rows
    there = rows.status.isin(["training", "reached"]).sum()
    first, _, second = words.partition(" take")
    market.checked.numbers("status", first.rpartition(" of ")[0].rpartition(" ")[2], there)
    sums = second.partition("· intervention")[0]
    market.checked.numbers("status", sums, rows.served.sum(), rows.refused.sum(), *cash(rows.spent.sum()))
    market.checked.numbers("status", first[first.index("round ") :].split()[1].partition("/")[0], market.number)
    if found := re.search(r"clock ([\d.]+) s", first):
        market.checked.numbers("status", found[1], *cash(rows.sim_time.iloc[0]))


async def curves(market: Market) -> None:
    await market.press("2")
    rounds, _ = market.until_now
    for metric in ("accuracy", "reward", "spent", "mean_payment"):
        assert market.screen.query_one(CurvesPanel).metric == metric
        scale = {"accuracy": 100, "reward": 1}.get(metric, 1 / MICRO)
        await market.press("Y")
        _, *lines = market.pilot.app.clipboard.splitlines()
        assert len(lines) == market.number
        for (number, of_round), line in zip(rounds.groupby("round"), lines, strict=True):
            market.checked.numbers("curves", line.replace("\t", " "), int(number), *(scale * of_round[metric]))
        await market.press("v")
    table = market.screen.query_one(HistoryTable)
    for _, cells in cells_of(table) if table.display else ():
        row = market.run.rounds[market.run.rounds["round"] == int(cells["round"])].iloc[market.screen.selected[0]]
        market.checked.numbers("curves", f"{cells['accuracy']} {cells['spent']}", 100 * row.accuracy, *cash(row.spent))
    shown = "\n".join(lines_of(market.screen.query_one(CurvesPanel)))
    if len(market.names) <= 4:
        for place, target in enumerate(market.rows.target_accuracy, 1):
            found = re.search(rf"(?<![\d.]){place} (\d\d(\.\d+)?)(?![\d.])", shown)
            assert found, (place, target, shown)
            market.checked.numbers("curves", found[1], 100 * target)


async def grid(market: Market) -> None:
    await market.press("3")
    view = market.screen.query_one(ClientGrid)
    held = Counter(offer.client for offer in market.offers if offer.core == offer.core)
    for client, line in listed(view):
        label, cells = line[:LABEL], line[LABEL:]
        used = () if "offline" in label else (held[client], market.cores(client))
        market.checked.numbers("clients", label.replace("/", " "), client, *used)
        for place, name in enumerate(market.names):
            cell = cells[place * view._cell : (place + 1) * view._cell]
            if len(cell) < view._cell or cell[-1] == line[-1] == "…":
                continue  # beyond the right edge
            offer = market.offer(name, client)
            if offer is None:
                own = asked(market, name, client)
                if "." not in cell or "bid" in own:  # what is asked, where there is room
                    market.checked.numbers("clients", cell, own.get("bid") if "." in cell else None)
                continue
            core = [] if isnan(offer.core) else [offer.core]
            money = cash(offer.payment if isnan(offer.paid) else offer.paid) if view._cell >= 9 else []
            assert ("●" in cell) == (offer.outcome == "served")
            market.checked.numbers("clients", cell.replace("●", "").replace("!", ""), *core, *money)


async def overview(market: Market) -> None:
    await market.press("3", "h")
    view = market.screen.query_one(ClientGrid)
    for _, line in listed(view):
        first, last = map(int, re.findall(r"\d+", line[:LABEL]))
        outcomes = Counter((offer.service, offer.outcome) for offer in market.offers if first <= offer.client <= last)
        for place, name in enumerate(market.names):
            cell = line[LABEL:][place * view._cell : (place + 1) * view._cell]
            if len(cell) == view._cell and not cell[-1] == line[-1] == "…":
                shown = ["served", *["outbid"] * (view._cell >= 9)]
                words = re.sub(f"[░▒▓█{TIMES}]", " ", cell)
                market.checked.numbers("clients", words, *(outcomes[name, key] or None for key in shown))
    await market.press("h")


def asked(market: Market, service: str, client: int) -> dict[str, Exact]:
    """What a client asks of a service and has for it, as the oracles draw it; nothing of one that learns."""
    if market.learns:
        return {}
    size, emd = market.world.held(market.number, service, client)
    bid = cash(market.world.cost(market.number, service, client))[0]
    own = {"bid": bid, "size": size, "emd": emd}
    return own | ({"dqi": quality(size, emd, market.run.eta(service))} if market.plain_dqi else {})


def wins_at(market: Market, service: str, client: int, bid: float) -> float:
    """What wins a client for sure: its bid where a core is free, else just more than the least rival that has one."""
    payments = sorted((it.payment for it in market.offers_to(client) if it.service != service), reverse=True)
    cores = market.cores(client)
    return max(bid, (payments[cores - 1] + 1) / MICRO) if len(payments) >= cores else bid


def bid_cells(market: Market, panel: str, cells: dict[str, str], service: str, client: int) -> None:
    offer = market.offer(service, client)
    wanted = asked(market, service, client)
    if offer is not None:
        wanted |= {"bid": offer.bid / MICRO, "size": offer.data_size, "emd": offer.emd, "dqi": offer.dqi}
        if offer.outcome == "outbid" and market.run.mechanism == "pay-as-offered" and "…" not in cells.get("why", "…"):
            least = [it.payment for it in market.offers_to(client) if it.core == it.core][-1]
            sums = [least] if offer.payment == least else [offer.payment, least]
            market.checked.numbers(panel, cells["why"], *cash(*sums))
        wanted["offer"] = offer.payment / MICRO
    else:
        assert not cells["offer"].strip()
    if cells.get("price", "").strip() and "bid" in wanted:
        wanted["price"] = wins_at(market, service, client, float(wanted["bid"] or 0))
    for key in cells.keys() & wanted.keys():
        market.checked.numbers(panel, cells[key], wanted[key])


async def book(market: Market) -> None:
    """The book of the chosen service, and that of the chosen client."""
    await market.press("4")
    panel = market.screen.query_one(BookPanel)
    table = panel.query_one(BookTable)
    for _ in range(2):
        service, client = market.screen.selected
        title = str(panel.border_title)
        for place, cells in cells_of(table):
            if panel.by_client:
                bid_cells(market, "book", cells, market.names[table._listed[place]], client)
            else:
                who = int(cells["who"])
                assert who == table._listed[place]
                bid_cells(market, "book", cells, market.names[service], who)
        if not panel.by_client and " left" in title and "left in" not in title and "…" not in title:
            row = market.rows.iloc[service]
            spendable = max(0, row.budget - row.offered)
            market.checked.numbers("book", title.rpartition(", ")[2], *cash(spendable, row.budget))
        reason = words_of(panel.query_one(GrowingText))
        if (data := reason.partition("Its data: ")[2]) and "DQI" in data:
            bid = table.bid(table.cursor)
            wanted = asked(market, market.names[bid.service], bid.client)
            values = re.match(r"D (\S+), EMD (\S+), DQI (\S+)\.", data)
            for key, shown in zip(("size", "emd", "dqi"), values.groups() if values else (), strict=False):
                if key in wanted:
                    market.checked.numbers("book", shown, wanted[key])
        await market.press("b")


async def events(market: Market) -> None:
    await market.press("5", "ctrl+home")
    view, logged = market.screen.query_one(EventLines), market.run.events
    happened = [*logged[logged["round"] == market.number].itertuples()]
    assert f"· {len(happened)}, round {market.number}" in str(market.screen.query_one(EventsPanel).border_title)
    lines = [line for _, line in listed(view)]
    times = lines[0].index(".") + 3  # cells, which are empty where an event goes on
    told: list[str] = []
    for line in lines:
        if line[:times].strip():
            told.append(line.strip())
        else:
            told[-1] += " " + line.strip()
    for line, words in zip(happened, told[:-1], strict=False):  # the last may go on below
        amount = {"evaluate": 100, "exit": 100}.get(line.event, 1) * line.amount
        who = {
            "award": [line.client, line.core, amount],
            "train_start": [line.client, line.core],
            "train_end": [line.client],
            "upload": [line.client],
        }.get(line.event, [line.client, amount])
        assert line.service != line.service or line.service in words
        market.checked.numbers("events", words.replace(str(line.service), ""), *cash(line.sim_time), *who)


async def gantt(market: Market) -> None:
    await market.press("6")
    view = market.screen.query_one(CoreLines)
    jobs = sorted((it for it in market.offers if it.start == it.start), key=lambda it: (it.client, it.core))
    title = str(market.screen.query_one(CoresPanel).border_title)
    market.checked.numbers("cores", title.partition("·")[2], len(jobs))
    if not jobs:
        return
    first, last = min(job.start for job in jobs), max(job.end for job in jobs)
    head = lines_of(view)[0]
    if "→" in head:
        market.checked.numbers("cores", head.replace("←", " "), *cash(first, last - first, last))
    room = len(head) - GUTTER - cores.LABEL
    for place, line in listed(view):
        job = jobs[place]
        again = place and jobs[place - 1].client == job.client
        market.checked.numbers("cores", line[:10], *[job.client] * (not again), job.core)
        drawn = line[cores.LABEL :].partition(" ! ")[0].rstrip()
        if took := re.search(r" ([\d.]+) s$", drawn):
            market.checked.numbers("cores", took[1], *cash(job.end - job.start))
            drawn = drawn[: took.start()].rstrip()
        begin = len(drawn) - len(drawn.lstrip())
        for cell, moment in ((begin, job.start), (len(drawn), job.end)):
            assert abs(cell - room * (moment - first) / max(1, last - first)) <= 1, (line, job)


async def turn_to(market: Market, page: type) -> RivalryLines:
    await market.press("7")
    panel = market.screen.query_one(RivalryPanel)
    for _ in range(4):
        if panel.kind is not page:
            await market.press("v")
    await until(market.pilot, lambda: "reading round" not in str(panel.border_title))
    assert panel.kind is page
    return panel.query_one(RivalryLines)


def first_page(view: RivalryLines) -> Iterator[tuple[int, str]]:
    """Yield the lines of the page that was turned to, without labels and bars; further pages may stand below it."""
    page = view.pages[0]
    label = page.named if isinstance(page, SummaryPage) else page.label
    for place, line in listed(view):
        if place < page.count:
            yield place, re.sub("[━╌]", " ", line[label:])


async def rivals(market: Market) -> None:
    view = await turn_to(market, RivalsPage)
    rounds, offers = market.until_now
    if market.run.mechanism != "pay-as-offered":
        for place, words in first_page(view):
            refused = rounds.refused[rounds.service == market.names[place]].sum()
            market.checked.numbers("rivalry", words, refused)
        return
    times, margins = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for _, of_one in offers.groupby(["round", "client"]):
        holding = of_one[of_one.core.notna()].sort_values("core")
        for offer in of_one[of_one.outcome == "outbid"].itertuples():
            pair = holding.service.iloc[-1], offer.service
            times[pair] += 1
            margins[pair] += holding.payment.iloc[-1] - offer.payment
    for place, cells in first_page(view):
        name = market.names[place]
        for other_place, other in enumerate(market.names):
            cell, pair = cells[13 * other_place : 13 * (other_place + 1)], (name, other)
            if len(cell) == 13:
                known = [times[pair], cash(margins[pair] / times[pair])[0]] if times[pair] else []
                market.checked.numbers("rivalry", cell.replace(TIMES, " "), *known)
        if total := cells[13 * len(market.names) :].partition(TIMES)[0].strip():
            every = sum(times[name, other] for other in market.names)
            market.checked.numbers("rivalry", total, every or None)


async def money(market: Market) -> None:
    view = await turn_to(market, Money)
    rounds, _ = market.until_now
    sums = rounds.groupby("service", sort=False)[["spent", "served", "refused", "offered"]].sum()
    sums.loc["market"] = sums.sum()
    final = 100 * market.rows.test_accuracy.fillna(0)
    came = set(rounds[rounds.status != "waiting"].service)
    final["market"] = final[[name in came for name in final.index]].sum()  # of those that have come
    wasted = _wasted(market)
    for place, line in first_page(view):
        row, name = sums.iloc[place], sums.index[place]
        price = cash(row.spent / final[name]) if final[name] else []
        offered = row.spent + wasted[name]
        share = [100 * wasted[name] / offered] if offered else []
        own = [*cash(row.spent), *price, row.served, row.refused, *cash(wasted[name]), *share]
        market.checked.numbers("rivalry", line, *own)


def _wasted(market: Market) -> dict[str, float]:
    """What each service offered and did not spend, within the budgets of the rounds."""
    rounds, _ = market.until_now
    lost = rounds[["offered", "budget"]].min(axis=1) - rounds.spent
    wasted = {name: lost[rounds.service == name].sum() for name in market.names}
    return wasted | {"market": sum(wasted.values())}


async def earnings(market: Market) -> None:
    view = await turn_to(market, Earnings)
    _, offers = market.until_now
    paid = offers[offers.outcome == "served"].groupby("client").paid.agg(["sum", "size"])
    earned = paid.reindex(range(market.run.scenario["clients"]["count"]), fill_value=0)
    before = float("inf")
    clients = [int(line.split()[0]) for place, line in listed(view) if place < view.pages[0].count]
    for (_, line), client in zip(first_page(view), clients, strict=True):
        amount = earned["sum"][client]
        assert amount <= before
        before = amount
        market.checked.numbers("rivalry", line, *cash(amount), earned["size"][client])
    values = np.sort(earned["sum"].to_numpy())
    gini = np.abs(values[:, None] - values).mean() / (2 * values.mean()) if values.sum() else 0.0
    title = str(market.screen.query_one(RivalryPanel).border_title)
    if "Gini" in title and "…" not in title:
        market.checked.numbers("rivalry", title.partition("Gini ")[2].partition(" ")[0], gini)


async def summary(market: Market) -> None:
    """The whole run's, whatever round is shown, as it is over."""
    view = await turn_to(market, SummaryPage)
    rounds = market.run.rounds
    for place, line in first_page(view):
        if place >= len(market.names):
            break
        own = rounds[rounds.service == market.names[place]]
        met, final = own[own.status == "reached"]["round"], 100 * own.test_accuracy.iloc[-1]
        price = cash(own.spent.sum() / final) if final else []
        market.checked.numbers("rivalry", line, *met, final, *cash(own.spent.sum()), *price)


async def why(market: Market) -> None:
    await market.press("4", "W", "8")
    panel = market.screen.query_one(AnswerPanel)
    client, table = market.screen.selected[1], panel.query_one(WhyTable)
    for place, cells in cells_of(table):
        bid_cells(market, "answers", cells, market.names[table._listed[place]], client)


async def best(market: Market) -> None:
    await market.press("4", "B", "8")
    panel = market.screen.query_one(AnswerPanel)
    said = panel.query_one(GrowingText)
    await until(market.pilot, lambda: said.render() and "being worked out" not in str(said.render()))
    view, service = panel.query_one(BestLines), market.names[market.screen.selected[0]]
    served = market.run.served(market.number, service).set_index("client")
    if not view.count or market.learns or not market.plain_dqi:
        return
    [(_, got), (_, possible), *_] = listed(view)
    had = served.dqi.clip(lower=0).sum()
    whole = {client: line for place, line in enumerate(view._lines) if (client := line[1]) is not None}
    chosen = [client for client, (line, _) in whole.items() if "\N{MINUS SIGN}" not in line.plain]
    dqi = sum(max(0.0, float(asked(market, service, client)["dqi"] or 0)) for client in chosen)
    market.checked.numbers("answers", got[30:], had, 100 * had / dqi if dqi else 0.0)
    market.checked.numbers("answers", possible[30:], dqi, dqi - had)
    for place, line in listed(view):
        if (client := view._lines[place][1]) is None:
            continue
        own = asked(market, service, client)
        bid = float(own["bid"] or 0)
        paid = cash(served.paid[client]) if client in served.index else []
        price = [wins_at(market, service, client, bid)] if client in chosen else []
        words = re.sub("^ ?[+\N{MINUS SIGN}] *", "", line)
        market.checked.numbers("answers", words, client, own["dqi"], bid, *paid, *price)
    words, row = str(said.render()), market.rows.loc[service]
    cost = sum(wins_at(market, service, client, float(asked(market, service, client)["bid"] or 0)) for client in chosen)
    market.checked.numbers(
        "answers", re.sub(r"[()]|\.(?= |$)|" + re.escape(service), " ", words),
        len(served), had, *cash(row.spent), len(chosen), dqi, dqi - had, cost, *cash(row.budget),
    )  # fmt: skip


PANELS: Sequence[Callable[[Market], Coroutine[Any, Any, None]]] = (
    services, status, curves, grid, overview, book, events, gantt, rivals, money, earnings, summary, why, best,
)  # fmt: skip


@asynccontextmanager
async def shown(run: Run, size: tuple[int, int]) -> AsyncIterator[Market]:
    app = MarketApp(out=run.path, folder=run.path)
    async with app.run_test(size=size) as pilot:
        session = app.runs.open(run.path)
        app.show_market(session)
        await until(pilot, lambda: session.state is RunState.COMPLETE and app.screen.query(ServicesTable))
        assert isinstance(app.screen, MarketScreen)
        yield Market(pilot, app.screen, run, Checked())


async def look(market: Market, draw: Random) -> None:
    """Look at every panel in a drawn round, with a drawn service and client."""
    await market.go_to(draw.randint(1, market.run.meta["rounds"]))
    await market.press("1", "ctrl+home", *["down"] * draw.randrange(len(market.names)))
    await market.press(
        "3", "ctrl+home", *["down"] * draw.randrange(1, min(20, market.run.scenario["clients"]["count"]))
    )
    for panel in PANELS:
        await panel(market)


SURROGATE: dict[str, Any] = {"training.backend": "surrogate"}
DISTURBED = SURROGATE | {
    "clients.cores": 2,
    "timeline.deadline": 8, "timeline.slot": 9, "clients.departure_rate": 0.2, "clients.speed": [0.5, 1.0, 2.0],
    "clients.groups": [{"name": "servers", "count": 3, "data_size": [700, 900], "emd": [0.2], "cores": 1}],
}  # fmt: skip
OFFLINE = [{"round": 5, "key": "clients.offline", "value": [0, 3]}]
MARKETS: dict[str, tuple[str, dict[str, Any], str]] = {
    "paper": ("paper", SURROGATE, "hqfa"),
    "a pair of cores": ("paper-cores", SURROGATE, "lcfa"),
    "eight services": ("scarce", SURROGATE, "random"),
    "departures": ("scarce", DISTURBED, "pacing"),
    "arrivals": ("changing", {"interventions": OFFLINE}, "hqfa"),
    "secrets": ("private", {}, "random"),
    "learning clients": ("interests", {"rounds": 40}, "hqfa"),
    "mechanisms": ("mechanisms", {}, ""),
    "many clients": ("crowd", SURROGATE | {"rounds": 6, "clients.count": 150}, ""),
}
"""Scenarios with what is changed of them, and the policy, if it is not the scenario's."""


def played(out: Path, name: str, seed: int, rounds: int | None = None) -> list[Run]:
    """Play a market in files: one run for each point of its sweep."""
    scenario, changes, policy = MARKETS[name]
    runs = flmarket.run(
        flmarket.load(scenario, changes), [policy] if policy else (), [seed], rounds=rounds, out=out, workers=0,
        progress=False,
    )  # fmt: skip
    return [Run(path) for path in runs.paths]


@pytest.mark.slow
async def test_the_numbers_of_every_panel_are_those_of_the_files(tmp_path: Path) -> None:
    """The fast tier looks once, in one size; see below."""
    [run] = played(tmp_path, "paper", 57, rounds=20)
    async with shown(run, (200, 60)) as market:
        await look(market, Random(57))  # noqa: S311 - where to look
    assert market.checked.total > 400
    assert len(market.checked.counts) == 9


@pytest.mark.slow
@pytest.mark.parametrize(("place", "name"), enumerate(MARKETS))
async def test_in_drawn_rounds_of_drawn_runs_at_all_sizes(
    app: MarketApp, tmp_path: Path, place: int, name: str
) -> None:
    """Each market at two sizes, with drawn seeds, points of its sweep, rounds, services and clients."""
    draw = Random(f"57 {name}")  # noqa: S311 - where to look
    runs = played(tmp_path, name, draw.randrange(1000))
    counts = Counter[str]()
    for size in (SIZES[place % 4], SIZES[(place + 1) % 4]):
        async with shown(draw.choice(runs), size) as market:
            await look(market, draw)
        counts += market.checked.counts
    assert sum(counts.values()) > 400
    assert len(counts) == 9
