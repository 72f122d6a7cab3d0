"""The document behind the form: a file whose values change keeps its comments, its layout and all else."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flmarket.core.installation import ROOT
from scenarios.file.keys import keys
from scenarios.file.problems import Path as KeyPath
from tui.state.scenario_document import ScenarioDocument

FILES = [
    *ROOT.glob("scenarios/builtin/*.toml"),
    *ROOT.glob("papers/*/scenario.toml"),
    *ROOT.glob("scenarios/suite/*/markets/*.toml"),
]
SERVICES, GROUPS, INTERVENTIONS = ("services",), ("clients", "groups"), ("interventions",)

MARKET = """\
# A market.

name = "small" # short
rounds = 12    # enough

# The clients:
# they are few.
[clients]
count = 3
cores = 1 # of each
# speed = [1, 2]

# The first.
[[services]]
name = "one" # of two
budget = 3

# ---- Rich ones ----

# The second.
[[services]]
name = "two"
budget = 30 # a lot

# Every value is a scenario.
[sweep]
"clients.cores" = [1, 2]
"""

ODD = {
    "dotted": 'name = "a"\nclients.count = 3 # C\nclients.cost.per_sample = 1\n\n[training]\n'
    'aggregation.kind = "median"\n',
    "inline": 'clients = { count = 3, cost.unit.each = "client" }\nservices = [\n  { name = "a" }, # the first\n'
    '  { name = "b", budget = 3 },\n]\nsweep = {}\nruns = [] # none\n',
    "out of order": '[clients.lasting]\ndrift = 0.1\n\n[[services]]\nname = "a"\n[services.policy_options]\nx = 1\n'
    '# Below.\n[clients]\ncount = 3\n[[services]]\nname = "b"\n\n[clients.cost]\nper_sample = 1',
    "wrong": "clients = 5\nservices = [5]\ntraining = true\nsweep = [1]\ninterventions = 1\n",
    "long values": 'description = """\n# no comment\n[none]\n"""\n'
    "[clients]\ndata_size = [\n  # small\n  1,\n  2, # large\n]\n# last",
    "empty": "",
    "a comment": "# nothing yet\n",
}


def edited(text: str, *edits: tuple[KeyPath, str]) -> str:
    document = ScenarioDocument(text)
    for path, value in edits:
        document.put(path, value)
    return document.text


def added(document: ScenarioDocument, path: KeyPath, **values: str) -> None:
    place = document.add_entry(path, None)
    for key, value in values.items():
        document.put((*path, place, key), value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_without_edits_or_with_edits_taken_back_has_the_same_bytes(path: Path) -> None:
    document = ScenarioDocument(path.read_text())
    before = document.version
    added(document, GROUPS)
    if document.entries(SERVICES):  # streams may be all there is
        document.remove_entry(SERVICES, 0)
    for key in keys():
        document.put(key.path, "7")
    assert document.text != path.read_text()
    document.version = before
    assert document.text == path.read_text()
    for key in ("rounds", "name"):  # emptied, and typed again
        value = json.dumps(document.get((key,)))
        document.put((key,), "")
        document.put((key,), value)
    assert document.text == path.read_text()


def test_a_new_key_stands_above_the_comment_of_the_next_table() -> None:
    text = edited(MARKET, (("clients", "departure_rate"), "0.1"), (("dqi",), '"jiao"'))
    assert "# speed = [1, 2]\ndeparture_rate = 0.1\n\n# The first.\n[[services]]" in text
    assert 'rounds = 12    # enough\ndqi = "jiao"\n\n# The clients:\n# they are few.\n[clients]' in text


def test_a_new_table_stands_where_people_write_it_with_a_blank_line_around_it() -> None:
    text = edited(MARKET, (("timeline", "deadline"), "30"), (("market", "mechanism"), '"vcg"'))
    assert '# speed = [1, 2]\n\n[market]\nmechanism = "vcg"\n\n[timeline]\ndeadline = 30\n\n# The first.\n' in text


def test_a_table_that_loses_its_last_key_goes_but_comments_stay() -> None:
    document = ScenarioDocument(MARKET)
    document.put(("timeline", "deadline"), "30")
    document.put(("timeline", "deadline"), "")
    assert document.text == MARKET
    document.put(("sweep", "clients.cores"), "")
    assert document.text == MARKET.partition("[sweep]")[0]
    text = "[timeline]\n# slot = 3\ndeadline = 2\n\n[training]\nmomentum = 0.5\n"
    assert edited(text, (("timeline", "deadline"), "")) == "# slot = 3\n\n[training]\nmomentum = 0.5\n"


def test_groups_sweeps_and_interventions_are_written_as_people_write_them() -> None:
    document = ScenarioDocument(MARKET)
    added(document, INTERVENTIONS, round="3", key='"clients.cores"', value="2")
    added(document, INTERVENTIONS, round="5")
    added(document, GROUPS, count="2", speed="[8]")
    document.put((*GROUPS, 0, "cost", "per_sample"), "0.04")
    document.put(("sweep", "services.one.budget"), "[10, 20]")
    text = document.text
    assert text.endswith(
        '"clients.cores" = [1, 2]\n"services.one.budget" = [10, 20]\n'
        '\n[[interventions]]\nround = 3\nkey = "clients.cores"\nvalue = 2\n\n[[interventions]]\nround = 5\n'
    )
    group = '[[clients.groups]]\nname = "group-1"\ncount = 2\ncost = { per_sample = 0.04 }\nspeed = [8]\n'
    assert f"# speed = [1, 2]\n\n{group}\n# The first." in text
    document.saved()
    added(document, GROUPS, count="1")
    assert f'{group}\n[[clients.groups]]\nname = "group-2"\ncount = 1\n\n# The first.' in document.text


def test_an_entry_goes_with_its_comments_and_no_others() -> None:
    document = ScenarioDocument(MARKET)
    document.remove_entry(SERVICES, 0)
    assert document.text == MARKET.replace(MARKET[MARKET.index("# The first.") : MARKET.index("# ---- Rich")], "")
    document = ScenarioDocument(MARKET)
    document.remove_entry(SERVICES, 1)
    assert document.text == MARKET.replace(MARKET[MARKET.index("# The second.") : MARKET.index("# Every")], "")
    document.add_entry(SERVICES, 0)
    document.put((*SERVICES, 1, "budget"), "7")
    new = '[[services]]\nname = "one-2"\nbudget = 7\n\n'
    assert document.text == MARKET.replace(MARKET[MARKET.index("# The second.") : MARKET.index("# Every")], new)
    assert document.was((*SERVICES, 0, "budget")) == 3


def test_comments_in_a_list_that_is_replaced_stand_above_it() -> None:
    text = "[clients]\ndata_size = [ # images\n  100, # few\n  200,\n] # drawn\nemd = [0.4]\n"
    assert edited(text, (("clients", "data_size"), "[1, 2]")) == (
        "[clients]\n# images\n# few\ndata_size = [\n    1,\n    2,\n] # drawn\nemd = [0.4]\n"
    )


VALUES = ["", "", "1", "1.0", "0.5", "[1, 2]", "[]", '"a"', "a b", "{ a = 1 }", "[{ x = 1 }]", "true", "1\n[x]", "# x"]


@st.composite
def edits(draw: st.DrawFn) -> list[tuple[str, KeyPath, int, str]]:
    tables = st.sampled_from([(), (), *((*path, i) for path in (SERVICES, GROUPS, INTERVENTIONS) for i in range(2))])

    def edit() -> tuple[str, KeyPath, int, str]:
        match draw(st.sampled_from(["put", "put", "put", "sweep", "add", "remove"])):
            case "put":
                table = draw(tables)
                key = draw(st.sampled_from([key.path for key in keys(table)]))
                return "put", (*table, *key), 0, draw(st.sampled_from(VALUES))
            case "sweep":
                return (
                    "put",
                    ("sweep", draw(st.sampled_from(["clients.cores", "rounds"]))),
                    0,
                    draw(st.sampled_from(VALUES)),
                )
            case kind:
                return kind, draw(st.sampled_from([SERVICES, GROUPS, INTERVENTIONS])), draw(st.integers(0, 2)), ""

    return [edit() for _ in range(draw(st.integers(1, 8)))]


@settings(max_examples=100)  # which takes a second
@given(st.sampled_from([*(path.read_text() for path in FILES), MARKET, *ODD.values()]), edits())
def test_what_is_saved_is_what_was_edited_and_all_comments_stay_where_they_stood(
    text: str, drawn: list[tuple[str, KeyPath, int, str]]
) -> None:
    document = ScenarioDocument(text)
    gone, emptied = set(), set()  # lists that lost entries; keys that are removed, whose comments go with them
    for kind, path, place, value in drawn:
        if kind == "put":
            if all(len(document.entries(path[:i])) > part for i, part in enumerate(path) if isinstance(part, int)):
                if not value.strip() and document.entries(path):
                    gone.add(path)
                document.put(path, value)
                emptied.update(str(part) for part in path if not value.strip())
        elif kind == "add":
            document.add_entry(path, place if place < len(document.entries(path)) else None)
        elif place < len(document.entries(path)):
            document.remove_entry(path, place)
            gone.add(path)
    saved = document.text
    assert json.dumps(tomllib.loads(saved), sort_keys=True) == json.dumps(document.data, sort_keys=True)
    assert "\n\n\n" not in saved or "\n\n\n" in text
    if not gone:
        assert (
            not Counter(re.findall(r"^#.*", text, re.M)) - Counter(re.findall(r"^ *#.*", saved, re.M)) or '"""' in text
        )
        kept = {anchor for _, anchor in anchored(saved)} - emptied
        assert not Counter(pair for pair in anchored(text) if pair[1] in kept) - Counter(anchored(saved))
    document.saved()
    assert (document.text, document.changed) == (saved, False)


def anchored(text: str) -> Iterator[tuple[str, str]]:
    """Yield the comments of a text, each with the key or header on its line, or else on the line below the comment."""
    above: list[str] = []
    for line in re.sub(r'"""(.|\n)*?"""', '""', text).splitlines():
        if line.startswith("#"):
            above.append(line)
            continue
        anchor = re.split(r" *[=#]", line)[0]
        if anchor.strip() and not anchor.startswith(" "):
            comment = re.search(r'#[^"]*$', line)
            yield from ((found, anchor) for found in [*above, *([comment[0]] if comment else [])])
        above = []


def test_a_new_table_has_its_keys_in_the_order_of_the_schema_whatever_was_typed_first() -> None:
    document = ScenarioDocument(MARKET)
    place = document.add_entry(INTERVENTIONS, None)
    for key, text in (("value", "4"), ("key", "services.beta.budget"), ("round", "3")):
        document.put((*INTERVENTIONS, place, key), text, is_text=key == "key")
    document.put(("training", "backend"), "surrogate", is_text=True)
    document.put(("training", "local_epochs"), "2")
    copied = document.add_entry(INTERVENTIONS, place)
    document.put((*INTERVENTIONS, copied, "round"), "")
    document.put((*INTERVENTIONS, copied, "round"), "5")
    text = document.text
    assert text.count('key = "services.beta.budget"\nvalue = 4\n') == 2
    assert "[[interventions]]\nround = 3\nkey = " in text
    assert "[[interventions]]\nround = 5\nkey = " in text
    assert '[training]\nlocal_epochs = 2\nbackend = "surrogate"\n' in text
