"""A picture of where a command's time goes, from what py-spy has sampled (``pip install py-spy``).

    py-spy record --subprocesses --rate 500 --format raw --output run.txt -- flmarket run quickstart --fresh
    python benchmarks/flames.py run.txt run.svg

Each box is a function, as wide as its share of the samples; below it is what it calls. Modules that import others count
as functions. Boxes narrower than a hundredth are left out.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path

WIDTH, ROW, LETTER, LEAST = 1200, 16, 6.2, 0.01
COLOURS = {
    "torch": "#f4a582", "numpy": "#d6c1de", "pandas": "#d6c1de", "scipy": "#d6c1de", "pydantic": "#c7e0c0",
    "fl": "#92c5de", "des": "#92c5de", "learning": "#92c5de", "scenarios": "#92c5de", "flmarket": "#92c5de",
    "tui": "#92c5de",
}  # fmt: skip
"""By package; flmarket's own are blue."""
FRAME = re.compile(r"(?P<name>.+) \((?P<file>[^()]*?)(:\d+)?\)$")
HIDDEN = re.compile(r"^\s*process \d+|<frozen |threading\.py")


def stacks(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each stack of frames, the outermost first, and how often it was seen."""
    for frames, seen in re.findall(r"(.*?) (\d+)\n", text, re.DOTALL):  # a process's name may have more than one line
        yield tuple(filter(None, map(label, frames.split(";")))), int(seen)


def label(frame: str) -> str:
    """Return a frame as "file: function" without line numbers, or nothing for the machinery of imports and threads."""
    found = FRAME.match(frame)
    if found is None or HIDDEN.search(frame):
        return ""
    file = found["file"].removesuffix(".py").replace("/__init__", "")
    return file if found["name"] == "<module>" else f"{file}: {found['name']}"


def boxes(counted: Counter[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield each box: its path of frames, the samples to its left, its own samples."""
    total = counted.total()

    def below(path: tuple[str, ...], left: int) -> Iterator[tuple[tuple[str, ...], int, int]]:
        children: Counter[str] = Counter()
        for stack, seen in counted.items():
            if stack[: len(path)] == path and len(stack) > len(path):
                children[stack[len(path)]] += seen
        for name, seen in children.most_common():
            if seen >= LEAST * total:
                yield (*path, name), left, seen
                yield from below((*path, name), left)
            left += seen

    return below((), 0)


def picture(counted: Counter[tuple[str, ...]]) -> str:
    """Return the boxes as SVG."""
    total, found = counted.total(), list(boxes(counted))
    height = ROW * max(len(path) for path, _, _ in found)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" '
        'font-size="10">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for path, left, seen in found:
        x, y, width = WIDTH * left / total, ROW * (len(path) - 1), WIDTH * seen / total
        colour = COLOURS.get(re.split(r"[/:]", path[-1])[0], "#dddddd")
        text = path[-1][: max(0, int(width / LETTER) - 1)]
        lines.append(
            f'<g><title>{escape(path[-1])}: {100 * seen / total:.1f} %</title><rect x="{x:.1f}" y="{y}" '
            f'width="{max(0.5, width - 0.5):.1f}" height="{ROW - 1}" fill="{colour}"/>'
            f'<text x="{x + 2:.1f}" y="{y + ROW - 5}">{escape(text)}</text></g>'
        )
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path, help="file of py-spy, in its format raw")
    parser.add_argument("picture", type=Path, help="SVG file to write")
    arguments = parser.parse_args()
    counted: Counter[tuple[str, ...]] = Counter()
    for stack, seen in stacks(arguments.samples.read_text()):
        counted[stack] += seen
    arguments.picture.write_text(picture(counted))


if __name__ == "__main__":
    main()
