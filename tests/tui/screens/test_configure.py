"""The form: made from the schema, checked as `validate` checks, saved with its comments."""

import errno
import os
from pathlib import Path

import pytest
from pydantic import BaseModel
from textual.widgets import Input, OptionList, Select, Static, TabbedContent

from scenarios.file.schema import Scenario
from scenarios.loader import ScenarioError, parse
from support.screens import until
from tui.app import MarketApp
from tui.editing.fields import fields
from tui.screens.configure import ConfigureScreen
from tui.screens.save import DiscardDialog, SaveDialog
from tui.widgets.field import FieldRow


def form(app: MarketApp, small: Path, *, own: bool = True) -> ConfigureScreen:
    path = small / "small.toml"
    screen = ConfigureScreen(path.read_text(), str(path), path if own else None, app)
    app.push_screen(screen)
    return screen


def row(screen: ConfigureScreen, *path: str | int) -> FieldRow:
    return next(found for found in screen.query(FieldRow) if found.path == path)


def note(found: FieldRow) -> str:
    return str(found.query_one(".field-note", Static).render())


def change(found: FieldRow) -> str:
    return str(found.query_one(".field-change").render())


def test_every_key_of_the_schema_has_a_field_with_its_description() -> None:
    def leaves(model: type[BaseModel]) -> int:
        return sum(
            leaves(info.annotation)
            if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)
            else 1
            for info in model.model_fields.values()
        )

    found = list(fields(Scenario))
    assert len(found) == leaves(Scenario)
    assert all(field.description for field in found)
    rounds = next(field for field in found if field.label == "rounds")
    assert "at least 1" in rounds.description
    assert next(field for field in found if field.label == "dqi").choices == ("published", "fitted")


async def test_problems_stand_beside_the_field_in_the_words_of_validate(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = form(app, small)
        await until(pilot, lambda: screen.query(FieldRow))
        row(screen, "rounds").query_one(Input).value = "-3"
        await until(pilot, lambda: screen.problems)
        try:
            parse(screen.document.text, str(small / "small.toml"))
        except ScenarioError as error:
            (problem,) = error.problems
        await until(pilot, lambda: "✘" in note(row(screen, "rounds")))
        assert problem.message in note(row(screen, "rounds"))
        assert str(problem) in str(screen.query_one("#form-problems", Static).render())
        assert "✎ was 12" in change(row(screen, "rounds"))
        assert "✘1" in str(screen.query_one(TabbedContent).get_tab("tab-market").label)
        row(screen, "rounds").query_one(Input).value = "12"
        await until(pilot, lambda: not screen.problems)
        await until(pilot, lambda: not change(row(screen, "rounds")))
        # A list that is none, a number that is none, and a problem of two keys at once.
        row(screen, "clients", "data_size").query_one(Input).value = "[40, "
        row(screen, "clients", "cost", "per_sample").query_one(Input).value = "cheap"
        await until(pilot, lambda: len(screen.problems) == 2)
        row(screen, "clients", "data_size").query_one(Input).value = "[40, 80]"
        row(screen, "clients", "cost", "per_sample").query_one(Input).value = "0.001"
        await until(pilot, lambda: [p.key for p in screen.problems] == ["clients.cost"])
        await until(pilot, lambda: "negative" in note(row(screen, "clients", "cost", "per_emd")))


async def test_services_are_added_duplicated_edited_and_removed(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = form(app, small)
        await until(pilot, lambda: screen.query(FieldRow))
        await pilot.press("f3")
        await until(pilot, lambda: screen.document.services == 4)
        assert screen.service == 3
        assert screen.document.service_name(3) == "alpha-2"
        await until(pilot, lambda: [r for r in screen.query(FieldRow) if r.path == ("services", 3, "policy")])
        row(screen, "services", 3, "policy").query_one(Select).value = "greedy"
        row(screen, "services", 3, "name").query_one(Input).value = "beta"
        await until(pilot, lambda: any("another service" in problem.message for problem in screen.problems))
        await until(pilot, lambda: "✘" in str(screen.query_one("#service-list", OptionList).options[3].prompt))
        row(screen, "services", 3, "name").query_one(Input).value = "delta"
        await until(pilot, lambda: not screen.problems)
        scenario = parse(screen.document.text)
        assert [(s.name, s.policy) for s in scenario.services][3] == ("delta", "greedy")
        screen.query_one("#service-list", OptionList).highlighted = 0
        await until(pilot, lambda: screen.service == 0)
        await pilot.press("f4")
        await until(pilot, lambda: screen.document.services == 3)
        assert screen.document.service_name(0) == "beta"
        await pilot.press("f2")
        await until(pilot, lambda: screen.document.services == 4)
        for _ in range(4):
            await pilot.press("f4")
        assert screen.document.services == 1  # the last one stays


async def test_saving_keeps_comments_and_asks_where_it_must(app: MarketApp, small: Path) -> None:
    path = small / "small.toml"
    before = path.read_text()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = form(app, small)
        await until(pilot, lambda: screen.query(FieldRow))
        row(screen, "rounds").query_one(Input).value = "20"
        await until(pilot, lambda: screen.document.changed)
        await pilot.press("escape")
        assert isinstance(app.screen, DiscardDialog)
        await pilot.press("n")
        assert app.screen is screen
        await pilot.press("ctrl+s")
        assert path.read_text() == before.replace("rounds = 12 #", "rounds = 20 #")
        assert not screen.document.changed
        await pilot.press("escape")
        assert app.screen is not screen

        other = form(app, small, own=False)
        await until(pilot, lambda: other.query(FieldRow))
        await pilot.press("ctrl+s")
        dialog = app.screen
        assert isinstance(dialog, SaveDialog)
        assert dialog.query_one(Input).value == str(path)  # named after the scenario
        dialog.query_one(Input).focus()
        await pilot.press("enter")
        assert "small.toml already exists; press Save again to replace it" in str(
            dialog.query_one(".problem", Static).render()
        )
        dialog.query_one(Input).value = str(small / "new.toml")
        await pilot.press("enter")
        assert (small / "new.toml").read_text() == path.read_text()
        assert other.own == small / "new.toml"


async def test_a_removed_value_takes_its_default(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        screen = form(app, small)
        await until(pilot, lambda: screen.query(FieldRow))
        row(screen, "timeline", "deadline").query_one(Input).value = "30"
        row(screen, "training", "momentum").query_one(Input).value = "0.5"
        await until(pilot, lambda: parse(screen.document.text).training.momentum == 0.5)
        assert parse(screen.document.text).timeline.deadline == 30
        row(screen, "timeline", "deadline").query_one(Input).value = ""
        row(screen, "training", "momentum").query_one(Input).value = ""
        await until(pilot, lambda: parse(screen.document.text).timeline.deadline is None)
        assert parse(screen.document.text) == parse((small / "small.toml").read_text())
        row(screen, "interventions").query_one(Input).value = '[{ round = 3, key = "clients.cores", value = 2 }]'
        await until(pilot, lambda: len(parse(screen.document.text).interventions) == 1)


async def test_a_full_disk_leaves_the_users_scenario_as_it_was(
    app: MarketApp, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small / "small.toml"
    before = path.read_text()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = form(app, small)
        await until(pilot, lambda: screen.query(FieldRow))
        row(screen, "rounds").query_one(Input).value = "20"
        await until(pilot, lambda: screen.document.changed)

        def fsync(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as full:
            full.setattr(os, "fsync", fsync)
            await pilot.press("ctrl+s")
        assert path.read_text() == before
        assert screen.document.changed


async def test_a_scenario_that_is_a_link_stays_one(app: MarketApp, small: Path) -> None:
    path, real = small / "small.toml", small / "real.toml"
    path.rename(real)
    path.symlink_to(real.name)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = form(app, small)
        await until(pilot, lambda: screen.query(FieldRow))
        row(screen, "rounds").query_one(Input).value = "20"
        await until(pilot, lambda: screen.document.changed)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not screen.document.changed)
    assert path.is_symlink()
    assert "rounds = 20 #" in real.read_text()
