"""The hook of mkdocs.yml: it brings pages from outside docs/ into the site, and makes the reference pages.

A link in a page leads where it leads in the repository. `site_path` says where that is on the site.
"""

import posixpath
import re
from collections.abc import Iterator
from inspect import Parameter, cleandoc, isfunction, signature
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import flmarket
from flmarket.cli import main as cli
from flmarket.cli.program import app

ROOT = Path(__file__).parents[2]
OUTSIDE = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "research/README.md", "research/*/*.md"),
    *("papers/*.md", "papers/*/README.md"),
)
LINK = re.compile(r"\[([^][]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
QUOTED = re.compile(": '([^']*)'")  # a type that is written as text, because its import would take long
SEAM_PACKAGES = ("fl", "des", "learning")
FURTHER_SEAMS = (
    "fl.data.dataset.Dataset",
    "fl.data.dataset.DatasetInfo",
    "des.market.Market",
    "learning.environments.parallel_env.MarketEnv",
    "learning.environments.service_env.ServiceEnv",
    "learning.environments.spaces.Codec",
    "learning.lockstep.vector_env.VectorMarketEnv",
)


def site_path(file: str) -> str:
    """Return where a file of the repository is on the site: the README is its front page."""
    renamed = {"README.md": "index.md", "docs/README.md": "pages.md"}
    return renamed.get(file, file.removeprefix("docs/"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, the files that pages link to, and the reference."""
    for file in [file for file in files if file.src_uri == "README.md"]:
        files.remove(file)  # the list of all pages, which goes to another place
    outside = [page for pattern in OUTSIDE for page in sorted(ROOT.glob(pattern))]
    for page in [ROOT / "docs" / "README.md", *outside]:
        files.append(_copy(page, config))
    for page in [*outside, *sorted((ROOT / "docs").rglob("*.md"))]:
        for _, target, _ in LINK.findall(page.read_text(encoding="utf-8")):
            found = (page.parent / target).resolve()
            if found.is_file() and files.get_file_from_path(_site_path_of(found)) is None:
                files.append(_copy(found, config))
    for name, make in REFERENCE.items():
        files.append(File.generated(config, f"reference/{name}.md", content=make()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn the links of a page, which are those of the repository, into those of the site."""
    if page.file.abs_src_path is None:
        return markdown
    source = Path(page.file.abs_src_path)

    def on_site(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        found = (source.parent / target).resolve()
        if not found.exists():
            return link[0]  # code that looks like a link; mkdocs reports a link that is dead
        if found.is_dir():
            found /= "README.md"
            if not found.is_file():
                return text  # a folder: there is nothing to show on the site
        place = posixpath.relpath(_site_path_of(found), posixpath.dirname(page.file.src_uri))
        return f"[{text}]({place}{anchor})"

    return LINK.sub(on_site, markdown)


def _site_path_of(file: Path) -> str:
    return site_path(file.relative_to(ROOT).as_posix())


def _copy(file: Path, config: MkDocsConfig) -> File:
    return File.generated(config, _site_path_of(file), abs_src_path=str(file))


def commands() -> str:
    """Return the page of all commands, read from the command line itself."""
    parts = ["# Commands", "All commands of `flmarket`, with their arguments and options, as `--help` shows them."]
    return "\n\n".join([*parts, *_command("flmarket", app)]) + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    command = context.command  # that of its module
    yield f"## {name}"
    yield cleandoc(command.help or "")
    yield f"    {name} {' '.join(command.collect_usage_pieces(context))}"
    records = [parameter.get_help_record(context) for parameter in command.params if parameter.name != "help"]
    rows = [f"| `{label}` | {meaning} |" for label, meaning in filter(None, records)]
    if rows:
        yield "\n".join(["| argument or option | meaning |", "| --- | --- |", *rows])
    for part, found in getattr(command, "commands", {}).items():
        yield from _command(f"{name} {part}", found)


def errors() -> str:
    """Return the page of exit statuses, which the command's door declares, and of exceptions."""
    [declared] = re.findall(r"Exit status: (.*?)\.\s", cli.__doc__ or "", re.S)
    statuses = [part.split(" ", 1) for part in " ".join(declared.split()).split(", ")]
    rows = "\n".join(f"| `{status}` | {meaning} |" for status, meaning in statuses)
    names = [name for name in flmarket.__all__ if _is_error(getattr(flmarket, name))]
    return "\n\n".join(
        [
            "# Errors and exit statuses",
            "The status with which a command of `flmarket` ends, and the exceptions that the Python interface raises.",
            f"| exit status | meaning |\n| --- | --- |\n{rows}",
            *(f"::: flmarket.{name}" for name in names),
        ]
    )


def python() -> str:
    """Return the page of the Python interface: what is neither a seam nor an error."""
    return _face("Python interface", "All names that `flmarket` exports, but for plug-ins and errors.", seams=False)


def seams() -> str:
    """Return the page of the seams: what plug-ins are made of."""
    text = "The classes, functions and decorators that plug-ins are made of, and what they are given."
    return _face("Plug-in interface", text, seams=True) + "\n\n".join(f"::: {name}" for name in FURTHER_SEAMS)


def _face(title: str, text: str, *, seams: bool) -> str:
    found = {name: getattr(flmarket, name) for name in flmarket.__all__}
    names = [
        name
        for name, what in found.items()
        if not _is_error(what) and (flmarket._ELSEWHERE[name].partition(".")[0] in SEAM_PACKAGES) == seams
    ]
    names.sort(key=lambda name: isinstance(found[name], type))  # the functions come first
    parts = [
        _told(name, found[name])
        if isfunction(found[name]) and hasattr(found[name], "__signature__")
        else f"::: flmarket.{name}"
        for name in names
    ]
    return "\n\n".join([f"# {title}", text, *parts]) + "\n\n"


def _told(name: str, function: Any) -> str:
    """Return the entry of a function whose signature and docstring are made from declared options."""
    text = re.sub(r"^    (\w+): ", r"- `\1`: ", function.__doc__, flags=re.M)
    text = re.sub(r"^(Args|Raises):\n", r"**\1**\n\n", text, flags=re.M)
    parameters = [QUOTED.sub(r": \1", str(each)) for each in signature(function).parameters.values()]
    given = sum(each.kind is not Parameter.KEYWORD_ONLY for each in signature(function).parameters.values())
    lines = "".join(f"    {each},\n" for each in [*parameters[:given], "*", *parameters[given:]])
    return f"## flmarket.{name} {{ #flmarket.{name} }}\n\n```python\n{name}(\n{lines})\n```\n\n{text}"


def _is_error(what: object) -> bool:
    return isinstance(what, type) and issubclass(what, Exception)


REFERENCE = {"commands": commands, "python": python, "plug-ins": seams, "errors": errors}
