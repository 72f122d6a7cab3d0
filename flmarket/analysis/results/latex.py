r"""A report's tables as LaTeX, with the rules of the package booktabs: to be \input, or to copy single tables from."""

import re
from collections.abc import Sequence

from flmarket.analysis.results.markdown import Table, introduction, tables
from flmarket.analysis.results.report import Report
from flmarket.core.printable import printable

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "†": r"\textdagger{}",
    "<": "$<$", ">": "$>$", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


def latex(report: Report, made_by: Sequence[str] = ()) -> str:
    """Return the tables of a report; what must be known to read them stands in front as comments."""
    lines = [*made_by, r"needs \usepackage{booktabs}", *introduction(report)]
    parts, label = ["\n".join(f"% {printable(line)}" for line in lines)], ""
    for part in tables(report):
        if part.setting:
            label = f"{part.heading}: "
        title = label + part.title  # a sweep's says what it is of
        parts.append(_table(title, part.table))
        if part.more:
            parts.append(_table(f"{title}, more measures", part.more))
    return "\n\n".join(parts) + "\n"


def _table(title: str, table: Table) -> str:
    header, *rows = [" & ".join(map(_literal, row)) + r" \\" for row in table]
    body = [r"\toprule", header, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            f"  \\caption{{{_literal(title)}}}",
            f"  \\begin{{tabular}}{{l{'r' * (len(table[0]) - 1)}}}",
            *(f"    {line}" for line in body),
            r"  \end{tabular}",
            r"\end{table}",
        ]
    )


def _literal(text: str) -> str:
    """Return a text as LaTeX that shows it as it is; minus signs are not hyphens."""
    special = "".join(_SPECIAL.get(sign, sign) for sign in printable(text))
    return re.sub(r"(?<![\w$])-(?=\d)", "$-$", special)
