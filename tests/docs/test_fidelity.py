"""docs/fidelity.md: what it says of built-in rules is what they say of themselves, and their tests exist."""

import re

from fidelity import names_a_source, rules, statements, table
from scenarios.file.reference import renewed
from support.pages import ROOT


def test_the_table_is_what_the_rules_say() -> None:
    """If this fails: ``PYTHONPATH=tools python -m fidelity docs/fidelity.md``."""
    page = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
    assert page == renewed(page, table())


def test_every_rule_that_names_a_source_says_how_far_it_follows_it() -> None:
    assert not [(kind, name) for kind, name, rule in rules() if names_a_source(rule) and not statements(rule)]


def test_no_paragraph_on_fidelity_is_misspelt() -> None:
    for kind, name, rule in rules():
        assert (rule.__doc__ or "").count("Fidelity to") == len(statements(rule)), (kind, name)


def test_what_is_off_says_by_how_much() -> None:
    off = [it for _, _, rule in rules() for it in statements(rule) if it.how.startswith("off by")]
    assert off
    assert all(re.search(r"\d", it.how) for it in off)


def test_every_test_that_is_named_exists() -> None:
    named = [test for _, _, rule in rules() for it in statements(rule) for test in it.tests]
    assert named
    for test in named:
        file, _, function = test.partition("::")
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"def {re.escape(function)}\(", source), test
