"""The recording in the README: pictures of a terminal in one that plays by itself."""

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

SCREENSHOTS = Path(__file__).parents[2] / "docs" / "screenshots"


@pytest.fixture
def animate(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [str(SCREENSHOTS), *sys.path])
    import animate

    return animate


def picture(words: str) -> str:
    fonts = '@font-face { font-family: "X"; src: url("https://fonts.example/x.woff") }'
    return (
        f'<svg viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg"><style>{fonts}</style><text>{words}</text></svg>\n'
    )


def test_frames_are_shown_one_after_the_other_for_their_seconds(animate) -> None:
    svg = animate.animated([(picture("one"), 1), (picture("two"), 3)])
    tree = ET.fromstring(svg)  # noqa: S314 - our own
    groups = tree.findall("{http://www.w3.org/2000/svg}g")
    assert [group.get("class") for group in groups] == ["frame frame-0", "frame frame-1"]
    assert "".join(groups[1].itertext()).strip() == "two"
    [first, second] = re.findall(r"@keyframes show-\d \{ (.*) \}", svg)
    assert first == "0.000% { visibility: visible; } 25.000% { visibility: hidden; }"
    assert second == "0% { visibility: hidden; } 25.000% { visibility: visible; }"
    assert svg.count("4s step-end infinite") == 2


def test_what_is_no_picture_is_refused(animate) -> None:
    with pytest.raises(ValueError, match="not an SVG picture"):
        animate.animated([("words", 1)])


def test_no_picture_of_ours_fetches_anything(animate) -> None:
    assert "fonts.example" not in animate.local(picture("one"))
    pictures = sorted(SCREENSHOTS.glob("*.svg"))
    assert {"home.svg", "market.svg", "recording.svg"} <= {path.name for path in pictures}
    for path in pictures:
        text = path.read_text(encoding="utf-8")
        assert "url(" not in text.replace("url(#", ""), path.name
        assert "@font-face" not in text, path.name
