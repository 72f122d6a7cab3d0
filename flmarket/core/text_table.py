"""A table of texts as Markdown, HTML and LaTeX; ``flmarket.core.rich_console`` draws it in a terminal."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from flmarket.core.text import printable

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; font-size: 13px }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ccc; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { border-bottom: 2px solid #555 }
figure { margin: 2rem 0 } summary { cursor: pointer } pre { overflow-x: auto } svg { max-width: 100%; height: auto }
code { user-select: all }
"""

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "†": r"\textdagger{}",
    "<": "$<$", ">": "$>$", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table: its first column names the rows, and stands left; the others stand right, as numbers do."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def transposed(self) -> "TextTable":
        """Return the table with a row for each column but the first, whose name it loses."""
        (_, *names), *rows = zip(self.header, *self.rows, strict=True)
        return TextTable(self.title, ["", *names], rows)

    def markdown(self) -> str:
        """Return the table without its title."""
        header, *rows = [[markdown_literal(cell) for cell in row] for row in (self.header, *self.rows)]
        lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def html(self) -> str:
        """Return the table without its title, for an ``html_document``."""
        header, *rows = [[html.escape(cell) for cell in row] for row in (self.header, *self.rows)]
        head = "".join(f"<th>{cell}</th>" for cell in header)
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def latex(self) -> str:
        """Return the table with its title, and the rules of the package booktabs."""
        header, *rows = [" & ".join(map(_latex_literal, row)) + r" \\" for row in (self.header, *self.rows)]
        body = "\n".join(f"    {line}" for line in [r"\toprule", header, r"\midrule", *rows, r"\bottomrule"])
        return (
            f"\\begin{{table}}\n  \\centering\n  \\caption{{{_latex_literal(self.title)}}}\n"
            f"  \\begin{{tabular}}{{l{'r' * (len(self.header) - 1)}}}\n{body}\n  \\end{{tabular}}\n\\end{{table}}"
        )


def html_document(title: str, parts: Sequence[str]) -> str:
    """Return a self-contained page of some parts, which are HTML already."""
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def markdown_literal(text: str) -> str:
    """Return a text as Markdown that shows it as it is: neither HTML, nor a link, nor the end of a cell."""
    return re.sub(r"[\\`|]|<(?=[a-zA-Z/!?])|\](?=[(\[])", r"\\\g<0>", printable(text))


def _latex_literal(text: str) -> str:
    """Return a text as LaTeX that shows it as it is; minus signs are not hyphens."""
    special = "".join(_SPECIAL.get(sign, sign) for sign in printable(text))
    return re.sub(r"(?<![\w$])-(?=\d)", "$-$", special)
