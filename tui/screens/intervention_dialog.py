"""The intervention dialog: a multiple of a budget in one key, or a new value of any key that a fork may change."""

import tomllib
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Button, Input, Label, OptionList, Select, Static

from des.money import MICRO, Micro
from scenarios.file.interventions import MECHANISM, PLAYER, in_force
from scenarios.file.overrides import AddressError, read_value
from scenarios.file.toml import value_text
from scenarios.loader import dumps, forked
from tui.screens.dialog import Box, Dialog
from tui.state.watched_run import Session

BUDGET = "services.{}.budget"

POLICY = "services.{}.policy"

HINTS = {
    "budget": "the most that the service can offer in a round",
    "cores": "services that a client can serve at once (K) from then on",
    "offline": "clients that are offline from then on, such as [3, 7]; [] for none",
    "mechanism": "who is served, at what price, from then on; it begins fresh",
    "policy": "who decides for the service from then on; it begins fresh",
}
"""The thing that is entered, by the last word of the key."""


SHOCKS = {"x 1/4": 0.25, "x 1/2": 0.5, "x 2": 2.0}
"""The multiples of a budget that one key chooses."""


class BudgetShocks(OptionList):
    """The multiples of a service's budget, each with what it comes to."""

    BINDINGS = [Binding(str(n), f"choose({n - 1})", f"Budget {words}") for n, words in enumerate(SHOCKS, 1)]

    def __init__(self, budget: Micro) -> None:
        exact = [round(factor * budget) / MICRO for factor in SHOCKS.values()]
        self.values = [int(value) if value.is_integer() else value for value in exact]  # as people write them
        multiples = enumerate(zip(SHOCKS, self.values, strict=True), 1)
        lines = (f"{n}  {words} = {value:.10g}" for n, (words, value) in multiples)
        super().__init__(*lines, id="shocks", compact=True, markup=False)

    def action_choose(self, place: int) -> None:
        self.highlighted = place
        self.action_select()


class InterventionDialog(Dialog[tuple[str, int]]):
    """Asks for a key, its new value and the first round it applies to; the result is the new scenario and the round."""

    AUTO_FOCUS = "#shocks"

    def __init__(self, session: Session, first: int, service: int) -> None:
        """Propose a round, and multiples of the budget of the service at a place, if it is still in the market."""
        super().__init__()
        assert session.scenario is not None  # noqa: S101 - the dialog opens only for a run that has rounds
        self._scenario, self._history, self._first = session.scenario, session.history, first
        self._service = self._scenario.services[service].name
        self._proposed = self._offered = BUDGET.format(self._service)
        self._budget: Micro = in_force(self._scenario, self._proposed, first)

    def compose(self) -> ComposeResult:
        names = [service.name for service in self._scenario.services]
        keys = [BUDGET.format(name) for name in names] + ["clients.cores", "clients.offline", MECHANISM]
        keys += [POLICY.format(name) for name in names]
        with Box():
            yield Static("[b]Intervention[/b]  a fork of the run with this change; the original stays")
            if self._service not in self._left(self._first):
                now = f"{self._budget / MICRO:.10g}"
                yield Label(f"{self._service}'s budget from round {self._first}, which is {now}")
                yield BudgetShocks(self._budget)
            yield Label("key")
            yield Select([(key, key) for key in keys], value=self._proposed, allow_blank=False, id="key", compact=True)
            yield Label(self._value_label(self._proposed), id="value-label")
            yield Input(self._shown(self._proposed), id="value", compact=True)  # which the focus selects
            yield Label("from round")
            yield Input(str(self._first), type="integer", id="round", compact=True)
            yield from self.answers("Fork the run")

    def on_mount(self) -> None:
        super().on_mount()
        if not self.query(BudgetShocks):  # the service has left
            self.query_one("#round", Input).focus()
            self.call_after_refresh(self._fork_with, self._proposed, self._budget / MICRO, self._first)

    @on(OptionList.OptionSelected, "#shocks")
    def _shock(self, chosen: OptionList.OptionSelected) -> None:
        self._fork_with(self._proposed, self.query_one(BudgetShocks).values[chosen.option_index], self._first)

    @on(Select.Changed, "#key")
    def _show_now(self) -> None:
        key = self._key
        if key == self._offered:  # the list says so itself when it appears, when a value may have been typed already
            return
        self._offered = key
        self.show_problem("")
        self.query_one("#value", Input).value = self._shown(key)
        self.query_one("#value-label", Label).update(self._value_label(key))

    def _value_label(self, key: str) -> str:
        hint = HINTS.get(key.rpartition(".")[2], "").replace("[", r"\[")
        return f"new value: {hint}"

    @on(Input.Changed)
    def _changed(self) -> None:
        self.show_problem("")

    def _shown(self, key: str) -> str:
        """Return a key's value in the proposed round, as it is entered."""
        now = in_force(self._scenario, key, self._first)
        if key == MECHANISM:
            name, options = now
            return value_text({"mechanism": name, "options": options}) if options else str(name)
        if key == "clients.offline":
            return value_text(sorted(now))
        if key == "clients.cores":
            return value_text(now)
        if key.endswith(".budget"):
            return value_text(now / MICRO)
        table = {name: value for name, value in zip(PLAYER, now, strict=True) if value}
        return str(table["policy"]) if len(table) == 1 else value_text(table)

    @property
    def _key(self) -> str:
        return str(self.query_one("#key", Select).value)

    @on(Button.Pressed, "#go")
    @on(Input.Submitted)
    def _go(self) -> None:
        text = self.query_one("#value", Input).value
        try:
            # Names need no quotes here, as in ``--set``.
            words = self._key.endswith((".policy", ".mechanism"))
            value = read_value(text.strip()) if words else tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError, AddressError):
            self.show_problem(
                "enter a name, or a table in braces" if words else "enter a number, or a list such as [3, 7]"
            )
            return
        number = self.query_one("#round", Input).value
        self._fork_with(self._key, value, int(number) if number.isdigit() else 0)

    def _fork_with(self, key: str, value: Any, round_: int) -> None:
        intervened, problems = forked(self._scenario, round_, {key: value}, self._left(round_))
        if intervened is None:
            self.show_problem("\n".join(problems))
        else:
            self.dismiss((dumps(intervened), round_))

    def _left(self, round_: int) -> set[str]:
        """Return the services that have left before a round, as far as the run has been played."""
        known = min(round_ - 1, len(self._history))
        if known < 1:
            return set()
        return {row.service for row in self._history[known].services if row.status.gone}
