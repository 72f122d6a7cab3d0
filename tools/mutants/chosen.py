"""Mutants that are chosen, not drawn: a rule of each thing that plug-ins can change is broken, and a test must see it.

The rules are those of mechanisms that settle, count deliveries or pool budgets; groups of clients; costs; aggregators;
and measures.
"""

from pathlib import Path
from typing import NamedTuple


class Chosen(NamedTuple):
    """A piece of a module, which occurs once in it, what it becomes, and the files of tests that must find that."""

    module: str
    right: str
    wrong: str
    tests: tuple[str, ...]

    def source(self, root: Path) -> str:
        """Return the mutated module.

        Raises:
            ValueError: the module does not have the piece, or has it more than once.
        """
        text = (root / self.module).read_text(encoding="utf-8")
        if text.count(self.right) != 1:
            raise ValueError(f"{self.module} has {self.right!r} {text.count(self.right)} times, not once")
        return text.replace(self.right, self.wrong)


_MECHANISM, _CLEARING, _LEDGER, _MARKET = "des/mechanism.py", "des/clearing.py", "des/ledger.py", "des/market.py"
_COSTS, _MEASURES = "des/cost.py", "flmarket/analysis/results/measures.py"
_SETTLED, _POOLED = ("tests/des/test_settlement.py",), ("tests/des/test_platform_budget.py",)
_LOGS, _SHOWN = ("tests/scenarios/test_settlement.py",), ("tests/flmarket/analysis/results/test_measures.py",)
_MIXED, _MIXTURE, _COST = ("tests/des/clients/test_mixture.py",), "des/clients/mixture.py", ("tests/des/test_cost.py",)
_AGGREGATED, _RULES = ("tests/fl/training/test_aggregation.py",), "fl/training/aggregators"
_ONGOING, _WORK = "des/ongoing.py", ("tests/des/test_ongoing.py",)
_TIMELINE, _EVENTS = "des/timeline.py", ("tests/des/test_event_log.py",)
_CLOCK, _PEOPLE = ("tests/des/test_clock.py",), "des/clients/population.py"
_PLAYED = ("tests/scenarios/test_continuous.py",)
_SCHEDULE, _VERIFY = "des/schedule.py", "flmarket/analysis/verification"
_COMES = ("tests/scenarios/test_presence.py",)
_CURVES = ("tests/fl/surrogate/test_learning_curves.py",)
_TRIGGERED = ("tests/fl/training/test_triggers.py",)
_HIRED, _CONTRACTS, _TURNS = "des/contracts.py", ("tests/des/test_contracts.py",), ("tests/des/test_turns.py",)
_STREAMED, _SCHEDULER = ("tests/scenarios/test_streams.py",), "des/mechanisms/scheduler.py"
_ORDERED = ("tests/des/mechanisms/test_scheduler.py",)

CHOSEN = (
    # prices after delivery
    Chosen(_MECHANISM, "prices = np.where(deliveries.delivered, whole, 0)", "prices = whole", _SETTLED),
    Chosen(_MECHANISM, "((prices < least) | (prices > most))", "(prices > most)", _SETTLED),
    Chosen(_MECHANISM, "((prices < least) | (prices > most))", "(prices < least)", _SETTLED),
    Chosen(_MECHANISM, "least = np.zeros_like(prices) if mechanism.below_bid else bids", "least = bids", _SETTLED),
    Chosen(_MECHANISM, "if prices.sum() > (budget := int(whole)):", "if (budget := int(whole)) < 0:", _SETTLED),
    Chosen(_MECHANISM, "if mechanism.settles_together else book", "if False else book", _SETTLED),
    Chosen(_MARKET, "if not self.mechanism.settles_together:", "if True:", _SETTLED),
    Chosen("flmarket/analysis/verification/time_rules.py", "np.where(late, values,", "np.where(~late, values,", _LOGS),
    # models that travel over bandwidths
    Chosen("des/clock.py", "_BYTE = 8e-6", "_BYTE = 1e-6", _CLOCK),
    Chosen(_CLEARING, "compute + self._download.of(size, clients)", "compute + self._upload.of(size, clients)", _CLOCK),
    Chosen(_PEOPLE, "spec.devices else purpose", 'spec.devices else "speed"', _CLOCK),
    Chosen(_PEOPLE, '"speed" if spec.devices else purpose', "purpose", ("tests/scenarios/test_devices.py",)),
    # clients that come and go
    Chosen(_SCHEDULE, "> (round_ - 1) * self._period", "> round_ * self._period", _WORK),
    Chosen(_SCHEDULE, 'start, side="right")', 'start, side="left")', ("tests/des/test_schedule.py",)),
    Chosen(_SCHEDULE, "~there & (", "(", ("tests/des/test_schedule.py",)),
    Chosen(_SCHEDULE, "if self._ends_work else NEVER", "", _WORK),
    Chosen(_CLEARING, "there = (c for c in there if online.is_there(c, now))", "pass", _WORK),
    Chosen(_ONGOING, "if (freed or came) and clock", "if freed and clock", _WORK),
    Chosen(f"{_VERIFY}/ongoing_work.py", "if self._goes(it) > self._now]", "if True]", _COMES),
    Chosen(f"{_VERIFY}/ongoing_work.py", "if self._now < it[0] < until)", "if False)", _COMES),
    Chosen(f"{_VERIFY}/ongoing_work.py", 'offline_work == "lost"', 'offline_work == "gone"', _COMES),
    Chosen(f"{_VERIFY}/round_conditions.py", "last, begin, end = last - 1,", "last, begin, end = last,", _COMES),
    # services that come and go, and the platform's orders
    Chosen("scenarios/stays.py", "first = 1 + -(-came // slot)", "first = 1 + came // slot", _STREAMED),
    Chosen("scenarios/stays.py", "came + to_micro(service.patience)", "to_micro(service.patience)", _STREAMED),
    Chosen("des/service.py", "round_ >= spec.last", "round_ > spec.last", _STREAMED),
    Chosen(_CLEARING, "stand = [standing.terms[row][1]", "stand = [0 * row", _STREAMED),
    Chosen(_SCHEDULER, "return demand", "return -demand", _ORDERED),
    Chosen(_SCHEDULER, "<= len(queue[other]) * own", "<= len(queue[other]) * theirs", _ORDERED),
    Chosen(_SCHEDULER, "taken = (owner == other) & able[g]", "taken = owner == other", _ORDERED),
    # work that outlasts rounds
    Chosen(_TIMELINE, "if it[0] > clock.now)", "if it[0] >= clock.now)", _WORK),
    Chosen(_TIMELINE, "(end, 1, trained, 0, 0, self._begun, job)", "(end, 1, 0, 0, 0, self._begun, job)", _WORK),
    Chosen(_TIMELINE, "(time, 1, time, depth, cause, number, follow)", "(time, 0, 0, 0, 0, number, follow)", _EVENTS),
    Chosen(_ONGOING, "came) and clock.now != until and not decided", "came) and not decided", _WORK),
    Chosen(_ONGOING, "clock.now != until and not decided", "clock.now != until", _WORK),
    Chosen(_ONGOING, "if work.round < number:", "if True:", _WORK),
    Chosen(_ONGOING, "paid = price if job.outcome is Outcome.SERVED else 0.0", "paid = price", _WORK),
    Chosen("des/round_state.py", "(job.end or 0) <= end", "True", _WORK),
    Chosen("learning/policies/resolving.py", "feedback.paid + feedback.promised", "feedback.paid", _PLAYED),
    Chosen("des/reward.py", "(1 - gamma**it) / (1 - gamma)", "1.0", _PLAYED),
    Chosen("des/reward.py", "gamma ** (length + np.arange(int(left)))", "gamma ** (1 + np.arange(int(left)))", _PLAYED),
    Chosen(
        "learning/mahdrl/paper.py", "1.0 - self.settings.discount ** (feedback.length - 1.0)", "0.0",
        ("tests/learning/mahdrl/test_paper.py",),
    ),
    Chosen(_ONGOING, '("free", freed or came)', '("model", freed or came)', _WORK),
    Chosen(_ONGOING, '("free", freed or came)', '("free", freed)', _WORK),
    Chosen(_ONGOING, "if until is not None and not decided:", "if until is not None:", _WORK),
    Chosen(_ONGOING, "- budget * self._last // self._slot", "- budget * (self._last // self._slot)", _WORK),
    Chosen(_CLEARING, "if freed is not None or now % self._slot:", "if freed is not None:", _WORK),
    Chosen("des/participation.py", "budgets[spec.name] if cap is None else cap)", "cap or 2**62)", _WORK),
    Chosen(_ONGOING, "mask[waiting] = False", "pass", _WORK),
    Chosen(_ONGOING, "self._busy[m, job.client] = True", "pass", _WORK),
    Chosen(_ONGOING, "self._busy[m, job.client] = False", "pass", _WORK),
    Chosen(_ONGOING, "self._begun_with[m] -= work.model", "pass", _WORK),
    Chosen(_ONGOING, "made - it.model) for it in arrived", "0) for it in arrived", _WORK),
    Chosen(_ONGOING, "ledger.forfeit(job.service, job.price)", "ledger.pay_committed(job.service, 0, 1)", _WORK),
    Chosen(_ONGOING, "if self._shares[work.m](stale) > 0:", "if True:", _WORK),
    Chosen(_ONGOING, "made + 1, self._working[m]", "made + 1, 0", _WORK),
    Chosen(_ONGOING, "self._late[m] -= work.model < self.models[m]", "pass", _WORK),
    Chosen(_CLEARING, "free[client] -= len(cores)", "pass", _WORK),
    Chosen(_CLEARING, "free[client] -= 1", "pass", _WORK),
    Chosen(_CLEARING, "free[client] += 1", "pass", _WORK),
    Chosen(_CLEARING, "rows[client].remove(row)", "pass", _WORK),
    Chosen(_MARKET, "if over := self._is_last(number):", "if over := False:", _WORK),
    Chosen(_MARKET, "self._slot_of(number + 1) > slots", "self._slot_of(number + 1) >= slots", _WORK),
    Chosen(_MARKET, "slots - self.ongoing.slots(report.start) - report.length", "slots - report.round", _WORK),
    Chosen(_MARKET, 'if "free" in self._timeline.decide:', "if False:", _WORK),
    Chosen("des/log_records.py", "served, dropped = served | late, dropped & ~late", "pass", _WORK),
    Chosen(_LEDGER, "account.granted -= left", "pass", ("tests/des/test_participation.py",)),
    Chosen("fl/training/trigger.py", "if staleness == 0 and share == 1.0:", "if staleness == 0:", _TRIGGERED),
    Chosen("fl/training/triggers/fedasync.py", "astype(np.float64) - old)", "astype(np.float64) - begun)", _TRIGGERED),
    Chosen("fl/surrogate/learning_curves.py", "-stale.age), part * age", "-stale.age), age", _CURVES),
    Chosen("fl/surrogate/learning_curves.py", "power(1.0 + age, -stale.age)", "power(1.0 + age, stale.age)", _CURVES),
    # what a mechanism sees
    Chosen(_MECHANISM, "record[(0, *places)] += 1", "record[(0, *places)] += its.delivered", _SETTLED),
    Chosen(_MECHANISM, "record[(1, *places)] += its.delivered", "record[(1, *places)] += 1", _SETTLED),
    Chosen(_CLEARING, 'None if record is None else read_only(np.array(record, dtype=np.int64))', "None", _SETTLED),
    Chosen(_CLEARING, "[inf if it is None else it for it in left]", "[inf for it in left]", _SETTLED),
    Chosen(_MARKET, "tuple([self.ledger.left(name) for name in self._names])", "(None,) * len(self._names)", _SETTLED),
    # one budget for all services
    Chosen(_MECHANISM, "sum(spent) > (whole := sum(book.budgets.tolist()))", "(whole := 0)", _POOLED),
    Chosen(_MECHANISM, "clearing.price[deliveries.offers].sum() if", "book.budgets.sum() if", _POOLED),
    Chosen(_CLEARING, "if m in of else 0", "if m >= 0 else 0", _POOLED),
    Chosen(_LEDGER, "min(need - account.held, other.held - kept)", "min(need - account.held, other.held)", _POOLED),
    Chosen(_LEDGER, "other.granted - amount", "other.granted", _POOLED),
    Chosen("flmarket/analysis/verification/row_rules.py", "pooled & over[order]", "pooled & ~pooled", _LOGS),
    # groups of clients
    Chosen(_MIXTURE, "read_only(costs[:, part.clients])", "read_only(costs[:, : len(part.clients)])", _MIXED),
    Chosen(_MIXTURE, "mine = np.isin(of_all.clients, self.clients)", "mine = of_all.clients >= 0", _MIXED),
    Chosen(_MIXTURE, "np.max([high for _, high in ends], axis=0)", "ends[0][1]", _MIXED),
    # costs
    Chosen("des/costs/energy.py", "work.speed * work.speed", "work.speed", _COST),
    Chosen("des/costs/quality.py", "exp(-work.emd)", "exp(work.emd)", _COST),
    Chosen(_COSTS, "low + (high - low) * draws", "low + high * draws", _COST),
    Chosen(_COSTS, "services if self.per_service else 1", "services", _COST),
    Chosen(_COSTS, "amounts.min() < 0", "amounts.max() < 0", _COST),
    # aggregators
    Chosen(f"{_RULES}/krum.py", "clients - attackers - 3", "clients - attackers - 2", _AGGREGATED),
    Chosen(f"{_RULES}/trimmed_mean.py", "models[cut : len(models) - cut]", "models[cut:]", _AGGREGATED),
    Chosen(f"{_RULES}/median.py", "(clients - 1) // 2 :", "clients // 2 :", _AGGREGATED),
    Chosen(f"{_RULES}/norm_clip.py", "min(1.0, self._norm / length)", "self._norm / length", _AGGREGATED),
    # contracts over rounds, and clients one after another
    Chosen(_HIRED, "it.price * (it.last - number) * self._fee // MICRO", "it.price * self._fee // MICRO", _CONTRACTS),
    Chosen(_HIRED, "it.service == service and it.last > number", "it.last > number", _CONTRACTS),
    Chosen("des/participation.py", "owed + left // length", "left // length", _CONTRACTS),
    Chosen(_CLEARING, "spec.budget - due.get(m, 0) if", "spec.budget if", _CONTRACTS),
    Chosen(_LEDGER, "account.paid - account.committed - owed", "account.paid - account.committed", _CONTRACTS),
    Chosen(_CLEARING, "current.due.get(m, 0) + current.spent.get(m, 0)", "current.due.get(m, 0)", _TURNS),
    Chosen("des/allocation.py", "if it not in gone", "if it >= 0", _TURNS),
    # measures
    Chosen(_MEASURES, '(run["spent"] > run["budget"])', '(run["spent"] >= run["budget"])', _SHOWN),
    Chosen(_MEASURES, 'run.earnings["profit"] < 0', 'run.earnings["profit"] <= 0', _SHOWN),
    Chosen(_MEASURES, 'run["reward"].sum(axis=0) - costs', 'run["reward"].sum(axis=0) + costs', _SHOWN),
    Chosen(_MEASURES, "float(_final(run)[run.present].min())", "float(_final(run)[run.present].max())", _SHOWN),
    Chosen(_MEASURES, 'run.offers[["core", "paid"]]', 'run.offers[["core", "core"]]', _SHOWN),
)  # fmt: skip
