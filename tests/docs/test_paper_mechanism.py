"""The page on another paper's mechanism has the fields of what mechanisms and services are given."""

import re
from dataclasses import fields

import pytest

from des.mechanism import Book, Deliveries, RoundView
from des.observation import Feedback
from support.pages import ROOT

PAGE = ROOT / "docs" / "extending" / "paper_mechanism.md"


@pytest.mark.parametrize("kind", [Book, Deliveries, Feedback, RoundView])
def test_a_table_has_every_field_in_its_order(kind: type) -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.split(f"| field of `{kind.__name__}` |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == [field.name for field in fields(kind)]
