"""Arguments and options that several commands take, and the checks they share."""

from collections.abc import Callable, Sequence
from functools import wraps
from glob import escape, glob
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from flmarket.core.declared import Declared, declared
from flmarket.core.errors import InputError
from flmarket.core.tracking import hide
from scenarios.builtin import builtin_names
from scenarios.file.overrides import AddressError, parse_assignment
from scenarios.running.run_options import Place, parse_seeds


def scenario_names(incomplete: str) -> list[str]:
    """Return the built-in scenarios, files and folders that begin so, for the shell's completion."""
    paths = sorted(glob(f"{escape(incomplete)}*"))  # noqa: PTH207 - which takes no absolute path
    below = [f"{it}/" if Path(it).is_dir() else it for it in paths]
    return [name for name in (*builtin_names(), *below) if name.startswith(incomplete)]


def _names(kind: str) -> Callable[[str], list[str]]:
    def begun(incomplete: str) -> list[str]:
        from flmarket.cli.loading import plugin_names

        return plugin_names(kind, incomplete)

    return begun


# For the shell's completion.
policy_names, mechanism_names, measure_names = map(_names, ("policy", "mechanism", "measure"))


def _assignments(context: typer.Context, incomplete: str) -> list[str]:
    from flmarket.cli.loading import assignment_beginnings

    # The scenarios of a line that ends with --set are all that was not parsed.
    return assignment_beginnings(context.params.get("sources") or context.args, incomplete)


Sources = Annotated[
    list[str],
    typer.Argument(metavar="SCENARIO...", help="Scenario files or built-in names.", autocompletion=scenario_names),
]
Source = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file or a built-in name.", autocompletion=scenario_names)
]
Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Run directories, or folders that contain run directories.")
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value, such as services.mnist.budget=15. Comes after the file and --policy. Repeatable.",
        autocompletion=_assignments,
    ),
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="Load a file of your own with policies, models, data sets, mechanisms, measures and the like. Repeatable.",
    ),
]
Figures = Annotated[
    Path | None, typer.Option("--figures", metavar="DIR", help="Also write figures, as SVG, PNG and PDF.")
]


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise typer.BadParameter(f"{text!r} is not a seed, such as 7; --seeds takes several, such as 7,8")
    return int(text)


Seed = Annotated[
    list[int] | None,
    typer.Option(parser=_seed, metavar="SEED", help="A single seed, instead of --seeds. Repeatable."),
]


def _quieten(quiet: bool) -> bool:
    if quiet:
        hide()
    return quiet


Options = TypeVar("Options")


def options_of(options: Callable[..., Options]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command with a parameter ``options``: what is declared for these becomes the command's own options."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = [it.replace(kind=Parameter.KEYWORD_ONLY) for it in signature(command).parameters.values()]
        others = [parameter for parameter in parameters if parameter.name != "options"]

        @wraps(command)
        def taking(**values: Any) -> None:
            command(**{other.name: values.pop(other.name) for other in others}, options=options(**values))

        taking.__signature__ = Signature([*others, *map(_parameter, declared(options))])  # type: ignore[attr-defined]
        return taking

    return decorate


def _parameter(option: Declared) -> Parameter:
    kind = {Place: Path, Sequence[str]: list[str]}.get(option.type, option.type)  # as Typer knows it
    names = [f"--{option.name.replace('_', '-')}"] if kind is bool else []  # without a ``--no-...``
    sentence = option.sentence + (" Repeatable." if kind == list[str] else "")
    shown = typer.Option(*names, min=option.least, help=sentence)
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=Annotated[kind, shown])


Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=_quieten, help="Print results only, no progress.")]


def seeds_option(purpose: str, otherwise: str, count: str = "`10`: seeds 0 to 9") -> Any:
    """Return the option ``--seeds``; ``Seed`` goes with it."""
    text = f"{purpose}: a count ({count}), a list (`0,3,7`) or a range (`0..9`). If not given: {otherwise}."
    return typer.Option(metavar="N|LIST|RANGE", help=text, show_default=False)


def seeds_of(seeds: str | None, seed: Sequence[int] | None, otherwise: Sequence[int]) -> Sequence[int]:
    """Return the seeds that ``--seeds`` or ``--seed`` asks for; both together are an InputError."""
    if seeds is not None and seed:
        raise InputError("choose one of --seeds, a count, a list or a range, and --seed, which is one each time")
    if seed:
        return list(dict.fromkeys(seed))
    return otherwise if seeds is None else parse_seeds(seeds)


def parse_options(texts: Sequence[str]) -> dict[str, Any]:
    """Read ``--option key=value``; values as in TOML, and bare words as text."""
    options: dict[str, Any] = {}
    for text in texts:
        try:
            name, value = parse_assignment(text)
        except AddressError as error:
            raise InputError(f"--option {text}: {error}") from error
        if name in options:
            raise InputError(f"--option {name}: is given twice; leave one out")
        options[name] = tuple(value) if isinstance(value, list) else value
    return options


def load_plugins(files: list[Path] | None) -> None:
    """Load the files of ``--plugin``, if any; a PluginError names the file and the line of what cannot be used."""
    if files:
        from scenarios.plugin_files import load_plugin  # and with it all that can be registered

        for file in files:
            load_plugin(file)
