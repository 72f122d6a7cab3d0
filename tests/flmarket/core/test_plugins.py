"""Plug-ins of every kind: where a name comes from, who may take it, and what is said when one cannot be used."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from flmarket.core.errors import InputError
from flmarket.core.plugin_options import OptionsError
from flmarket.core.plugins import ListedPlugin, PluginError, Registry, UnknownPluginError, built_in, summary

Install = Callable[..., None]


@pytest.fixture
def colours() -> Registry[str]:
    """A registry of colours, which are texts; two are built in, one of them imported when it is used."""
    check = lambda thing: None if isinstance(thing, str) else f"is {thing!r}, which is not a colour"  # noqa: E731
    return Registry("colour", "test.colours", {"digits": "string:digits", "hex": "string:hexdigits"}, check)


@pytest.fixture
def install(install_package: Callable[..., None]) -> Install:
    """``install("acme", source, red="acme:RED")``: a package that registers colours."""
    return lambda package, source, **names: install_package(package, source, "test.colours", **names)


def test_names_of_all_three_places(colours: Registry[str], install: Install) -> None:
    install("plugins_one", "RED = 'red'", red="plugins_one:RED")
    colours.register("own", "mine")
    assert colours.names() == ["digits", "hex", "own", "red"]
    assert [colours.load(name) for name in colours.names()] == ["0123456789", "0123456789abcdefABCDEF", "mine", "red"]
    assert colours.listing() == [
        ListedPlugin("digits", "0123456789", "flmarket"),
        ListedPlugin("hex", "0123456789abcdefABCDEF", "flmarket"),
        ListedPlugin("own", "mine", "this process"),
        ListedPlugin("red", "red", "plugins_one 1.5"),
    ]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("digit", "unknown colour 'digit'; did you mean 'digits'? (for one of your own, load its plug-in file)"),
        ("HEX", "unknown colour 'HEX'; did you mean 'hex'? (for one of your own, load its plug-in file)"),
        ("zzz", "unknown colour 'zzz'; choose from digits, hex (for one of your own, load its plug-in file)"),
        (
            "z" * 100,
            f"unknown colour '{'z' * 57}...'; choose from digits, hex (for one of your own, load its plug-in file)",
        ),
        ("a\nb", r"unknown colour 'a\nb'; choose from digits, hex (for one of your own, load its plug-in file)"),
    ],
)
def test_an_unknown_name(colours: Registry[str], asked: str, message: str) -> None:
    with pytest.raises(UnknownPluginError) as caught:
        colours.load(asked)
    assert str(caught.value) == message
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import no_such_package", "cannot be imported: ModuleNotFoundError: No module named 'no_such_package'"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
        ("raise RuntimeError('one\\ntwo')", "cannot be imported: RuntimeError: one two"),
        ("BLUE = 1", "cannot be imported: AttributeError: module 'plugins_broken' has no attribute 'RED'"),
        ("RED = 7", "is 7, which is not a colour"),
    ],
    ids=["import", "exit", "two lines", "no attribute", "wrong type"],
)
def test_an_entry_point_that_cannot_be_used_fails_alone(
    colours: Registry[str], install: Install, text: str, why: str
) -> None:
    install("plugins_broken", text, red="plugins_broken:RED")
    message = f"colour 'red' (plugins_broken:RED of plugins_broken 1.5): {why}"
    with pytest.raises(PluginError) as caught:
        colours.load("red")
    assert str(caught.value) == message
    assert colours.listing()[-1] == ListedPlugin("red", None, "plugins_broken 1.5", message)
    assert colours.load("digits") == "0123456789"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("hex", "the name belongs to a built-in colour; choose another one"),
        ("dark red", "a name consists of letters, digits, '.', '_' and '-', and does not start with '.' or '-'"),
        ("../red", "a name consists of letters, digits, '.', '_' and '-', and does not start with '.' or '-'"),
        ("r" * 65, "a name has at most 64 characters"),
    ],
)
def test_a_name_that_no_plugin_can_have(colours: Registry[str], install: Install, name: str, why: str) -> None:
    install("plugins_named", "RED = 'red'", entries=f"{name} = plugins_named:RED")
    assert colours.names() == ["digits", "hex"]
    assert colours.listing()[-1] == ListedPlugin(name, None, "plugins_named 1.5", why)
    with pytest.raises(PluginError) as caught:
        colours.register(name, "red")
    assert str(caught.value) == f"colour {name!r}: {why}"


def test_a_reserved_name() -> None:
    with pytest.raises(PluginError, match="colour 'none': flmarket uses this name itself; choose another one"):
        Registry("colour", "test.colours", {}, reserved=["none"]).register("none", "white")


def test_two_packages_with_the_same_name(colours: Registry[str], install: Install) -> None:
    install("plugins_first", "RED = 'red'", red="plugins_first:RED")
    install("plugins_second", "RED = 'crimson'", red="plugins_second:RED")
    loaded = colours.load("red")
    usable, other = colours.listing()[-2:]
    assert (usable.name, usable.thing, usable.problem) == ("red", loaded, None)
    assert (other.thing, other.problem) == (None, f"the name is registered by {usable.source}")


def test_a_decorator_registers_and_returns_what_it_decorates() -> None:
    things: Registry[object] = Registry("thing", "test.things", {})

    @things.decorator("answer")
    def answer() -> int:
        return 42

    assert answer() == 42
    assert things.load("answer") is answer

    @things.decorator("answer")  # a notebook's cell that is run again
    def better() -> int:
        return 43

    assert things.load("answer") is better
    with pytest.raises(PluginError, match=r'the decorator needs the name of the thing: write \("name"\) after it'):
        things.decorator(answer)  # type: ignore[arg-type]


def test_who_may_register_a_name_again() -> None:
    things: Registry[object] = Registry("thing", "test.things", {})
    with things.registering("a.py", "text 1"):
        things.register("one", 1)
        with pytest.raises(PluginError, match="thing 'one': is registered twice"):
            things.register("one", 2)

    def load_b() -> None:
        with things.registering("b.py", None):
            things.register("two", 2)
            things.register("one", 2)

    with pytest.raises(PluginError, match=r"thing 'one': is already registered by a\.py"):
        load_b()
    assert things.names() == ["one"]  # nothing is left of the file that failed
    with pytest.raises(PluginError, match=r"thing 'one': is already registered by a\.py"):
        things.register("one", 3)
    with things.registering("a.py", "text 2"):  # a new text of the same file replaces what the old one registered
        things.register("three", 3)
    assert things.names() == ["three"]
    assert things.registered["three"].origin == "text 2"


def test_a_package_may_use_the_decorator_as_well(install_package: Callable[..., None]) -> None:
    source = """
from tests_fl_things import things

@things.decorator("answer")
def answer():
    return 42
"""
    things: Registry[Callable[[], int]] = Registry("thing", "test.things", {})
    holder = ModuleType("tests_fl_things")
    holder.things = things  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tests_fl_things", holder)
        install_package("plugins_both", source, "test.things", answer="plugins_both:answer")
        assert things.load("answer")() == 42
    assert not things.registered
    assert [(entry.name, entry.source, entry.problem) for entry in things.listing()] == [
        ("answer", "plugins_both 1.5", None)
    ]


def test_the_line_about_a_plugin_is_its_summary_or_the_first_of_its_docstring() -> None:
    class Documented:
        """What it does.

        And how.
        """

    class Summed(Documented):
        summary = "In short.\nIn long."

    lines = [summary(thing) for thing in (Documented, Summed, object())]
    assert lines == ["What it does.", "In short.", "The base class of the class hierarchy."]
    assert summary(SimpleNamespace(summary="", __doc__=None)) == ""
    assert summary(SimpleNamespace(__doc__="\n   Indented.\n")) == "Indented."


def test_what_is_built_in_is_a_module_each_that_is_found_by_itself_or_stands_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "colours_that_come"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "dark_red.py").write_text('__all__ = ["Red"]\nclass Red: ...\n')
    (package / "sky.py").write_text('__all__ = ["Sky"]\nclass Sky: ...\n')
    monkeypatch.syspath_prepend(tmp_path)
    found = built_in("colours_that_come", hex_digits="string:hexdigits")
    assert list(found) == ["dark-red", "hex-digits", "sky"]
    registry: Registry[object] = Registry("colour", "test.colours", found)
    assert [getattr(registry.load(name), "__name__", name) for name in found] == ["Red", "hex-digits", "Sky"]
    assert registry.load("hex-digits") == "0123456789abcdefABCDEF"


class Pot:
    """A pot of paint, which a painter gets."""

    def __init__(self, painter: str, *, name: str = "white", litres: int = 1) -> None:
        if litres < 1:
            raise ValueError("litres must be at least 1")
        self.painter, self.name, self.litres = painter, name, litres


@pytest.fixture
def pots() -> Registry[type[Pot]]:
    registry: Registry[type[Pot]] = Registry("pot", "test.pots", {}, whose=lambda painter: f" of {painter}")
    registry.register("plain", Pot)
    return registry


def test_a_registry_creates_what_it_names_with_the_options_of_a_scenario(pots: Registry[type[Pot]]) -> None:
    pot = pots.create("plain", "Ada", name="red", litres=2)  # an option may be called as a parameter of ours
    assert (pot.painter, pot.name, pot.litres) == ("Ada", "red", 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"liters": 2}, "pot 'plain' of Ada takes no option 'liters'; did you mean 'litres'?"),
        ({"painter": "Bea"}, "pot 'plain' of Ada takes no option 'painter'; choose from name, litres"),
        ({"litres": 0}, "pot 'plain' of Ada: litres must be at least 1"),
    ],
)
def test_options_that_a_plugin_does_not_take(pots: Registry[type[Pot]], options: dict[str, object], said: str) -> None:
    with pytest.raises(OptionsError) as caught:
        pots.create("plain", "Ada", **options)
    assert str(caught.value).startswith(said)
    assert (next(iter(options)) in dict(pots.wrong_options("plain", options))) == (options != {"litres": 0})


def test_a_thing_has_the_name_under_which_it_is_registered_or_built_in(colours: Registry[str]) -> None:
    builtin: Registry[object] = Registry("thing", "test.things", {"pot": f"{__name__}:Pot", "own": 7})
    assert (builtin.name_of(7), builtin.name_of(8)) == ("own", None)
    colours.register("red", "crimson")
    assert (colours.name_of("crimson"), colours.name_of("scarlet")) == ("red", None)


def test_classes_without_a_name_are_registered_by_that_of_the_class(pots: Registry[type[Pot]]) -> None:
    big = type("BigPot", (Pot,), {"__module__": "notebook"})
    assert pots.names_of(["plain", big, Pot, big]) == ["plain", "big-pot", "plain", "big-pot"]
    assert pots.load("big-pot") is big
    again = type("BigPot", (Pot,), {"__module__": "notebook"})
    assert (pots.names_of([again]), pots.load("big-pot")) == (["big-pot"], again)
    with pytest.raises(PluginError, match=r"two pots are called 'big-pot'; give one .* with @flmarket.pot\(NAME\)"):
        pots.names_of([big, type("BigPot", (Pot,), {"__module__": "notebook"})])
