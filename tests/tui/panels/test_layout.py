"""What the panels of the market share: a new one needs its own module, a place in PANELS and a part of the grid."""

import re
from pathlib import Path

import pytest

import tui.screens.market
from tui.panels.layout import PANELS
from tui.panels.panel import Panel

STYLES = Path(tui.screens.market.__file__).with_name("market.tcss").read_text()


def test_a_panel_stands_at_the_place_of_its_number() -> None:
    assert [panel.NUMBER for panel in PANELS] == list(range(1, len(PANELS) + 1))


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_has_a_name_a_help_a_key_and_a_part_of_the_grid(panel: type[Panel]) -> None:
    assert panel.NAME
    assert panel.HELP
    keys = {binding.key: binding.action for binding in tui.screens.market.MarketScreen.BINDINGS}
    assert keys[str(panel.NUMBER)] == f"panel({panel.NUMBER})"
    assert f"\n{panel.__name__} {{ column-span: " in STYLES


def test_a_panel_that_takes_the_place_of_others_is_as_wide_as_they_are() -> None:
    spans = {panel: int(re.findall(rf"\n{panel.__name__} {{ column-span: (\d+)", STYLES)[0]) for panel in PANELS}
    for panel in PANELS:
        behind = [other for other in PANELS if other.NUMBER in panel.INSTEAD]
        assert not behind or spans[panel] == sum(spans[other] for other in behind)
