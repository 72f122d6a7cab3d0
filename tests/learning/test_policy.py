"""The registry of policies: the built-in ones, those of other packages, and what is said when one cannot be had."""

import inspect
import pickle
from collections.abc import Callable
from dataclasses import replace
from textwrap import dedent

import pytest

from des.observation import Observation, Offer
from flmarket.core.plugin_options import OptionsError
from flmarket.core.plugins import ListedPlugin, PluginError, UnknownPluginError
from learning.policies.hqfa import HighQualityFirst
from learning.policy import AS_CONFIGURED, POLICIES, Policy, PolicyContext, policy


@pytest.fixture
def acme(install_package: Callable[..., None]) -> None:
    """Install a package of somebody else that registers policies, as far as Python can tell."""
    source = dedent("""
        from learning.policy import Policy
        from learning.client_selection.selection import fill_budget

        class Generous(Policy):
            summary = "pays a markup"

            def __init__(self, context, *, markup=0.1):
                super().__init__(context)
                self.markup = markup

            def act(self, observation):
                payments = observation.own_bids + self.markup
                everyone, available = range(observation.clients), observation.available
                return fill_budget(everyone, payments, observation.budget, available=available)

        class Upstart(Generous):
            pass

        def not_a_policy(context):
            return None
    """)
    install_package(
        "acme_policies",
        source,
        "flmarket.policies",
        generous="acme_policies:Generous",
        hqfa="acme_policies:Upstart",
        broken="acme_policies:not_a_policy",
    )


def test_all_built_in_policies_load_and_say_what_they_do() -> None:
    assert POLICIES.names()[: len(POLICIES.builtin)] == list(POLICIES.builtin)
    for name in POLICIES.builtin:
        policy = POLICIES.load(name)
        assert issubclass(policy, Policy)
        assert policy.summary
    assert POLICIES.load("d-first").privileged
    assert not any(
        POLICIES.load(name).privileged for name in ("random", "lcfa", "hqfa")
    )  # the paper's see what it lets them


@pytest.mark.usefixtures("acme")
def test_a_policy_of_another_package_works_by_its_name(observe, context) -> None:
    assert POLICIES.names() == [*POLICIES.builtin, "broken", "generous"]
    policy = POLICIES.create("generous", context, markup=0.5)
    assert policy.context is context
    offer = policy.act(observe([2.0, 3.0]))
    assert offer.payments.tolist() == [2.5, 3.5]


@pytest.mark.usefixtures("acme")
def test_another_package_cannot_replace_a_built_in_policy() -> None:
    assert POLICIES.load("hqfa") is HighQualityFirst
    assert POLICIES.names().count("hqfa") == 1
    problem = "the name belongs to a built-in policy; choose another one"
    assert ListedPlugin("hqfa", None, "acme_policies 1.5", problem) in POLICIES.listing()


@pytest.mark.usefixtures("acme")
def test_what_is_not_a_policy_is_refused(context) -> None:
    message = (
        r"policy 'broken' \(acme_policies:not_a_policy of acme_policies 1\.5\): "
        r"<function not_a_policy at .*> is not a subclass of flmarket\.Policy"
    )
    with pytest.raises(PluginError, match=message):
        POLICIES.create("broken", context)


def test_an_unknown_policy_and_the_nearest_name() -> None:
    """As any plug-in's (tests/flmarket/core/test_plugins.py); another process hands the error over in one piece."""
    with pytest.raises(UnknownPluginError) as caught:
        POLICIES.load("hqf")
    message = "unknown policy 'hqf'; did you mean 'hqfa'? (for one of your own, load its plug-in file)"
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value))) == message  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("options", "said"),
    [({"markup": 1}, " takes no option 'markup'; it has none"), ({"checkpoint": "x"}, " takes no checkpoint")],
)
def test_options_a_policy_does_not_take(context, options: dict[str, object], said: str) -> None:
    with pytest.raises(OptionsError) as caught:
        POLICIES.create("lcfa", context, **options)
    assert str(caught.value).startswith(f"policy 'lcfa' of service 'own'{said}")


def test_a_policy_need_only_act(observe, context) -> None:
    class Hermit(Policy):
        def act(self, observation):
            return Offer.none()

    hermit = Hermit(context)
    seen = observe([1.0])
    assert hermit.learn(seen, hermit.act(seen), feedback=None) is None
    with pytest.raises(TypeError, match="abstract"):
        Policy(context)


def test_a_policy_registered_in_this_process_works_by_its_name(context) -> None:
    @policy("hermit")
    class Hermit(Policy):
        def act(self, observation):
            return Offer.none()

    assert POLICIES.names() == [*POLICIES.builtin, "hermit"]
    assert isinstance(POLICIES.create("hermit", context), Hermit)
    with pytest.raises(PluginError, match=f"policy {AS_CONFIGURED!r}: flmarket uses this name itself"):
        policy(AS_CONFIGURED)(Hermit)
    with pytest.raises(PluginError, match=r"policy 'no': <class 'int'> is not a subclass of flmarket\.Policy"):
        policy("no")(int)


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (OSError("no such table"), "policy 'moody' of service 'alpha': OSError: no such table"),
        (SystemExit(3), "policy 'moody' of service 'alpha': SystemExit: 3"),
    ],
)
def test_whatever_its_constructor_raises_is_a_wrong_option(
    monkeypatch: pytest.MonkeyPatch, make_context, error: BaseException, problem: str
) -> None:
    class Moody(HighQualityFirst):
        def __init__(self, context) -> None:
            raise error

    monkeypatch.setattr(POLICIES, "_registered", {})
    POLICIES.register("moody", Moody)
    with pytest.raises(OptionsError) as caught:
        POLICIES.create("moody", replace(make_context(), service="alpha"))
    assert str(caught.value) == f"{problem} ({__file__}:{inspect.getsourcelines(Moody)[1] + 2}, in Moody.__init__)"


class NothingSeen(Policy):
    def act(self) -> Offer:  # type: ignore[override]
        return Offer.none()


class NothingKnown(Policy):
    def __init__(self) -> None:
        pass

    def act(self, observation: Observation) -> Offer:
        return Offer.none()


def test_a_method_that_cannot_be_called_as_flmarket_calls_it_is_named_with_its_line() -> None:
    line = inspect.getsourcelines(NothingSeen.act)[1]
    with pytest.raises(PluginError) as caught:
        POLICIES.register("nothing-seen", NothingSeen)
    assert str(caught.value) == (
        f"policy 'nothing-seen': NothingSeen.act() ({__file__}:{line}) must take (self, observation)"
    )


def test_so_is_a_class_that_cannot_be_created(context: PolicyContext) -> None:
    line = inspect.getsourcelines(NothingKnown.__init__)[1]
    POLICIES.register("nothing-known", NothingKnown)
    with pytest.raises(OptionsError, match=rf"takes 1 positional argument but 2 were given \(.*:{line}\)$"):
        POLICIES.create("nothing-known", context)
