"""Each offer and each row of rounds.csv, against the paper's equations and the scenario."""

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from audit.draws import pair, whole
from audit.files import LABELS, MICRO, TEST_IMAGES, Row, Run, micro
from audit.mixes import emd_of, mix_counts

PAY_AS_OFFERED = ("pay-as-offered", "iterated")


def twelve(value: float) -> float:
    """Return a number with the twelve significant digits that logs have."""
    return float(f"{value:.12g}")


@cache
def nearest_emd(size: int, wanted: float) -> float:
    """Return, of the values that eq. (1) can take on ``size`` images of ten labels, the one nearest to the wanted one.

    With s labels above size / 10 that hold T images together, the distance is 2 (T - s size / 10) / size.
    """
    possible = {0.0} if size % LABELS == 0 else set()
    least = size // LABELS
    for above in range(1, LABELS):
        fewest = max(above * (least + 1), size - (LABELS - above) * least)
        possible |= {2.0 * (total * LABELS - above * size) / (LABELS * size) for total in range(fewest, size + 1)}
    return min(possible, key=lambda value: (round(abs(value - wanted), 12), value))


@cache
def quality(size: int, emd: float, eta: tuple[float, ...]) -> float:
    """Return the DQI of a data set: eq. (6)."""
    one, two, three, four, five, six = eta
    alpha = four * math.exp(-(((emd + five) / six) ** 2))
    return alpha - one * math.exp(-two * (three * size) ** alpha)


@cache
def price(run: Run, size: int, emd: float, number: int, client: int) -> int:
    """Return what a data set costs its client in a round, in millionths."""
    cost = run.scenario["clients"]["cost"]
    plain, noise = max(0, round((cost["per_sample"] * size - cost["per_emd"] * emd) * MICRO)), cost.get("noise", 0.0)
    if not noise:
        return plain
    mood = 1.0 + noise * (2.0 * pair(run.meta["seed"], ("cost",), number, 0, client)[0] - 1.0)
    return round(plain * mood)


class World:
    """What the run's seed gives each client in each round."""

    def __init__(self, run: Run) -> None:
        """Read what the world is drawn from; it is drawn as it is asked for."""
        clients = run.scenario["clients"]
        self._seed, self._places = run.meta["seed"], {name: m for m, name in enumerate(run.services)}
        self._concentration = clients.get("label_mix", {}).get("dirichlet")
        # Where labels are drawn, the EMD follows from them, and a size alone is held.
        emds = clients["emd"] if self._concentration is None else [0.0]
        self._pairs = [(size, nearest_emd(size, emd)) for size in clients["data_size"] for emd in emds]
        self._speeds, self._lasting = clients["speed"], clients.get("lasting", {})

    def held(self, number: int, service: str, client: int) -> tuple[int, float]:
        """Return D and the EMD."""
        size, emd = self._pairs[whole(self._seed, *self._drawn(number, service, client))]
        counts = self.mix(number, service, client, size)
        return size, emd if counts is None else emd_of(counts)

    def mix(self, number: int, service: str, client: int, size: int) -> tuple[int, ...] | None:
        """Return how many images of each label a client has; None where the EMD was drawn, not the labels."""
        if self._concentration is None:
            return None
        since = self.since(number, service, client)
        drawn = ("labels", number) if since is None else ("lasting labels", since)
        return mix_counts(size, self._concentration, self._seed, *drawn, self._places[service], client)

    def since(self, number: int, service: str, client: int) -> int | None:
        """Return the round in which a label mix that lasts was drawn; None if it is the round's own."""
        persistence = self._lasting.get("persistence", 0.0)
        if pair(self._seed, ("persistence",), number, self._places[service], client)[0] >= persistence:
            return None
        drift = self._lasting.get("drift", 0.0)
        drifted = (n for n in range(number, 0, -1) if pair(self._seed, ("drift",), n, 0, client)[0] < drift)
        return next(drifted, 0)

    def speed(self, client: int) -> float:
        return float(self._speeds[whole(self._seed, ("speed",), len(self._speeds), 0, 0, client)])

    def leaves(self, number: int, client: int, rate: float) -> float | None:
        """Return the part of its work after which a client leaves; None if it stays."""
        chance, part = pair(self._seed, ("departure",), number, 0, client)
        return part if chance < rate else None

    def _drawn(self, number: int, service: str, client: int) -> tuple[tuple[str], int, int, int, int]:
        since = self.since(number, service, client)
        stream, when = ("quality", number) if since is None else ("lasting", since)
        return (stream,), len(self._pairs), when, self._places[service], client


def equations(run: Run) -> Iterator[str]:
    """Data sizes, EMDs (eq. 1), DQI (eq. 6) and bids are those that the seed and the equations give."""
    world, truth = World(run), run.clients
    for at, row in enumerate(run.offers):
        where = f"offers.csv, line {at + 2}"
        number, service, client = int(row["round"]), row["service"], int(row["client"])
        size, emd = world.held(number, service, client)
        real = row if truth is None else truth[at]
        if (int(real["data_size"]), float(real["emd"])) != (size, emd):
            yield f"{where}: the client holds {size} images with an EMD of {emd}"
        asked = price(run, size, emd, number, client)
        if truth is not None:
            yield from _interest(run, where, row, real, asked)
        elif micro(row["bid"]) != asked:
            yield f"{where}: the bid should be {asked / MICRO}"
        told = int(row["data_size"]), float(row["emd"])
        psi = quality(*told, run.eta(run.services[service]["dataset"]))
        if abs(float(row["dqi"]) - psi) > 1e-11:
            yield f"{where}: the DQI should be {psi}"


def _interest(run: Run, where: str, row: Row, real: Row, cost: int) -> Iterator[str]:
    """Yield what is wrong with a row of clients.csv."""
    if any(row[key] != real[key] for key in ("round", "service", "client", "bid", "paid")) or (
        (row["data_size"], row["emd"]) != (real["reported_size"], real["reported_emd"])
    ):
        yield f"{where}: clients.csv has another offer"
    if micro(real["cost"]) != cost:
        yield f"{where}: the cost should be {cost / MICRO}"
    earned = None if not row["paid"] else micro(row["paid"]) - cost
    if real["profit"] != ("" if earned is None else f"{'-' * (earned < 0)}{abs(earned) / MICRO:.6f}"):
        yield f"{where}: the profit is not what was paid less the cost"
    behaviour = run.scenario["clients"]["behaviour"]
    if behaviour["kind"] == "adaptive":
        markups = behaviour.get("options", {}).get("markups", [0, 0.1, 0.2, 0.4, 0.8])
        if all(abs(micro(row["bid"]) - cost * (1 + markup)) > 0.501 for markup in markups):
            yield f"{where}: the bid is the cost with none of the markups"


def constraints(run: Run) -> Iterator[str]:
    """Eqs. (2) to (5): cores, budgets, payments at least the bids; the K highest payments are served."""
    cores, count = run.scenario["clients"]["cores"], run.scenario["clients"]["count"]
    of_client: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for at, row in enumerate(run.offers):
        where = f"offers.csv, line {at + 2}"
        bid, payment, paid = micro(row["bid"]), micro(row["payment"]), row["paid"]
        of_client[int(row["round"]), int(row["client"])].append(row)
        if not 0 <= int(row["client"]) < count:
            yield f"{where}: unknown client"
        if payment < bid:
            yield f"{where}: the payment is below the bid (eq. 5)"
        if bool(paid) != (row["outcome"] == "served"):
            yield f"{where}: who serves is paid, and nobody else"
        elif paid and not bid <= micro(paid) <= payment:
            yield f"{where}: the price is not between the bid and the payment"
        elif paid and run.mechanism in PAY_AS_OFFERED and micro(paid) != payment:
            yield f"{where}: the price is not the payment"
        if (row["outcome"] == "outbid") != (row["core"] == row["start"] == row["end"] == ""):
            yield f"{where}: who is awarded works on a core, and nobody else"
        if row["outcome"] not in ("served", "outbid", "dropped"):
            yield f"{where}: unknown outcome"
    for (number, client), rows in of_client.items():
        where = f"round {number}, client {client}"
        won = [row for row in rows if row["outcome"] != "outbid"]
        lost = [micro(row["payment"]) for row in rows if row["outcome"] == "outbid"]
        if len({row["service"] for row in rows}) != len(rows):
            yield f"{where}: wanted twice by a service"
        if len(won) > cores or {row["core"] for row in won} != {str(core) for core in range(len(won))}:
            yield f"{where}: more than K jobs, or cores that are not used once each (eq. 2)"
        if run.mechanism in ("pay-as-offered", "uniform-price", "iterated") and lost:
            least = min((micro(row["payment"]) for row in won), default=-1)
            if len(won) < cores or max(lost) > least:
                yield f"{where}: does not serve the K highest payments"
            tied = [row for row in rows if micro(row["payment"]) == least]
            if max(lost) == least:
                yield from _tie(run, where, number, client, tied)
        if run.mechanism == "uniform-price":
            for row in won:
                if row["paid"] and micro(row["paid"]) != max(micro(row["bid"]), *lost, 0):
                    yield f"{where}: the price is not the highest losing payment"


def _tie(run: Run, where: str, number: int, client: int, tied: list[Row]) -> Iterator[str]:
    """Yield whether, of equal payments, others win than those with the lowest draws."""
    places = {name: m for m, name in enumerate(run.services)}
    draws = {
        row["service"]: pair(run.meta["seed"], ("ties",), number, places[row["service"]], client)[0] for row in tied
    }
    order = sorted(tied, key=lambda row: draws[row["service"]])
    outcomes = [row["outcome"] != "outbid" for row in order]
    if outcomes != sorted(outcomes, reverse=True):
        yield f"{where}: of equal payments, another one wins than the draw has"


def budgets(run: Run) -> Iterator[str]:
    """Eq. (4): what a service offers and pays in a round, and in the whole run."""
    left = {name: _total(service) for name, service in run.services.items()}
    for line, row in enumerate(run.rounds, start=2):
        where, service = f"rounds.csv, line {line}", run.services[row["service"]]
        waits = int(row["round"]) < service.get("arrival", 1)
        budget = 0 if waits else min(round(service["budget"] * MICRO), left[row["service"]])
        offers = run.offers_of[int(row["round"]), row["service"]]
        paid = sum(micro(offer["paid"]) for offer in offers if offer["paid"])
        left[row["service"]] -= paid
        if micro(row["budget"]) != budget:
            yield f"{where}: the budget should be {budget / MICRO}"
        if paid > budget:
            yield f"{where}: pays more than its budget (eq. 4)"
        offered = sum(micro(offer["payment"]) for offer in offers)
        if run.mechanism in ("pay-as-offered", "uniform-price") and offered > budget:
            yield f"{where}: offers more than its budget (eq. 4)"


def _total(service: dict[str, float]) -> int:
    return round(service.get("total_budget", 10**9) * MICRO)


def sums(run: Run) -> Iterator[str]:
    """What rounds.csv says of a service's offers is what they add up to; money to the millionth."""
    for line, row in enumerate(run.rounds, start=2):
        where = f"rounds.csv, line {line}"
        offers = run.offers_of[int(row["round"]), row["service"]]
        served = [offer for offer in offers if offer["outcome"] == "served"]
        exact = {
            "wanted": len(offers),
            "served": len(served),
            "refused": len(offers) - len(served),
        }
        money = {
            "offered": sum(micro(offer["payment"]) for offer in offers),
            "spent": sum(micro(offer["paid"]) for offer in served),
        }
        for key, value in exact.items():
            if row[key] != str(value):
                yield f"{where}: {key} should be {value}"
        for key, value in money.items():
            if micro(row[key]) != value:
                yield f"{where}: {key} should be {value / MICRO}"
        if not served:
            if any(row[key] for key in ("samples", "mean_emd", "mean_dqi", "mean_bid", "mean_payment", "makespan")):
                yield f"{where}: means of nobody"
            continue
        if int(row["samples"]) != sum(int(offer["data_size"]) for offer in served):
            yield f"{where}: samples are not those of the served offers"
        for key, of in (("mean_emd", "emd"), ("mean_dqi", "dqi"), ("mean_bid", "bid"), ("mean_payment", "paid")):
            mean = sum(float(offer[of]) for offer in served) / len(served)
            if abs(float(row[key]) - mean) > (5.1e-7 if key in ("mean_bid", "mean_payment") else 1e-12):
                yield f"{where}: {key} should be {mean}"


def progress(run: Run) -> Iterator[str]:
    """Services wait, train, reach their target, and leave; the reward is Omega^accuracy, held from the target on."""
    for name, service in run.services.items():
        target, base = service["target_accuracy"], service["reward_base"]
        held, tested, gone = None, None, False
        rows = [(line, row) for line, row in enumerate(run.rounds, start=2) if row["service"] == name]
        for line, row in rows:
            where, status, accuracy = f"rounds.csv, line {line}", row["status"], float(row["accuracy"])
            waits = int(row["round"]) < service.get("arrival", 1)
            exact, slack = accuracy, 5.1e-7
            if not run.surrogate:
                tests = run.looked_at(TEST_IMAGES[service["dataset"]])
                images = run.looked_at(run.held_out(service["dataset"])) if run.share else tests
                exact, slack = round(accuracy * images) / images, 0.0
                if abs(exact - accuracy) > 5.1e-7:
                    yield f"{where}: the accuracy is no share of {images} images"
                yield from _tested(where, row, tests if run.share else None, tested)
            if (row["dataset"], float(row["target_accuracy"])) != (service["dataset"], target):
                yield f"{where}: another data set or target than the scenario's"
            reached = exact >= target - slack
            wanted = {"waiting"} if waits else {"left"} if gone else {"reached"} if reached else {"training"}
            if slack and not gone and not waits and abs(exact - target) <= slack:
                wanted |= {"training", "reached"}
            if status not in wanted:
                yield f"{where}: is {status} at {accuracy}, with a target of {target}"
            if (gone or not int(row["served"])) and held not in (None, row["accuracy"]):
                yield f"{where}: the accuracy changes, but nobody was served"
            if status in ("waiting", "left") and int(row["wanted"]):
                yield f"{where}: makes offers"
            power = 0.0 if waits else base**target if status in ("reached", "left") else base**exact
            if abs(float(row["reward"]) - power) > 1e-10 * power + power * math.log(base) * slack * (
                status == "training"
            ):
                yield f"{where}: the reward should be {power}"
            held, tested, gone = row["accuracy"], row["test_accuracy"], gone or status == "reached"


def _tested(where: str, row: Row, images: int | None, before: str | None) -> Iterator[str]:
    """Yield what is wrong with the accuracy on test images, which is the accuracy where no images are held out."""
    found = row["test_accuracy"]
    if images is None:
        if found != row["accuracy"]:
            yield f"{where}: the test accuracy is not the accuracy, though no images are held out"
        return
    if abs(round(float(found) * images) / images - float(found)) > 5.1e-7:
        yield f"{where}: the test accuracy is no share of {images} images"
    if not int(row["served"]) and before not in (None, found):
        yield f"{where}: the test accuracy changes, but nobody was served"


def shape(run: Run) -> Iterator[str]:
    """One row for each round and service; the run ends with its last round, or when all have left."""
    names = list(run.services)
    if [(row["round"], row["service"]) for row in run.rounds] != [
        (str(n), name) for n in run.numbers for name in names
    ]:
        yield "rounds.csv does not have one row for each round and service, in order"
    gone = [
        all(row["status"] in ("reached", "left") for row in run.rounds if row["round"] == str(n)) for n in run.numbers
    ]
    if (
        gone[:-1].count(True)
        or (not gone[-1] and len(gone) != run.scenario["rounds"])
        or run.meta["rounds"] != len(gone)
    ):
        yield "the run does not end when it should"
    policy = run.meta["policy"]
    played = {row["policy"] for row in run.rounds}
    if policy != "as-configured" and played != {policy.partition("@")[0]}:
        yield f"the policies {played} are not {policy}"
    if policy == "as-configured" and any(row["policy"] != run.services[row["service"]]["policy"] for row in run.rounds):
        yield "the policies are not the scenario's"
