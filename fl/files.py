"""Reading and writing files so that nothing is lost, replaced by accident, or read from where it should not be.

* A crash, a full disk or a power cut leaves either the old content or the new: every file that is written in one piece
  is written aside, onto the disk, and then renamed. Files that grow (logs, measured points) are appended to.
* A file that the user names (``replacing``) may be a symbolic link, a device or a pipe: these are written *to*.
* A file that flmarket names itself, inside a run's directory (``write_durably``, ``open_own``, ``read_own``), is a
  regular file. Whatever else has been put there under its name is refused or removed, never followed.
"""

import csv
import errno
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fl.errors import InputError, RunError
from fl.locks import lock


class WriteError(RunError):
    """A file of a run cannot be written; the message names the file and the reason."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(path, error)
        self.path, self.error = path, error

    def __str__(self) -> str:
        return f"{self.path}: cannot be written: {self.error.strerror}; the same command continues from what is there"


def unfinished(name: str) -> str:
    """Return what a file is called while it is being written."""
    return f".{name}.part"


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file whose content takes the place of that of ``path`` once the block ends and it is on the disk.

    If the block raises, or the disk is full, what was at ``path`` stays as it was and nothing else is left behind.
    A symbolic link stays one: the file that it points to is replaced. A device, a pipe or a descriptor such as
    /dev/stdout is written to as the block goes.
    """
    if (stream := _stream(path)) is not None:
        with stream:
            yield stream
    else:
        with _aside(_target(path)) as file:
            yield file


def _target(path: Path) -> Path:
    """Return the file whose content is replaced: the one that a symbolic link points to."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _stream(path: Path) -> IO[bytes] | None:
    """Return what to write to where ``path`` is no regular file that could be replaced, else None."""
    if descriptor := _DESCRIPTOR.fullmatch(str(path)):
        # Not opened anew: where the shell sent it to a file, that would start at the file's beginning.
        number = {"stdout": 1, "stderr": 2}.get(descriptor[1]) or int(descriptor[2] or 0)
        return os.fdopen(os.dup(number), "wb")
    return path.open("wb") if _is_device(path) else None


def _is_device(path: Path) -> bool:
    """Return whether there is something, and it is neither a file nor a folder."""
    try:
        kind = path.stat().st_mode
    except OSError:  # there is nothing yet, or what is wrong shows when it is written
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d{1,4})")


@contextmanager
def _aside(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file beside ``path`` that takes its place, whatever stands there, once the block ends."""
    new = _beside(path)
    with _claimed(new) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            new.replace(path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)


def _beside(path: Path) -> Path:
    """Return where the file is written that is to take the place of ``path``."""
    if not path.name or (path.is_dir() and not path.is_symlink()):  # "." and "/" have no name
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.with_name(unfinished(path.name))


def _claimed(new: Path) -> IO[bytes]:
    """Open an empty file that no other process writes; what an interrupted one left under its name is removed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(new, flags | os.O_EXCL, 0o666)
    except FileExistsError:
        _remove_leftover(new)
        descriptor = os.open(new, flags | os.O_EXCL, 0o666)
    lock(descriptor)
    return os.fdopen(descriptor, "wb")


def _remove_leftover(new: Path) -> None:
    """Remove a file that an interrupted process left, or whatever else has its name."""
    if stat.S_ISREG(new.lstat().st_mode):
        descriptor = open_own(new, os.O_RDWR)
        try:
            if not lock(descriptor):
                raise OSError(errno.EBUSY, "another process is writing it", str(new))
        finally:
            os.close(descriptor)
    new.unlink(missing_ok=True)


def open_own(path: Path, flags: int) -> int:
    """Open a file inside a run's directory; return its descriptor."""
    try:
        # Without O_NONBLOCK a pipe without a writer would hang.
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise OSError(errno.EINVAL, _NOT_A_FILE, str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, _NOT_A_FILE, str(path))
    return descriptor


_NOT_A_FILE = "is not a regular file (links, pipes and devices are not followed here)"


def read_own(path: Path) -> bytes:
    """Return the content of a file inside a run's directory."""
    with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
        return file.read()


def append_own(path: Path, text: str) -> None:
    """Append to a text file inside a run's directory, which must be there."""
    descriptor = open_own(path, os.O_WRONLY | os.O_APPEND)
    try:
        write_fully(descriptor, text.encode())
    finally:
        os.close(descriptor)


def reading_own(path: Path, errors: str = "strict") -> IO[str]:
    """Open a text file inside a run's directory for reading: UTF-8, line ends as they are."""
    return os.fdopen(open_own(path, os.O_RDONLY), encoding="utf-8", errors=errors, newline="")


def find_below(folder: Path, name: str) -> list[Path]:
    """Return the files of a name in a folder and at any depth below it, in the order of their paths.

    Symbolic links to folders are not followed, and folders that may not be read are passed over.
    """
    found, waiting = [], [folder]
    while waiting:  # no recursion: folders may be nested deeper than Python's stack
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(here / entry.name)
                    elif entry.name == name:
                        found.append(here / name)
        except (PermissionError, FileNotFoundError):
            continue
    return sorted(found)


@contextmanager
def replacing_text(path: Path) -> Iterator[IO[str]]:
    """Open a text file as ``replacing`` does: UTF-8, line ends as they are written."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()  # flushes, and leaves closing to ``replacing``


@contextmanager
def asked_for(path: Path) -> Iterator[IO[str]]:
    """Open a text file that the user named for results, as ``replacing_text`` does."""
    try:
        with replacing_text(path) as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def require_writable(path: Path) -> None:
    """Check a file that the user named for results before the work that they are results of. Nothing is changed."""
    if _DESCRIPTOR.fullmatch(str(path)) or _is_device(path):
        return
    try:
        new = _beside(_target(path))
        with _claimed(new):
            new.unlink()  # while it is claimed: afterwards it may be one that another process writes
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def require_folder(path: Path) -> None:
    """Check a folder that the user named for results before the work is done; it is made if need be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be made: {error.strerror}") from error
    require_writable(path / "probe")


def write_rows(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file that the user named for results. Errors as in ``asked_for``."""
    with asked_for(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file inside a run's directory in one step, and onto the disk itself."""
    try:
        with _aside(path) as file:
            file.write(content)
    except OSError as error:
        raise WriteError(path, error) from error


def _sync_folder(folder: Path) -> None:
    """Put a folder's list of names onto the disk, so that a rename survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_fully(descriptor: int, content: bytes) -> None:
    """Write all bytes; a disk that fills up half-way is an OSError, after what still fitted."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
