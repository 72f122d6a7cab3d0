"""The ledger: who gave, holds and received how much money. Every micro-unit is accounted for.

In each round a service receives its budget, its offers hold part of it, served clients are paid from what is held, and
the rest of the budget lapses (the paper's budget is per round and cannot be saved). Where a service also has a budget
for the whole run, what it is granted in a round is never more than what it has not paid of that, less what contracts
hold of it for later rounds.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from des.money import Micro, text


class LedgerError(Exception):
    """A booking would create, lose or overdraw money. This is always a defect of the market, never a user's mistake."""


@dataclass(slots=True)
class Account:
    """A service's money: what is free and held in this round, and what was granted, paid and lapsed over the run.

    ``committed`` is held for work that goes on after the round in which it began. ``saved`` is what was left of the
    last round where it is there in the next one: it is granted then, and not counted before.
    """

    free: Micro = 0
    held: Micro = 0
    committed: Micro = 0
    saved: Micro = 0
    granted: Micro = 0
    paid: Micro = 0
    lapsed: Micro = 0


class Ledger:
    """Books the money of a market. All amounts are in micro-units."""

    def __init__(
        self,
        services: Iterable[str],
        clients: int,
        totals: Mapping[str, Micro] | None = None,
        saving: Collection[str] = (),
    ) -> None:
        self.accounts = {service: Account() for service in services}  # by service
        self.income: list[Micro] = [0] * clients  # what each client has received, by index
        self.totals = dict(totals or {})  # budgets for the whole run, of the services that have one
        self.saving = frozenset(saving)  # the services whose money does not lapse
        self.reserved: Mapping[str, Micro] = {}  # what services owe by contracts from the next round on

    def left(self, service: str) -> Micro | None:
        """Return what a service has neither paid nor promised of its budget for the whole run; None if it has none."""
        owed = self.reserved.get(service, 0)
        if service not in self.totals:
            return None
        account = self.accounts[service]
        return self.totals[service] - account.paid - account.committed - owed

    def grant(self, service: str, budget: Micro) -> None:
        """Open a round for ``service`` with its budget B_m."""
        account = self.accounts[service]
        if account.free or account.held:
            raise LedgerError(f"{service}: the last round's money has not lapsed")
        if budget < 0:
            raise LedgerError(f"{service}: a budget of {text(budget)} is negative")
        left = self.left(service)
        if left is not None and budget > left + self.reserved.get(service, 0):
            raise LedgerError(f"{service}: a budget of {text(budget)} with {text(left)} left for the whole run")
        account.free = budget
        account.granted += budget

    def hold(self, service: str, amount: Micro) -> None:
        """Set aside the payments of a service's offers, which are binding (eq. 4)."""
        account = self.accounts[service]
        if not 0 <= amount <= account.free:
            raise LedgerError(f"{service}: offers of {text(amount)} with {text(account.free)} free")
        account.free -= amount
        account.held += amount

    def release(self, service: str, amount: Micro) -> None:
        """Free what was set aside for offers that were refused, so that the service can offer again."""
        account = self.accounts[service]
        if not 0 <= amount <= account.held:
            raise LedgerError(f"{service}: {text(amount)} released with {text(account.held)} held")
        account.held -= amount
        account.free += amount

    def pool(self, needs: Mapping[str, Micro]) -> None:
        """Grant what services hold and do not need to those that need more than they hold."""
        for service, need in needs.items():
            account = self.accounts[service]
            for giver, kept in needs.items():
                other = self.accounts[giver]
                amount = max(0, min(need - account.held, other.held - kept))
                account.granted, account.held = account.granted + amount, account.held + amount
                other.granted, other.held = other.granted - amount, other.held - amount
            if account.held < need:
                raise LedgerError(f"{service}: needs {text(need)}, more than all services hold")

    def pay(self, service: str, client: int, amount: Micro) -> None:
        """Pay a served client from what the service's offers hold."""
        account = self.accounts[service]
        if not 0 <= amount <= account.held:
            raise LedgerError(f"{service}: a payment of {text(amount)} with {text(account.held)} held")
        account.held -= amount
        account.paid += amount
        self.income[client] += amount

    def commit(self, service: str, amount: Micro) -> None:
        """Keep a part of what the service's offers hold for work that may go on after the round."""
        account = self.accounts[service]
        if not 0 <= amount <= account.held:
            raise LedgerError(f"{service}: {text(amount)} committed with {text(account.held)} held")
        account.held -= amount
        account.committed += amount

    def pay_committed(self, service: str, client: int, amount: Micro) -> None:
        """Pay a client on delivery, whenever that is."""
        self._uncommit(service, amount)
        self.accounts[service].paid += amount
        self.income[client] += amount

    def forfeit(self, service: str, amount: Micro) -> None:
        """Free what was committed to a client that does not deliver; it lapses, or is saved, at the round's end."""
        self._uncommit(service, amount)
        self.accounts[service].free += amount

    def _uncommit(self, service: str, amount: Micro) -> None:
        account = self.accounts[service]
        if not 0 <= amount <= account.committed:
            raise LedgerError(f"{service}: a payment of {text(amount)} with {text(account.committed)} committed")
        account.committed -= amount

    def cancel(self, service: str, client: int, fee: Micro) -> None:
        """Pay for the end of a contract, from the money of the rounds that it no longer takes."""
        account = self.accounts[service]
        account.granted += fee
        account.paid += fee
        self.income[client] += fee

    def lapse(self, service: str) -> None:
        """Close the service's round: what is free, or held for refused offers, lapses, or is saved."""
        account = self.accounts[service]
        left = account.free + account.held
        if service in self.saving:
            account.saved = left
            account.granted -= left
        else:
            account.lapsed += left
        account.free = account.held = 0

    def leave(self, service: str) -> None:
        """Let what a service has saved lapse, as it leaves the market."""
        account = self.accounts[service]
        account.granted += account.saved
        account.lapsed += account.saved
        account.saved = 0

    def state(self) -> dict[str, Any]:
        """Return all balances as plain data."""
        return {
            "accounts": {service: asdict(account) for service, account in self.accounts.items()},
            "income": list(self.income),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.accounts = {service: Account(**balances) for service, balances in state["accounts"].items()}
        self.income = list(state["income"])
        self.check()

    def check(self) -> None:
        """Check that every micro-unit granted is accounted for, and that clients received what services paid."""
        for service, account in self.accounts.items():
            if account.granted != account.free + account.held + account.committed + account.paid + account.lapsed:
                raise LedgerError(f"{service}: {account} does not add up")
            if (self.left(service) or 0) < 0:
                raise LedgerError(f"{service}: paid more than its budget for the whole run")
        if sum(account.paid for account in self.accounts.values()) != sum(self.income):
            raise LedgerError("clients did not receive the sum that services paid")
