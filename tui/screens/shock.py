"""The shock dialog: a new budget, K or set of offline clients, in a fork of the run."""

import tomllib
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Button, Input, Label, Select, Static

from des.records import Status
from scenarios.file.checks import installed
from scenarios.file.schema import Scenario
from scenarios.file.toml_text import value_text
from scenarios.file.validation import examine
from scenarios.loader import dumps
from scenarios.seats import interventions
from tui.screens.dialog import Box, Dialog
from tui.watching.session import Session

BUDGET = "services.{}.budget"

HINTS = {
    "clients.cores": "services that a client can serve at once (K) from then on",
    "clients.offline": "clients that are offline from then on, such as [3, 7]; [] for none",
}


class ShockDialog(Dialog[tuple[str, int]]):
    """Asks for a key, its new value and the first round it applies to; the result is the new scenario and the round."""

    AUTO_FOCUS = "#value"

    def __init__(self, session: Session, first: int, service: int) -> None:
        """Ask.

        Args:
            session: the run.
            first: the round that is proposed.
            service: the place of the service whose budget is proposed, if it is still in the market.
        """
        super().__init__()
        assert session.scenario is not None  # noqa: S101 - the dialog opens only for a run that has rounds
        assert session.world is not None  # noqa: S101
        self._scenario, self._world, self._history = session.scenario, session.world, session.history
        self._first = first
        self._now = session.world.conditions(first)
        names = [service.name for service in self._scenario.services]
        left = self._left(first)
        staying = [name for name in (names[service], *names) if name not in left]
        self._proposed = BUDGET.format(staying[0]) if staying else "clients.cores"

    def compose(self) -> ComposeResult:
        """Lay out the dialog."""
        keys = [BUDGET.format(service.name) for service in self._scenario.services]
        keys += ["clients.cores", "clients.offline"]
        with Box():
            yield Static("[b]Shock[/b]  a fork of the run with this change; the original is unchanged")
            yield Label("key")
            yield Select([(key, key) for key in keys], value=self._proposed, allow_blank=False, id="key", compact=True)
            yield Label("new value", id="value-label")
            yield Input(id="value", compact=True)
            yield Label("from round")
            yield Input(str(self._first), type="integer", id="round", compact=True)
            yield Static("", classes="problem")
            with Horizontal(classes="buttons"):
                yield Button("Fork the run", variant="primary", id="go", compact=True)
                yield Button("Cancel", id="cancel", compact=True)

    @on(Select.Changed, "#key")
    def _show_now(self) -> None:
        """Show the chosen key's present value."""
        key = self._key
        now: Any
        if key == "clients.cores":
            now = self._now.cores
        elif key == "clients.offline":
            now = sorted(self._now.offline)
        else:
            name = _service(key)
            now = self._now.budgets[name] / 1_000_000
        self.query_one("#value", Input).value = value_text(now)
        hint = HINTS.get(key, "the most that the service can offer in a round").replace("[", r"\[")
        self.query_one("#value-label", Label).update(f"new value: {hint}")

    @property
    def _key(self) -> str:
        return str(self.query_one("#key", Select).value)

    @on(Button.Pressed, "#go")
    @on(Input.Submitted)
    def _go(self) -> None:
        """Check the change as a scenario file is checked."""
        try:
            value = tomllib.loads(f"value = {self.query_one('#value', Input).value}")["value"]
        except (ValueError, RecursionError):
            self.show_problem("enter a number, or a list such as [3, 7]")
            return
        number = self.query_one("#round", Input).value
        round_ = int(number) if number.isdigit() else 0
        data = self._scenario.model_dump(exclude_none=True)
        kept = [c for c in data["interventions"] if (c["round"], c["key"]) != (round_, self._key)]
        entry = {"round": round_, "key": self._key, "value": value}
        data["interventions"] = sorted([*kept, entry], key=lambda change: change["round"])
        shocked, found = examine(data, installed())
        if shocked is None:
            self.show_problem("\n".join(dict.fromkeys(f"{finding.path[-1]} {finding.message}" for finding in found)))
        elif problem := self._useless(shocked, round_):
            self.show_problem(problem)
        else:
            self.dismiss((dumps(shocked), round_))

    def _useless(self, shocked: Scenario, round_: int) -> str:
        """Return why a change would change nothing; an empty text if it would change something."""
        key, left = self._key, self._left(round_)
        if _service(key) in left:
            return f"{_service(key)} has left the market before round {round_}; choose an earlier round"
        if len(left) == len(self._scenario.services):
            return f"all services have left the market before round {round_}; choose an earlier round"
        if self._world.conditions(0).at(round_, interventions(shocked)) == self._world.conditions(round_):
            return f"{key} has this value in round {round_} already; enter another one"
        return ""

    def _left(self, round_: int) -> set[str]:
        """Return the services that have left before a round, as far as the run has been played."""
        known = min(round_ - 1, len(self._history))
        if known < 1:
            return set()
        return {row.service for row in self._history[known].services if row.status is not Status.TRAINING}

    @on(Button.Pressed, "#cancel")
    def _cancel(self) -> None:
        self.dismiss(None)


def _service(key: str) -> str:
    """Return the service whose budget a key is; an empty text for another key."""
    before, after = BUDGET.split("{}")
    return key.removeprefix(before).removesuffix(after) if key.startswith(before) else ""
