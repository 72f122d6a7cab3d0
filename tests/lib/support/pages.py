"""Contents of pages: their links, their fenced blocks, the commands and scripts that they tell a reader to type."""

import argparse
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flmarket.cli.program import app
from support.benchmarks import printed

ROOT = Path(__file__).parents[3]
RESEARCH = ROOT / "research"


def of(page: Path) -> str:
    """Return a page's path as tests show it."""
    return str(page.relative_to(ROOT))


def links(page: Path) -> list[str]:
    """Return the targets of a page's links and pictures to files and headings, code left out."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


def goal(page: Path, target: str) -> Path:
    """Return the file that a link leads to."""
    place = target.partition("#")[0]
    return (page.parent / place).resolve() if place else page


def leads_somewhere(page: Path, target: str) -> bool:
    """Whether a link's file exists, and has the heading that the link names."""
    anchor, file = target.partition("#")[2], goal(page, target)
    return file.exists() and (not anchor or anchor in anchors(file))


def blocks(text: str, *languages: str) -> list[str]:
    """Return the fenced blocks of some languages."""
    return [body for language, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S) if language in languages]


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each line that is a flmarket command: in a fenced block, or indented by four spaces."""
    fenced = False
    for line in re.sub(r" \\\n\s*", " ", text).splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif found := re.match(r"(?:\$ )?(flmarket .*)" if fenced else r" {4}(flmarket .*)", line):
            yield shlex.split(re.sub(r"\s{2,}\S.*$", "", found[1]), comments=True)  # what follows is an explanation


def parse(words: list[str]) -> None:
    """Parse a flmarket command line without running it; what ``>`` redirects is left out."""
    if ">" in words:
        words = words[: words.index(">")]
    parsed = app.make_context("flmarket", words[1:])
    while hasattr(parsed.command, "commands") and (rest := [*parsed._protected_args, *parsed.args]):
        name, found, rest = parsed.command.resolve_command(parsed, rest)
        parsed = found.make_context(name, rest, parent=parsed)


def scripts(page: Path) -> list[list[str]]:
    """Return the command lines of a page that start a script of ours with Python; optional arguments are given."""
    lines = re.findall(r"`python (\w+/[^`]+)`|^ {4}python (\w+/.*)$", page.read_text(encoding="utf-8"), re.M)
    return [shlex.split(re.sub(r"[\[\]]", "", inline or block)) for inline, block in lines]


class Understood(Exception):  # noqa: N818 - it is good news
    """A script has read its arguments, and would now begin."""


def understands(words: list[str]) -> None:
    """Let a script import all it needs and read its arguments, and end it there."""
    parse_args = argparse.ArgumentParser.parse_args

    def read(*given: Any) -> None:
        parse_args(*given)
        raise Understood

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", read)
        with pytest.raises(Understood):
            printed(*words)
