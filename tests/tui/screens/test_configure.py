"""The form: made from the schema, checked as `validate` checks, saved with its comments."""

import errno
import os
import tomllib
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Select, Static, Tab, TabbedContent

from des.mechanism import MECHANISMS
from des.mechanisms.pay_as_offered import PayAsOffered
from fl.training.models import MODELS
from flmarket.core.plugins import summary
from learning.policy import POLICIES
from scenarios.builtin import builtin_text
from scenarios.file.keys import keys
from scenarios.loader import ScenarioError, load, parse
from support.screens import notes, painted, rendered, screen_of, text_of, until
from support.shell import flmarket
from tui.app import MarketApp
from tui.screens.configure import NEW, PANES, SERVICES, ConfigureScreen, SaveDialog
from tui.screens.dialog import Jump, LeaveDialog
from tui.state.catalogue import own_files, read_scenario
from tui.state.scenario_document import ScenarioDocument
from tui.widgets.form_field import ChoiceField, FieldRow
from tui.widgets.sub_form import SubForm


async def form(app: MarketApp, pilot: Pilot[None], small: Path, *, own: bool = True) -> ConfigureScreen:
    """The form of small.toml, with the rows of its first tab."""
    path = small / "small.toml"
    screen = ConfigureScreen(path.read_text(), str(path), path if own else None, app)
    app.push_screen(screen)
    await until(pilot, lambda: screen.query(FieldRow))
    return screen


async def edited_form(app: MarketApp, pilot: Pilot[None], small: Path) -> ConfigureScreen:
    """The form of small.toml, in which the number of rounds was set to 20 and not yet saved."""
    screen = await form(app, pilot, small)
    row(screen, "rounds").query_one(Input).value = "20"
    await until(pilot, lambda: screen.document.changed)
    return screen


async def filled_form(app: MarketApp, pilot: Pilot[None], small: Path) -> ConfigureScreen:
    """The form, each tab of which was shown once: only then are its rows made."""
    screen = await form(app, pilot, small)
    tabs = screen.query_one("#form", TabbedContent)
    for pane in reversed(PANES.values()):
        tabs.active = pane
        await until(pilot, lambda pane=pane: screen.query(f"#{pane} FieldRow, #{pane} OptionList"))
    return screen


def row(screen: ConfigureScreen, *path: str | int) -> FieldRow:
    return next(found for found in screen.query(FieldRow) if found.path == path)


@pytest.mark.slow
async def test_problems_stand_beside_the_field_in_the_words_of_validate(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled_form(app, pilot, small)
        row(screen, "rounds").query_one(Input).value = "-3"
        await until(pilot, lambda: screen.problems)
        try:
            parse(screen.document.text, str(small / "small.toml"))
        except ScenarioError as error:
            (problem,) = error.problems
        await until(pilot, lambda: "✘" in row(screen, "rounds").note)
        assert problem.message in row(screen, "rounds").note
        assert str(problem) in rendered(screen, "#form-problems")
        assert "✎ was 12" in row(screen, "rounds").note
        assert "✘1" in str(screen.query_one(TabbedContent).get_tab("tab-market").label)
        row(screen, "rounds").query_one(Input).value = "12"
        await until(pilot, lambda: not screen.problems)
        await until(pilot, lambda: "✎" not in row(screen, "rounds").note)
        # A list that is none, a number that is none, and a problem of two keys at once.
        row(screen, "clients", "data_size").query_one(Input).value = "[40, "
        row(screen, "clients", "cost", "per_sample").query_one(Input).value = "cheap"
        await until(pilot, lambda: len(screen.problems) == 2)
        row(screen, "clients", "data_size").query_one(Input).value = "[40, 80]"
        row(screen, "clients", "cost", "per_sample").query_one(Input).value = "0.001"
        await until(pilot, lambda: [p.key for p in screen.problems] == ["clients.cost"])
        await until(pilot, lambda: "negative" in row(screen, "clients", "cost", "per_emd").note)


@pytest.mark.slow
async def test_the_form_is_valid_where_validate_says_so(app: MarketApp, small: Path) -> None:
    """Names of options are checked, and their values, which takes creating the policy; and what is hardly meant."""
    path = small / "small.toml"
    text = path.read_text().replace('policy = "hqfa"', 'policy = "oort"\npolicy_options = { explore = 0.5 }')
    path.write_text(text)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        screen.query_one("#form", TabbedContent).active = "tab-services"
        await until(pilot, lambda: screen.problems and screen.query("#service-form FieldRow"))
        options = row(screen, "services", 0, "policy_options")
        for value in ("{ explore = 0.5 }", "{ exploration = 5 }", "{ exploration = 0.5 }"):
            options.query_one(Input).value = value
            await until(pilot, lambda: screen.remarks is None)
            await until(pilot, lambda: screen.remarks is not None)
            path.write_text(screen.document.text)
            assert [str(problem) for problem in screen.problems] == flmarket("validate", str(path)).stderr.splitlines()
            assert ("✔ valid" in rendered(screen, "#form-problems")) == (value == "{ exploration = 0.5 }")
        screen.query_one("#form", TabbedContent).active = "tab-clients"
        await until(pilot, lambda: screen.query("#tab-clients FieldRow"))
        row(screen, "clients", "cost", "per_emd").query_one(Input).value = "-100"
        await until(pilot, lambda: "note: small: no service can buy a client" in rendered(screen, "#form-problems"))


@pytest.mark.slow
async def test_services_are_added_duplicated_edited_and_removed(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        await pilot.press("f3")
        await until(pilot, lambda: len(screen.document.entries(SERVICES)) == 4)
        await until(pilot, lambda: screen.query_one(SubForm).place == 3)
        assert screen.document.entry_name(SERVICES, 3) == "alpha-2"
        await until(pilot, lambda: [r for r in screen.query(FieldRow) if r.path == ("services", 3, "policy")])
        await until(pilot, lambda: row(screen, "services", 3, "name").query_one(Input).has_focus, "the new one's name")
        (await row(screen, "services", 3, "policy").open()).value = "greedy"
        row(screen, "services", 3, "name").query_one(Input).value = "beta"
        await until(pilot, lambda: any("another service" in problem.message for problem in screen.problems))
        await until(pilot, lambda: "✘" in str(screen.query_one("#service-list", OptionList).options[3].prompt))
        row(screen, "services", 3, "name").query_one(Input).value = "delta"
        await until(pilot, lambda: not screen.problems)
        scenario = parse(screen.document.text)
        assert [(s.name, s.policy) for s in scenario.services][3] == ("delta", "greedy")
        screen.query_one("#service-list", OptionList).highlighted = 0
        await until(pilot, lambda: screen.query_one(SubForm).place == 0)
        await pilot.press("f4")
        await until(pilot, lambda: len(screen.document.entries(SERVICES)) == 3)
        await until(pilot, lambda: screen.query_one("#service-list").has_focus, "where the next one is chosen")
        assert screen.document.entry_name(SERVICES, 0) == "beta"
        await pilot.press("f2")
        await until(pilot, lambda: len(screen.document.entries(SERVICES)) == 4)
        for _ in range(4):
            await pilot.press("f4")
        assert len(screen.document.entries(SERVICES)) == 1  # the last one stays


@pytest.mark.slow
async def test_rows_of_a_removed_service_are_neither_checked_nor_heard(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        await pilot.press("f3")
        await until(pilot, lambda: [r for r in screen.query(FieldRow) if r.path == ("services", 3, "policy")])
        edited = FieldRow.Edited(row(screen, "services", 3, "name"), "delta")
        screen.document.remove_entry(SERVICES, 3)
        screen.query_one("#service-form").remove_children()
        await screen._edited(edited)
        screen._understood(None, {}, None)
        screen._checked(screen.problems, [], {})
        assert len(screen.document.entries(SERVICES)) == 3


def test_a_file_keeps_its_line_ends_and_its_byte_order_mark_in_a_document(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_bytes(b"\xef\xbb\xbfname = 'x'\r\nrounds = 3 # few\r\n[[services]]\r\n")
    assert [entry.state for entry in own_files(tmp_path)] == [""]
    document = ScenarioDocument(read_scenario(path))
    document.put(("rounds",), "4")
    assert document.text == "\ufeffname = 'x'\r\nrounds = 4 # few\r\n[[services]]\r\n"
    # Of lines that end in two ways each keeps its end.
    document = ScenarioDocument('name = "a"\r\n# mine\nrounds = 3\r\ndescription = """b\r\n"""\n')
    assert not document.changed
    document.put(("rounds",), "4")
    assert document.text == 'name = "a"\r\n# mine\nrounds = 4\r\ndescription = """b\r\n"""\n'
    # Of lines that end in two ways each keeps its end.


@pytest.mark.slow
async def test_saving_keeps_comments_and_asks_where_it_must(app: MarketApp, small: Path) -> None:
    path = small / "small.toml"
    before = path.read_text()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await edited_form(app, pilot, small)
        await pilot.press("escape")
        assert isinstance(app.screen, LeaveDialog)
        await pilot.press("n")
        assert app.screen is screen
        await pilot.press("ctrl+s")
        assert path.read_text() == before.replace("rounds = 12 #", "rounds = 20 #")
        assert not screen.document.changed
        await pilot.press("escape")
        assert app.screen is not screen

        other = await form(app, pilot, small, own=False)
        await pilot.press("ctrl+s")
        dialog = app.screen
        assert dialog.query_one(Input).value == str(path)  # named after the scenario
        dialog.query_one(Input).focus()
        await pilot.press("enter")
        assert "small.toml already exists; press Save again to replace it" in rendered(dialog, ".problem")
        dialog.query_one(Input).value = str(small / "new.toml")
        await pilot.press("enter")
        assert (small / "new.toml").read_text() == path.read_text()
        assert other.own == small / "new.toml"


@pytest.mark.slow
@pytest.mark.parametrize("key", ["escape", "ctrl+q"])
async def test_changes_are_saved_or_discarded_where_the_form_is_left(app: MarketApp, small: Path, key: str) -> None:
    path = small / "small.toml"
    before = path.read_text()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await edited_form(app, pilot, small)
        path.write_text(before + "# mine\n")  # so that a file is asked for
        await pilot.press(key)
        assert [str(button.label) for button in app.screen.query(Button)] == ["Save (s)", "Discard (d)", "Stay (n)"]
        await pilot.press("s")
        await screen_of(pilot, SaveDialog)
        await pilot.press("escape")
        assert (app.screen, screen.document.changed) == (screen, True)  # nothing was saved
        path.write_text(before)
        await pilot.press(key, "n")
        assert app.screen is screen
        await pilot.press(key, "s")
        assert path.read_text() == before.replace("rounds = 12 #", "rounds = 20 #")
        assert screen not in app.screen_stack or app._exit


@pytest.mark.slow
@pytest.mark.parametrize("key", ["escape", "ctrl+q"])
async def test_changes_that_are_discarded_leave_the_file_as_it_is(app: MarketApp, small: Path, key: str) -> None:
    before = (small / "small.toml").read_text()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await edited_form(app, pilot, small)
        await pilot.press(key, "d")
        assert (small / "small.toml").read_text() == before
        assert screen not in app.screen_stack or app._exit


@pytest.mark.slow
async def test_what_was_removed_added_and_typed_is_undone_change_by_change(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        texts = [screen.document.text]
        await pilot.press("tab", "tab", "tab", *"34")  # into the rounds; what is typed into one field is one change
        await until(pilot, lambda: screen.document.get(("rounds",)) == 34)
        texts.append(screen.document.text)
        screen.query_one("#form", TabbedContent).active = "tab-services"
        await until(pilot, lambda: screen.query("#service-form FieldRow"))
        screen.query_one("#service-list", OptionList).highlighted = 1
        await until(pilot, lambda: screen.query_one(SubForm).place == 1)
        await pilot.press("f4")
        await until(pilot, lambda: len(screen.document.entries(("services",))) == 2)
        texts.append(screen.document.text)
        await pilot.press("f3")
        texts.append(screen.document.text)
        assert len(set(texts)) == 4
        await pilot.press("f6")
        assert screen.document.text == texts[2]
        await pilot.press("f6")
        assert screen.document.text == texts[1]
        assert (screen.query_one(SubForm).place, app.focused) == (1, screen.query_one("#service-list"))
        assert row(screen, "services", 1, "name").query_one(Input).value == "beta"
        await pilot.press("f6")
        assert (screen.document.text, screen.document.changed) == (texts[0], False)
        assert app.focused is row(screen, "rounds").query_one(Input)
        assert row(screen, "rounds").query_one(Input).value == "12"
        await pilot.press("f6")
        assert notes(app) == ["There is nothing to undo."]


@pytest.mark.slow
async def test_letters_lead_to_fields_and_tabs(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await form(app, pilot, small)

        async def jump(to: Widget) -> None:
            """Press the letter at a widget, after scrolling to it if need be."""
            await pilot.press("ctrl+o")
            while not (found := [mark for mark in app.screen.query(Static) if beside(mark, to)]):
                await pilot.press("pagedown")
                await screen_of(pilot, Jump)
            await pilot.press(str(found[0].render()))

        def beside(mark: Widget, to: Widget) -> bool:
            return mark.region.y == to.region.y and 0 <= to.region.x - mark.region.x <= 1

        editor = row(screen, "rounds").query_one(Input)
        await jump(editor)
        assert app.focused is editor
        choice = row(screen, "market", "impressions").query_one(ChoiceField)  # far below
        await jump(choice)
        assert app.focused is choice
        tabs = screen.query_one("#form", TabbedContent)
        await jump(tabs.get_tab("tab-services"))
        assert tabs.active == "tab-services"
        await jump(screen.query_one("#service-list"))
        assert app.focused is screen.query_one("#service-list")
        await pilot.press("ctrl+o", "escape")
        assert app.screen is screen


@pytest.mark.slow
async def test_a_removed_value_takes_its_default(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await filled_form(app, pilot, small)
        row(screen, "timeline", "deadline").query_one(Input).value = "30"
        row(screen, "training", "momentum").query_one(Input).value = "0.5"
        await until(pilot, lambda: parse(screen.document.text).training.momentum == 0.5)
        assert parse(screen.document.text).timeline.deadline == 30
        row(screen, "timeline", "deadline").query_one(Input).value = ""
        row(screen, "training", "momentum").query_one(Input).value = ""
        await until(pilot, lambda: parse(screen.document.text).timeline.deadline is None)
        assert parse(screen.document.text) == parse((small / "small.toml").read_text())


@pytest.mark.slow
async def test_nothing_is_lost_to_a_full_disk_or_to_another_editor(
    app: MarketApp, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small / "small.toml"
    before = path.read_text()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await edited_form(app, pilot, small)

        def fsync(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as full:
            full.setattr(os, "fsync", fsync)
            await pilot.press("ctrl+s")
        assert (path.read_text(), screen.document.changed) == (before, True)
        app.clear_notifications()
        elsewhere = path.read_text().replace("slow", "quick") + "# edited in an editor\n"
        path.write_text(elsewhere)

        async def ask(answer: str | None) -> None:
            await pilot.press("ctrl+s")
            await screen_of(pilot, SaveDialog)
            assert "has changed since it was opened" in str(notes(app))
            assert answer is not None or app.screen.query_one(Input).value == str(path)
            if answer is not None:
                app.screen.query_one(Input).value = answer
                app.screen.query_one(Input).focus()
                await pilot.press("enter")

        await ask(None)
        await pilot.press("escape")
        assert (path.read_text(), screen.document.changed) == (elsewhere, True)
        await ask(str(small / "mine.toml"))
        await until(pilot, lambda: screen.own == small / "mine.toml")
        assert parse((small / "mine.toml").read_text()).rounds == 20
        assert path.read_text() == elsewhere
        (small / "mine.toml").write_text(elsewhere)
        await ask(str(small / "mine.toml"))
        assert (small / "mine.toml").read_text() == elsewhere  # not yet: the dialog says that it exists
        await pilot.press("enter")
        await until(pilot, lambda: parse((small / "mine.toml").read_text()).rounds == 20)
        (small / "mine.toml").unlink()  # which leaves nothing to lose
        await pilot.press("ctrl+s")
        await until(pilot, lambda: (small / "mine.toml").exists())


MARK = b"\xef\xbb\xbf"


@pytest.mark.slow
async def test_a_file_keeps_its_line_ends_and_its_byte_order_mark(app: MarketApp, small: Path) -> None:
    path = small / "small.toml"
    path.write_bytes(MARK + path.read_bytes().replace(b"\n", b"\r\n"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.home.entries)
        [entry] = [entry for entry in app.home.entries if entry.path == path]
        assert not entry.state  # no problem
        app.home.edit_file(path, own=True)
        screen = await screen_of(pilot, ConfigureScreen)
        await until(pilot, lambda: "✔ valid" in painted(app))
        assert not screen.document.changed
        for _ in range(2):  # the second time, to what the first has written
            await pilot.press("f2")
            await until(pilot, lambda: screen.document.changed)
            await pilot.press("ctrl+s")
            await until(pilot, lambda: not screen.document.changed)
            assert isinstance(app.screen, ConfigureScreen)
    saved = path.read_bytes()
    assert saved.startswith(MARK + b"# A")
    assert saved.count(MARK) == 1
    assert saved.count(b"\n") == saved.count(b"\r\n")
    assert len(load(path).services) == 5


@pytest.mark.slow
async def test_a_scenario_that_is_a_link_stays_one(app: MarketApp, small: Path) -> None:
    path, real = small / "small.toml", small / "real.toml"
    path.rename(real)
    path.symlink_to(real.name)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await edited_form(app, pilot, small)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not screen.document.changed)
    assert path.is_symlink()
    assert "rounds = 20 #" in real.read_text()


@pytest.mark.slow
async def test_the_form_has_every_key_and_counts_every_problem_on_a_tab(app: MarketApp, small: Path) -> None:
    """Also those of [market], whose options are free, and of [[runs]]."""
    path = small / "small.toml"
    wrong = '[market]\nmechanism = "pay-as-offerd"\noptions = 3\n\n[[runs]]\nroundz = 3\n'
    path.write_text(f"{path.read_text()}\n{wrong}")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled_form(app, pilot, small)
        await until(pilot, lambda: screen.problems)
        paths = {found.path for found in screen.query(FieldRow)}
        lists = {"services", "streams", "clients.groups", "interventions"}
        assert paths == {key.path for key in keys() if key.label not in {*lists, "sweep"}} | {NEW} | {
            ("services", 0, *key.path) for key in keys(("services", 0))
        }
        assert "at least 1" in row(screen, "training", "eval_samples").note
        await until(pilot, lambda: "✘" in row(screen, "market", "options").note)
        labels = [str(tab.label) for tab in screen.query(Tab)]
        assert sum(int(label.partition("✘")[2] or 0) for label in labels) == len(screen.problems)
        row(screen, "market", "options").query_one(Input).value = ""
        row(screen, "runs").query_one(Input).value = ""
        (await row(screen, "market", "mechanism").open()).value = "pay-as-offered"
        await until(pilot, lambda: not screen.problems)


@pytest.mark.slow
async def test_models_and_mechanisms_are_chosen_plug_ins_included(app: MarketApp, small: Path) -> None:
    MECHANISMS.register("mine", type("Mine", (PayAsOffered,), {}))
    MODELS.register("own", lambda labels: None)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled_form(app, pilot, small)
        for path, name in {("market", "mechanism"): "mine", ("training", "model"): "own"}.items():
            (await row(screen, *path).open()).value = name
            await until(pilot, lambda path=path, name=name: screen.document.get(path) == name)


@pytest.mark.slow
async def test_a_list_says_what_each_choice_is_and_is_searched_by_typing(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        screen.query_one("#form", TabbedContent).active = "tab-services"
        await until(pilot, lambda: screen.query("#service-form FieldRow"))
        found = row(screen, "services", 0, "policy")
        await until(pilot, lambda: "→ highest data quality indicator first (the paper's HQFA)" in found.note)
        listed = (await found.open()).query_one(OptionList)
        await until(pilot, lambda: all(worker.is_finished for worker in app.workers))
        lines = {str(option.prompt).split()[0]: str(option.prompt) for option in listed.options}
        assert all(summary(POLICIES.load(name)) in line for name, line in lines.items())
        assert "old rounds discounted (exploration = 0.1, discount = 0.95)" in lines["ucb"]
        await pilot.press("u", "enter")
        options = row(screen, "services", 0, "policy_options")
        await until(pilot, lambda: "→ ucb: exploration = 0.1, discount = 0.95" in options.note)
        # Also where the scenario is not valid; and the prices of a linear cost have keys of their own.
        options.query_one(Input).value = "{ explore = 1 }"
        await until(pilot, lambda: "✘ policy 'ucb' takes no option 'explore'" in options.note)
        screen.query_one("#form", TabbedContent).active = "tab-clients"
        await until(pilot, lambda: screen.query("#tab-clients FieldRow"))
        assert "→ linear: takes no options" in row(screen, "clients", "cost", "options").note
        assert "→ Each client bids its cost" in row(screen, "clients", "behaviour", "kind").note


@pytest.mark.slow
async def test_costs_and_behaviours_of_groups_are_chosen_from_lists_too(app: MarketApp, small: Path) -> None:
    path = small / "small.toml"
    path.write_text(path.read_text() + '\n[[clients.groups]]\nname = "ring"\ncount = 2\n')
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        screen.query_one("#form", TabbedContent).active = "tab-groups"
        await until(pilot, lambda: screen.query("#tab-groups FieldRow"))
        found = row(screen, "clients", "groups", 0, "behaviour", "kind")
        (await found.open()).value = "ring"
        await until(pilot, lambda: "→ Rings rotate the lowest bid" in found.note)
        assert "→ ring: " in row(screen, "clients", "groups", 0, "behaviour", "options").note


WRONG = {
    "clients = { cost = 5 }": ("clients", "cost", "per_sample"),
    "clients = [5]": ("clients", "cost", "per_sample"),
    "training = true": ("training", "momentum"),
}


@pytest.mark.slow
@pytest.mark.parametrize("line", WRONG)
async def test_a_field_is_typed_into_where_its_table_is_something_else(app: MarketApp, small: Path, line: str) -> None:
    path, key = small / "small.toml", WRONG[line]
    text = path.read_text()
    if key[0] == "clients":
        text = text[: text.index("[clients]")] + text[text.index("# The first.") :]
    path.write_text(f"{line}\n{text}")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled_form(app, pilot, small)
        await until(pilot, lambda: screen.problems)
        assert any(problem.key == key[0] or problem.key.startswith("clients") for problem in screen.problems)
        row(screen, *key).query_one(Input).value = "1"
        await until(pilot, lambda: screen.document.get(key) == 1)
        assert tomllib.loads(screen.document.text) == screen.document.data
        assert [service["name"] for service in screen.document.data["services"]] == ["alpha", "beta", "gamma"]


@pytest.mark.slow
@pytest.mark.parametrize("services", ["5", "[5]", "[]"])
async def test_services_are_added_where_something_else_stands(app: MarketApp, small: Path, services: str) -> None:
    path = small / "small.toml"
    text = path.read_text()
    path.write_text(f"services = {services}\n" + text[: text.index("# The first.")])
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        await until(pilot, lambda: screen.problems)
        before = len(screen.document.entries(SERVICES))
        await pilot.press("f2")
        await until(pilot, lambda: len(screen.document.entries(SERVICES)) == before + 1)
        await until(pilot, lambda: [r for r in screen.query(FieldRow) if r.path == ("services", before, "name")])
        await pilot.press("f3")
        await until(pilot, lambda: len(screen.document.entries(SERVICES)) == before + 2)
        screen.query_one("#service-list", OptionList).highlighted = 0
        await until(pilot, lambda: [r for r in screen.query(FieldRow) if r.path == ("services", 0, "name")])
        row(screen, "services", 0, "name").query_one(Input).value = "first"
        await until(pilot, lambda: screen.document.get(("services", 0, "name")) == "first")
        assert tomllib.loads(screen.document.text) == screen.document.data


async def test_where_there_is_no_service_none_is_duplicated(app: MarketApp, small: Path) -> None:
    path = small / "small.toml"
    path.write_text(path.read_text().partition("# The first.")[0])
    async with app.run_test(size=(120, 40)) as pilot:
        await form(app, pilot, small)
        await pilot.press("f3")
        await until(pilot, lambda: notes(app), "the notice")
        assert notes(app) == ["There is no service to duplicate; press F2 to add one."]


@pytest.mark.slow
async def test_beside_the_form_stands_what_the_scenario_means_where_there_is_room(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(160, 48)) as pilot:
        screen = await form(app, pilot, small)
        await until(pilot, lambda: screen.query("#form-meaning"))
        meaning = screen.query_one("#form-meaning", Static)

        def said() -> str:
            return " ".join(text_of(meaning).split())

        await until(pilot, lambda: "over at most 12 rounds" in said())
        row(screen, "rounds").query_one(Input).value = "7"
        await until(pilot, lambda: "over at most 7 rounds" in said())
        row(screen, "rounds").query_one(Input).value = "0"
        await until(pilot, lambda: screen.problems)
        assert "over at most 7 rounds" in said()  # the last that was valid
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert not screen.query_one("#form-side").size


@pytest.mark.slow
async def test_values_say_what_they_come_to_in_this_market(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(200, 60)) as pilot:
        screen = await filled_form(app, pilot, small)
        budget = row(screen, "services", 0, "budget")
        await until(pilot, lambda: "→ buys about 4 clients a round" in budget.note)  # 10 at bids of 1.20 to 3.80
        budget.query_one(Input).value = "25"
        await until(pilot, lambda: "→ buys about 10 clients a round" in budget.note)
        assert "{}" not in painted(app).partition("market.options")[2].splitlines()[0]
        screen.query_one("#form", TabbedContent).active = "tab-services"
        for width in (200, 80):
            await pilot.resize_terminal(width, 60)
            await until(pilot, lambda: "money per round" in painted(app))
            assert "→ buys about 10 clients a round" in painted(app)


@pytest.mark.slow
async def test_a_long_path_is_cut_with_a_sign_and_what_has_changed_is_said(app: MarketApp, small: Path) -> None:
    folder = small / "a-folder-with-a-long-name" / "and-another-one-with-a-longer-name" / "and-a-third-one-below-them"
    folder.mkdir(parents=True)
    path = (small / "small.toml").rename(folder / "small[1].toml")
    async with app.run_test(size=(80, 40)) as pilot:
        screen = ConfigureScreen(path.read_text(), str(path), path, app)
        app.push_screen(screen)
        await until(pilot, lambda: screen.query(FieldRow))
        for width in (140, 80):
            await pilot.resize_terminal(width, 40)
            await pilot.pause()
            title = painted(app).splitlines()[0].rstrip()
            assert title.startswith(" …") or len(str(path)) + 12 < width
            assert title.endswith("below-them/small[1].toml  unchanged")
        row(screen, "rounds").query_one(Input).value = "7"
        await until(pilot, lambda: painted(app).splitlines()[0].rstrip().endswith("✎ changed"))


@pytest.mark.slow
async def test_the_tab_key_goes_from_field_to_field_and_choices_are_listed_on_demand(
    app: MarketApp, small: Path
) -> None:
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await form(app, pilot, small)
        for found in screen.query("#tab-market FieldRow").results(FieldRow):
            await pilot.press("tab")
            assert app.focused in found.query("Input, ChoiceField")
            await pilot.pause()
            assert painted(app).splitlines()[found.region.y][found.region.x] == "▌"
        screen.query_one("#form", TabbedContent).active = "tab-services"
        await until(pilot, lambda: screen.query("#service-form FieldRow"))
        screen.query_one("#service-list").focus()
        await pilot.press("tab")
        assert app.focused in row(screen, "services", 0, "name").query(Input)
        # A text longer than its field is shown as far as it goes.
        screen.query_one("#form", TabbedContent).active = "tab-market"
        editor = row(screen, "description").query_one(Input)
        editor.value = "long " * 60
        await pilot.pause()
        assert editor.scrollable_content_region.height == 1  # a scroll bar would take its only line
        # A list of choices is made when a key or a click opens it.
        assert not screen.query(Select)  # those of all keys would take most of the time that the form takes
        found = row(screen, "market", "mechanism")
        found.query_one(ChoiceField).focus()
        await until(pilot, lambda: found.query_one(ChoiceField).has_focus)
        await pilot.press("enter")
        await until(pilot, lambda: found.query(Select) and found.query_one(Select).expanded)
        await pilot.press("down", "enter")
        await until(pilot, lambda: "✎ was" in found.note)  # which moves what stands below, where the mouse goes
        await pilot.pause()
        assert screen.document.get(("market", "mechanism"))
        bids = row(screen, "market", "bids")
        await pilot.mouse_down(bids.query_one(ChoiceField), offset=(1, 0))
        await until(pilot, lambda: bids.query(Select) and bids.query_one(Select).expanded)


async def on_tab(pilot: Pilot[None], screen: ConfigureScreen, tab: str) -> None:
    screen.query_one("#form", TabbedContent).active = PANES[tab]
    await until(pilot, lambda: screen.query(f"#{PANES[tab]} Fields"))


@pytest.mark.slow
async def test_groups_are_added_edited_and_removed_in_fields_of_their_own(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        await on_tab(pilot, screen, "Groups")
        assert "There is none; F2 adds one." in painted(app)
        await pilot.press("f2")
        await until(pilot, lambda: screen.problems, "a group needs a count")
        rows = {found.path: found for found in screen.query("#group-form FieldRow").results(FieldRow)}
        assert [*rows] == [("clients", "groups", 0, *key.path) for key in keys(("clients", "groups", 0))]
        count = rows["clients", "groups", 0, "count"]
        await until(pilot, lambda: "✘" in count.note)
        assert "✘" in str(screen.query_one("#group-list", OptionList).options[0].prompt)
        assert "✘1" in str(screen.query_one(TabbedContent).get_tab(PANES["Groups"]).label)
        assert "✘" not in str(screen.query_one(TabbedContent).get_tab(PANES["Clients"]).label)
        await pilot.press(*"phones", "tab", *"20")
        await until(pilot, lambda: "makes 20 clients" in count.note)
        count.query_one(Input).value = "2"
        rows["clients", "groups", 0, "cost", "per_sample"].query_one(Input).value = "0.04"
        await until(pilot, lambda: not screen.problems)
        group = '[[clients.groups]]\nname = "phones"\ncount = 2\ncost = { per_sample = 0.04 }\n\n# The first.'
        assert group in screen.document.text
        await pilot.press("f3")
        await until(pilot, lambda: screen.query_one("#group-list", OptionList).option_count == 2)
        await pilot.press("f4", "f4", "f4")
        await until(pilot, lambda: "There is none. Nothing is removed." in notes(app))
        assert screen.document.text == (small / "small.toml").read_text()
        await pilot.press("f6")
        await until(pilot, lambda: screen.query_one("#group-list", OptionList).option_count == 1)
        assert group in screen.document.text


@pytest.mark.slow
async def test_interventions_have_their_problems_beside_their_own_fields(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        await on_tab(pilot, screen, "Interventions")
        for typed in (("3", "clients.cores", "2"), ("4", "clients.cors", "1")):
            await pilot.press("f2", *typed[0], "tab", *typed[1], "tab", *typed[2])
        await until(pilot, lambda: screen.problems)
        listed = screen.query_one("#intervention-list", OptionList)
        await until(pilot, lambda: "✘" in str(listed.options[1].prompt))
        await until(pilot, lambda: "did you mean 'clients.cores'" in row(screen, "interventions", 1, "key").note)
        await until(pilot, lambda: str(listed.options[0].prompt) == "  #1 3 clients.cores 2 (new)")
        listed.highlighted = 0
        await until(pilot, lambda: [r for r in screen.query(FieldRow) if r.path == ("interventions", 0, "key")])
        assert "✘" not in row(screen, "interventions", 0, "key").note
        listed.highlighted = 1
        await until(pilot, lambda: [r for r in screen.query(FieldRow) if r.path == ("interventions", 1, "key")])
        row(screen, "interventions", 1, "key").query_one(Input).value = "clients.cores"
        await until(pilot, lambda: not screen.problems)
        assert [(it.round, it.key, it.value) for it in parse(screen.document.text).interventions] == [
            (3, "clients.cores", 2),
            (4, "clients.cores", 1),
        ]
        assert screen.document.text.count("[[interventions]]") == 2


@pytest.mark.slow
async def test_keys_are_swept_that_are_chosen_from_a_list(app: MarketApp, small: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form(app, pilot, small)
        await on_tab(pilot, screen, "Sweep")
        await pilot.press("f2")
        await until(pilot, lambda: row(screen, *NEW).query(Select), "the list")
        row(screen, *NEW).query_one(Select).value = "services.beta.budget"
        await until(pilot, lambda: [r for r in screen.query(FieldRow) if r.path == ("sweep", "services.beta.budget")])
        editor = row(screen, "sweep", "services.beta.budget").query_one(Input)
        await until(pilot, lambda: editor.has_focus)
        assert editor.value == f"[{screen.document.get(('services', 1, 'budget'))}]"
        assert "The most that it can offer in one round" in row(screen, "sweep", "services.beta.budget").note
        editor.value = "[10, -1]"
        await until(pilot, lambda: "✘" in row(screen, "sweep", "services.beta.budget").note)
        editor.value = "[10, 20]"
        await until(pilot, lambda: not screen.problems)
        assert screen.document.text.endswith('\n\n[sweep]\n"services.beta.budget" = [10, 20]\n')
        row(screen, "sweep", "services.beta.budget").query_one(Input).focus()
        await pilot.press("f4")
        await until(pilot, lambda: ("sweep", "services.beta.budget") not in {r.path for r in screen.query(FieldRow)})
        assert not screen.document.changed
        await pilot.press("f6")
        await until(pilot, lambda: ("sweep", "services.beta.budget") in {r.path for r in screen.query(FieldRow)})
        screen.document.put(("services", 0, "name"), '"renamed"')  # which the list does not know
        (await row(screen, *NEW).open()).value = "services.alpha.budget"
        await until(pilot, lambda: screen.document.get(("sweep", "services.alpha.budget")) == [])
        await pilot.press("f2")
        await until(pilot, lambda: row(screen, *NEW).query(Select), "the list anew")
        (await row(screen, *NEW).open()).value = "services.renamed.budget"
        await until(pilot, lambda: screen.document.get(("sweep", "services.renamed.budget")) == [10])


@pytest.mark.slow
async def test_the_form_of_a_scenario_with_streams_alone_opens_and_keeps_them(app: MarketApp, small: Path) -> None:
    path = small / "streams.toml"
    path.write_text(builtin_text("job-stream"))
    async with app.run_test(size=(140, 40)) as pilot:
        screen = ConfigureScreen(path.read_text(), str(path), path, app)
        app.push_screen(screen)
        await until(pilot, lambda: screen.query(FieldRow))
        tabs = screen.query_one("#form", TabbedContent)
        for pane in reversed(PANES.values()):
            tabs.active = pane
            await pilot.pause()
        row(screen, "rounds").query_one(Input).value = "20"
        await until(pilot, lambda: screen.document.changed)
        assert parse(screen.document.text).streams == load("job-stream").streams
