"""What of flmarket runs on this machine, what does not, and what to do about it: ``flmarket doctor``.

Every check reports what it finds instead of raising: what is broken here must not keep the others from being looked at.
"""

import os
import platform
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from fl.cores import usable_cores
from fl.errors import InputError
from fl.extras import EXTRAS
from fl.installation import ROOT, require_one_place, version
from fl.plugin_errors import describe
from fl.tracking import tracked

State = Literal["ok", "note", "problem"]

LITTLE_SPACE = 2 * 2**30
"""Free bytes below which a disk is worth a word: the largest data set needs 1.2 GiB, with its archive."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    subject: str  # what was looked at
    # ``ok``; ``note``: flmarket works, but something is slower or missing; ``problem``: something is broken
    state: State
    found: str  # what there is
    remedy: str = ""  # what to do about it; empty if there is nothing to do


def checkup() -> Iterator[Finding]:
    """Look at everything; yield the findings one after the other, since some checks take a second."""
    checks = (_code, _interpreter, _packages, _torch, _gpu, _kernel, _cores, _data, _folders)
    for check in tracked(checks, "checks"):
        try:
            yield from check()
        except Exception as error:
            yield Finding(check.__name__.strip("_"), "problem", describe(error))


def _code() -> Iterator[Finding]:
    try:
        require_one_place()
    except InputError as error:
        yield Finding("flmarket", "problem", str(error))
    else:
        yield Finding("flmarket", "ok", f"{version()} in {ROOT}")


def _interpreter() -> Iterator[Finding]:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {sys.executable}"
    yield Finding("Python", "ok", found)


def _requirements() -> Iterator[tuple[str | None, str]]:
    """Yield the extra that asks for a package (None: always needed) and the problem with it, empty if there is none."""
    from packaging.requirements import Requirement

    for line in metadata.requires("flmarket") or ():
        requirement = Requirement(line)
        extra = next((name for name in EXTRAS if f'extra == "{name}"' in str(requirement.marker)), None)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra or ""}):
            continue  # for developers, or for another Python
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            yield extra, f"{requirement.name} is not installed"
            continue
        fits = requirement.specifier.contains(version, prereleases=True)
        yield extra, "" if fits else f"{requirement.name} is {version}, not {requirement.specifier}"


def _packages() -> Iterator[Finding]:
    problems: dict[str | None, list[str]] = defaultdict(list)
    try:
        for extra, problem in _requirements():
            problems[extra] += [problem] * bool(problem)
    except metadata.PackageNotFoundError:
        yield Finding("packages", "note", "flmarket itself is not installed: this is a bare checkout", "make run")
        return
    if found := "; ".join(problems[None]):
        yield Finding("packages", "problem", found, "reinstall flmarket: pip install .")
    else:
        yield Finding("packages", "ok", "all that flmarket needs, in versions that it works with")
    for name, purpose in EXTRAS.items():
        if found := "; ".join(problems[name]):
            yield Finding(f"extra {name}", "note", found, f"pip install 'flmarket[{name}]' for {purpose}")
        else:
            yield Finding(f"extra {name}", "ok", f"for {purpose}")


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except Exception as error:
        yield Finding("PyTorch", "problem", f"does not import: {describe(error)}", "reinstall torch")
        return
    build = "CPU build" if torch.version.cuda is None else f"CUDA {torch.version.cuda}"
    capability = torch.backends.cpu.get_cpu_capability()
    yield Finding("PyTorch", "ok", f"{torch.__version__} ({build}), {capability}, {Path(torch.__file__).parent}")
    from fl.vision import torchvision_datasets

    try:
        torchvision_datasets()
    except Exception as error:
        remedy = "install the torchvision that belongs to this torch; only downloads of data sets need it"
        yield Finding("torchvision", "note", f"does not import: {describe(error)}", remedy)
    else:
        yield Finding("torchvision", "ok", f"{metadata.version('torchvision')}; its data sets can be downloaded")


def _gpu() -> Iterator[Finding]:
    import torch

    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
        yield Finding("GPU", "ok", f'{names}; used with training.device = "cuda"')
    elif torch.version.cuda is None:
        yield Finding("GPU", "ok", "none is used: this torch is built for CPUs, which is all that flmarket needs")
    else:
        remedy = "nothing, unless this machine has one: then update its driver"
        yield Finding("GPU", "ok", "torch is built for CUDA, but finds no device", remedy)


def _kernel() -> Iterator[Finding]:
    from fl import fused
    from fl.native import kernel_problem

    if not fused.available():
        remedy = "install a C++ compiler (g++ or clang++) and install flmarket again; until then, plain torch trains"
        yield Finding("kernel", "note", f"the fused kernel {kernel_problem()}", remedy)
        return
    names = [name.removeprefix("fused-") for name in fused.kernels()]
    forced = os.environ.get("FLMARKET_KERNEL")
    try:
        used = fused.kernel_name()
    except InputError as error:
        yield Finding("kernel", "problem", str(error), "unset FLMARKET_KERNEL")
        return
    why = "FLMARKET_KERNEL asks for it" if forced else "the fastest that this CPU runs"
    yield Finding("kernel", "ok", f"{used}: {why} (of {', '.join(names)})")


def _cores() -> Iterator[Finding]:
    usable, there = usable_cores(), os.cpu_count() or 1
    if usable < there:
        remedy = "ask your scheduler for more; --jobs counts on the usable ones"
        yield Finding("cores", "note", f"{usable} of {there} may be used by this process", remedy)
    else:
        yield Finding("cores", "ok", f"{usable}")


def _data() -> Iterator[Finding]:
    from fl.datasets import BUILTIN, data_root

    root = data_root()
    there = {name: source.present(root) for name, source in BUILTIN.items() if source.info.source == "download"}
    found = [name for name, present in there.items() if present]
    missing = [name for name, present in there.items() if not present]
    yield Finding("data sets", "ok", f"in {root}: {', '.join(found) or 'none yet'}")
    if missing:
        remedy = "each is downloaded when a scenario first asks for it; or set FLMARKET_DATA to the folder they are in"
        yield Finding("data sets", "ok", f"not there: {', '.join(missing)}", remedy)
    yield from _folder("data folder", root, "set FLMARKET_DATA to a folder that you may write")


def _folders() -> Iterator[Finding]:
    yield from _folder("runs", Path.cwd() / "runs", "start flmarket elsewhere, or give --out a folder you may write")


def _folder(subject: str, folder: Path, remedy: str) -> Iterator[Finding]:
    """Whether files can be made in a folder, or in the first folder above that is there, and the space on its disk."""
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    if not os.access(there, os.W_OK | os.X_OK):
        yield Finding(subject, "problem", f"{there} cannot be written", remedy)
        return
    free = shutil.disk_usage(there).free
    space = f"{free / 2**30:.1f} GiB free"
    state: State = "note" if free < LITTLE_SPACE else "ok"
    yield Finding(subject, state, f"{folder}: {space}", "free some space" if state == "note" else "")
