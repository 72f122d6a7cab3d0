"""The simulated clock: how long jobs take, when rounds end, and which events there are."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from math import inf, isclose

from audit.files import Run, micro
from audit.market import World, price

STEPS = (
    "refresh",
    "bid",
    "decision",
    "award",
    "train_start",
    "train_end",
    "upload",
    "aggregate",
    "evaluate",
    "pay",
    "exit",
)
"""The order in which what concerns one service can happen in a round."""


def near(one: float, other: float) -> bool:
    """Whether two times are the same but for the order of additions."""
    return isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)


def jobs(run: Run) -> Iterator[str]:
    """A job computes for D images and uploads; it is dropped if that outlasts the slot, the deadline or the client."""
    world, timeline, rate = World(run), run.scenario["timeline"], run.scenario["clients"]["departure_rate"]
    begins = _begins(run)
    patience = min(timeline.get("slot", inf), timeline.get("deadline", inf))
    for at, row in enumerate(run.offers):
        if row["outcome"] == "outbid":
            continue
        where, number, client = f"offers.csv, line {at + 2}", int(row["round"]), int(row["client"])
        epochs = run.epochs(run.services[row["service"]]["dataset"])
        compute = run.true_size[id(row)] * epochs * timeline["seconds_per_sample"] / world.speed(client)
        whole = compute + timeline["upload_seconds"]
        part = world.leaves(number, client, rate)
        limit = min(patience, inf if part is None else part * whole)
        if (row["outcome"] == "served") != (whole <= limit):
            yield f"{where}: takes {whole} s of {limit} s, and is {row['outcome']}"
        if not near(float(row["start"]), begins[number]):
            yield f"{where}: does not start with the round, though its core is free"
        if not near(float(row["end"]), begins[number] + min(whole, limit)):
            yield f"{where}: does not end {min(whole, limit)} s after the round begins"


def rounds(run: Run) -> Iterator[str]:
    """A round ends with its slot, or with its last job; the makespan is from the first start to the last end."""
    slot, begins = run.scenario["timeline"].get("slot"), _begins(run)
    last = defaultdict(float, begins)
    for row in run.offers:
        if row["end"]:
            last[int(row["round"])] = max(last[int(row["round"])], float(row["end"]))
    for line, row in enumerate(run.rounds, start=2):
        number = int(row["round"])
        end = last[number] if slot is None else max(last[number], begins[number] + slot)
        if not near(float(row["sim_time"]), end):
            yield f"rounds.csv, line {line}: the round should end at {end}"
        served = [offer for offer in run.offers_of[number, row["service"]] if offer["outcome"] == "served"]
        if served:
            span = max(float(offer["end"]) for offer in served) - min(float(offer["start"]) for offer in served)
            if not near(float(row["makespan"] or -1), span):
                yield f"rounds.csv, line {line}: the makespan should be {span}"


def events(run: Run) -> Iterator[str]:
    """Each offer, job, payment, evaluation and exit has its event, at its time and with its amount, and no other."""
    expected: Counter[tuple[str, ...]] = Counter()
    amounts: dict[tuple[str, ...], int] = defaultdict(int)
    begins = _begins(run)
    for number in run.numbers:
        expected[str(number), "refresh", "", "", "", ""] += 1
    for row in run.rounds:
        number, name = row["round"], row["service"]
        if row["status"] in ("left", "waiting"):
            continue
        expected[number, "bid", name, "", "", "any"] += 1
        amounts[number, name] = micro(row["offered"])
        served = 0
        for offer in run.offers_of[int(number), name]:
            place = (name, offer["client"], offer["core"])
            if offer["outcome"] == "outbid":
                continue
            expected[number, "award", *place, offer["payment"]] += 1
            expected[number, "train_start", *place, ""] += 1
            if offer["outcome"] == "served":
                served += 1
                expected[number, "train_end", *place, ""] += 1
                expected[number, "upload", *place, ""] += 1
                expected[number, "pay", name, offer["client"], "", offer["paid"]] += 1
        if served:
            expected[number, "aggregate", name, "", "", row["samples"]] += 1
            expected[number, "evaluate", name, "", "", row["accuracy"]] += 1
        if row["status"] == "reached":
            expected[number, "exit", name, "", "", row["accuracy"]] += 1
    found: Counter[tuple[str, ...]] = Counter()
    decided: dict[tuple[str, ...], int] = defaultdict(int)
    dropped = {(r["round"], r["service"], r["client"]) for r in run.offers if r["outcome"] == "dropped"}
    for row in run.events:
        number, kind, name = row["round"], row["event"], row["service"]
        if kind == "decision":
            decided[number, name] += micro(row["amount"])
        elif kind != "train_end" or (number, name, row["client"]) not in dropped:  # it may have trained before it left
            amount = "any" if kind == "bid" else row["amount"]
            found[number, kind, name, row["client"], row["core"], amount] += 1
    for event in (expected - found).keys() | (found - expected).keys():
        yield f"events.csv: {event} is there {found[event]} times, not {expected[event]}"
    if decided != amounts:
        yield "events.csv: the decisions are not what was offered"
    yield from _times(run, begins)
    yield from _lowest_bids(run)


def _times(run: Run, begins: dict[int, float]) -> Iterator[str]:
    """Yield events at wrong times, or out of order."""
    jobs_of = {(row["round"], row["service"], row["client"]): row for row in run.offers if row["end"]}
    closes: dict[tuple[str, str], float] = defaultdict(float)
    for (number, name, _), row in jobs_of.items():
        closes[number, name] = max(closes[number, name], float(row["end"]))
    world, timeline = World(run), run.scenario["timeline"]
    reached: dict[tuple[str, str, str], int] = {}
    now = 0.0
    for line, row in enumerate(run.events, start=2):
        where, time, kind = f"events.csv, line {line}", float(row["sim_time"]), row["event"]
        if time < now:
            yield f"{where}: time runs backwards"
        now = time
        number, name = row["round"], row["service"]
        begin = begins.get(int(number), -1.0)
        job = jobs_of.get((number, name, row["client"]))
        if kind in ("refresh", "bid", "decision", "award", "train_start"):
            wanted = begin
        elif kind in ("aggregate", "evaluate", "pay", "exit"):
            wanted = closes.get((number, name), begin)
        elif job is None:
            continue  # named already
        elif kind == "upload":
            wanted = float(job["end"])
        else:
            epochs = run.epochs(run.services[name]["dataset"])
            size = run.true_size[id(job)]
            wanted = begin + size * epochs * timeline["seconds_per_sample"] / world.speed(int(row["client"]))
        if not near(time, wanted):
            yield f"{where}: should be at {wanted}"
        # Of one client where it has one in it, else of the service.
        key = number, name, row["client"]
        if STEPS.index(kind) < reached.get(key, 0):
            yield f"{where}: {kind} comes too late"
        reached[key] = STEPS.index(kind)


def _lowest_bids(run: Run) -> Iterator[str]:
    """Yield bid events that are not the lowest bid of all clients; of clients with interests, only bounds are known."""
    lowest: dict[tuple[str, str], int] = {}
    for row in run.offers:
        key = row["round"], row["service"]
        lowest[key] = min(lowest.get(key, micro(row["bid"])), micro(row["bid"]))
    world, clients = World(run), run.scenario["clients"]
    for line, row in enumerate(run.events, start=2):
        if row["event"] != "bid":
            continue
        number, name = int(row["round"]), row["service"]
        if run.clients is None:
            held = ((world.held(number, name, client), client) for client in range(clients["count"]))
            exact = min(price(run, size, emd, number, client) for (size, emd), client in held)
            if micro(row["amount"]) != exact:
                yield f"events.csv, line {line}: the lowest bid should be {exact / 1e6}"
        elif micro(row["amount"]) > lowest.get((row["round"], name), 10**18):
            yield f"events.csv, line {line}: a client bids less than the lowest bid"


def _begins(run: Run) -> dict[int, float]:
    """Return when each round begins: when the one before ends."""
    ends = {int(row["round"]): float(row["sim_time"]) for row in run.rounds}
    return {number: ends.get(number - 1, 0.0) for number in run.numbers}
