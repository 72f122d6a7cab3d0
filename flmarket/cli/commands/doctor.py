"""``flmarket doctor``: what runs on this machine, and what to do about what does not."""

import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from flmarket.cli.console import result
from flmarket.core.installation import EXTRAS, install_command, usable_cores
from flmarket.core.rich_console import stdout
from flmarket.core.text import counted

LITTLE_SPACE = 2 * 2**30  # free bytes; the largest data set needs 1.2 GiB, with its archive
_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


class Diagnosis(NamedTuple):
    """The finding of one check."""

    state: Literal["ok", "note", "problem"]  # note: flmarket works, but something is slower or missing
    subject: str
    finding: str
    remedy: str = ""


def doctor() -> None:
    """Check what runs here: packages, kernel, data sets, GPU, cores; and what to do about each shortfall."""
    table = Table.grid(padding=(0, 2))
    problems = 0
    for state, subject, finding, remedy in _checkup():
        problems += state == "problem"
        table.add_row(Text(state, _STYLES[state]), subject, finding + (f"\n-> {remedy}" if remedy else ""))
    stdout().print(table, highlight=False)
    if problems:
        result(f"{counted(problems, 'problem')}; flmarket may not work until solved.")
        raise typer.Exit(1)
    result("flmarket works here.")


def _checkup() -> Iterator[Diagnosis]:
    for check in (_machine, _packages, _torch, _kernel, _data):
        try:
            yield from check()
        except Exception as error:  # a broken part must not hide the others
            yield Diagnosis("problem", check.__name__.strip("_"), str(error) or type(error).__name__)


def _machine() -> Iterator[Diagnosis]:
    import platform

    yield Diagnosis("ok", "Python", f"{platform.python_version()} on {platform.platform()}, {sys.executable}")
    yield Diagnosis("ok", "cores", f"{usable_cores()} of {os.cpu_count()} may be used by this process")
    yield _space("runs", Path.cwd() / "runs", "--out sets the folder")


def _packages() -> Iterator[Diagnosis]:
    from importlib import metadata

    from packaging.requirements import Requirement

    lacking: dict[str, list[str]] = defaultdict(list)  # by extra; "" for what is always needed
    try:
        yield Diagnosis("ok", "flmarket", metadata.version("flmarket"))
    except metadata.PackageNotFoundError:
        yield Diagnosis("note", "flmarket", "is not installed: this is a bare checkout", install_command("."))
        return
    for requirement in map(Requirement, metadata.requires("flmarket") or ()):
        extra = next((name for name in EXTRAS if f'extra == "{name}"' in str(requirement.marker)), "")
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue  # for developers, or for another Python
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            lacking[extra].append(f"{requirement.name} is not installed")
        else:
            if not requirement.specifier.contains(version, prereleases=True):
                lacking[extra].append(f"{requirement.name} is {version}, not {requirement.specifier}")
    if needed := lacking.pop("", None):
        yield Diagnosis("problem", "packages", "; ".join(needed), "reinstall flmarket")
    for extra, problems in lacking.items():
        remedy = f"{install_command(f'flmarket[{extra}]')} for {EXTRAS[extra]}"
        yield Diagnosis("note", f"extra {extra}", "; ".join(problems), remedy)


def _torch() -> Iterator[Diagnosis]:
    if find_spec("torch") is None:
        return
    import torch

    from fl.data.torchvision_files import torchvision_datasets

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU found, and none needed"
    yield Diagnosis("ok", "torch", f"{torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {gpu}")
    try:
        torchvision_datasets()
    except Exception as error:
        remedy = "install the torchvision that belongs to this torch; only downloads of data sets need it"
        yield Diagnosis("note", "torchvision", f"does not import: {error}", remedy)


def _kernel() -> Iterator[Diagnosis]:
    from fl.arithmetic.native import kernel_problem
    from fl.training import fused

    if fused.available():
        yield Diagnosis(
            "ok", "kernel", fused.kernel_name()
        )  # raises where FLMARKET_KERNEL names none of this machine's
    else:
        remedy = "install a C++ compiler (g++ or clang++) and install flmarket again; until then, plain torch trains"
        yield Diagnosis("note", "kernel", f"the fused kernel {kernel_problem()}", remedy)


def _data() -> Iterator[Diagnosis]:
    from fl.data.registry import BUILTIN, DatasetError, data_root

    root = data_root()
    sources = [source for source in BUILTIN.values() if source.info.source == "download"]
    there = [source for source in sources if source.present(root)]
    good = []
    for source in there:
        try:
            official = source.load(root, download=False).official
            good.append(source.info.name + ("" if official else " (unofficial)"))
        except DatasetError as error:
            yield Diagnosis("problem", source.info.name, str(error))
    yield Diagnosis("ok", "data sets", f"in {root}: {', '.join(good) or 'none yet'}")
    if len(there) < len(sources):
        yield _space("downloads", root, "other data sets cannot be downloaded; FLMARKET_DATA sets the folder")


def _space(subject: str, folder: Path, note: str) -> Diagnosis:
    """Return whether files can be made in a folder, or in the first folder above that is there, and the free space."""
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    free = shutil.disk_usage(there).free
    space = f"{folder}: {free / 2**30:.1f} GiB free"
    if not os.access(there, os.W_OK | os.X_OK):
        return Diagnosis("note", subject, f"{there} cannot be written", note)
    return Diagnosis("note", subject, space, note) if free < LITTLE_SPACE else Diagnosis("ok", subject, space)
