"""The place of a mistake: the user's own code, not flmarket's or that of a library that it called."""

import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from flmarket.core import plugin_errors
from flmarket.core.errors import InputError, RunError
from flmarket.core.plugin_errors import PluginFailed, blame, is_own, method, plugin_code


def mistake() -> None:
    int("x")


@pytest.mark.parametrize("raised", [ValueError("no"), SystemExit(0)])
def test_what_a_plugin_raises_says_what_it_was_to_do_and_where(raised: BaseException) -> None:
    with pytest.raises(PluginFailed) as told, plugin_code("policy 'mine' failed to act"):
        raise raised
    assert str(told.value).startswith(f"policy 'mine' failed to act: {type(raised).__name__}: {raised} ({__file__}:")
    assert told.value.__cause__ is raised


@pytest.mark.parametrize("passing", [KeyboardInterrupt(), InputError("wrong"), RunError("failed")])
def test_ctrl_c_and_the_errors_of_flmarket_stay_as_they_are(passing: BaseException) -> None:
    with pytest.raises(type(passing)) as found, plugin_code("failed"):
        raise passing
    assert found.value is passing


def test_a_defect_of_flmarket_is_not_put_down_to_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_errors, "is_own", lambda _: False)
    with pytest.raises(ValueError, match="no"), plugin_code("failed"):
        raise ValueError("no")


def test_the_place_is_the_last_line_of_the_users_own_also_where_the_error_was_raised_again() -> None:
    place = f"{__file__}:{mistake.__code__.co_firstlineno + 1}, in mistake"
    try:
        mistake()
    except ValueError as error:
        cause = error
    again = ValueError(*cause.args)  # as SimPy does
    again.__cause__ = cause
    for error in (cause, again):
        assert blame(error) == f"ValueError: invalid literal for int() with base 10: 'x' ({place})"


def test_whose_code_a_file_is(install_package: Callable[..., None]) -> None:
    site = Path(sysconfig.get_path("purelib"))
    install_package("acme_policies", "", "flmarket.policies", mine="acme_policies.mine:Mine")
    is_own.cache_clear()
    plugin_errors._modules_with_plugins.cache_clear()
    assert is_own("mine.py")
    assert is_own(str(site / "acme_policies" / "mine.py"))
    assert not is_own(str(site / "numpy" / "__init__.py"))
    assert not is_own(plugin_errors.__file__)
    assert not is_own(str(Path(sysconfig.get_path("stdlib")) / "json" / "__init__.py"))
    assert not is_own("<frozen runpy>")
    is_own.cache_clear()
    plugin_errors._modules_with_plugins.cache_clear()


def test_a_method_is_named_with_its_line_where_it_is_the_users_own() -> None:
    class Mine:
        def act(self) -> None: ...

    assert method(Mine(), "act") == f"Mine.act() ({__file__}:{Mine.act.__code__.co_firstlineno})"
    assert method(Path(), "resolve") == "PosixPath.resolve()"
