"""Files that are whole or as they were: a crash, a full disk or a power cut loses nothing that was there.

What is written in one piece is written to a file of its own, put onto the disk, and renamed. Logs are appended to.
Locks of files and folders show other processes what a process is writing. They end with the process that holds them,
however it ends; on a file system without locks, no process waits.
"""

import csv
import errno
import fcntl
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from os import PathLike
from pathlib import Path
from typing import IO

from flmarket.core.errors import InputError, RunError

_STREAMS = ("/dev/stdout", "/dev/stderr")
_READ_ONLY = "the file is read-only"

BYTE_ORDER_MARK = "\ufeff"  # some editors put it in front of a text


def is_full(error: OSError) -> bool:
    """Return whether a disk, or what a user may have of it, is full: then there can be room later."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class WriteError(RunError):
    """A file of a run cannot be written; the message names the file and the reason."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(path, error)
        self.path, self.error = path, error

    def __str__(self) -> str:
        return f"{self.path}: cannot be written: {self.error.strerror}; the same command continues from what is there"


LARGEST = 64_000_000  # bytes of a file that a scenario names, but for data sets and agents


def read_regular(path: Path, most: int | None = LARGEST) -> bytes:
    """Return the content of a file that a scenario names: a stranger's may name a device or a pipe, which never end.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than ``most`` bytes.
    """

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # for nobody at the other end of a pipe

    with open(path, "rb", opener=opener) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = file.read(None if most is None else most + 1)
        if most is not None and len(content) > most:
            raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", str(path))
        return content


def version(status: os.stat_result) -> tuple[int, ...]:
    """Return what is another thing once a file has been replaced, or written again, even in its size and its time."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def remove_unfinished(path: Path) -> None:
    """Remove what killed processes left when they wrote a file that no other process writes now."""
    for part in path.parent.glob(f".{escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file whose content takes the place of that of ``path`` once the block ends and it is on the disk.

    If the block raises, or the disk is full, what was at ``path`` stays as it was; of several that write at once, the
    last one's content is there, whole. Mode and group stay, and a file that is read-only is an error. The file that a
    symbolic link points to is replaced. What is no regular file, such as a pipe, is opened as it is.
    """
    if str(path) in _STREAMS:  # opened again, a stream that the shell sends to a file would begin at its beginning
        stream = sys.stdout if path.name == "stdout" else sys.stderr
        yield stream.buffer
        stream.flush()
        return
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    target = path.resolve()
    if _is_read_only(path):
        raise PermissionError(errno.EACCES, _READ_ONLY, str(path))
    # Nobody else's, and no link that somebody put there, as none can foresee the name.
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - it is a descriptor
            if target.exists():
                _take_over(descriptor, target.stat())
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename, too, survives a power cut
    finally:
        os.close(folder)


def _take_over(descriptor: int, replaced: os.stat_result) -> None:
    """Give a new file the group and the mode of the one that it replaces; a group that may not have it gets nothing."""
    mode = stat.S_IMODE(replaced.st_mode)
    if os.fstat(descriptor).st_gid != replaced.st_gid:
        try:
            os.fchown(descriptor, -1, replaced.st_gid)
        except PermissionError:
            mode &= ~stat.S_IRWXG
    os.fchmod(descriptor, mode)


def laid_out_as(before: str, text: str) -> str:
    """Return a text with the byte-order mark and the line ends of the one that it takes the place of.

    Lines that are there keep theirs where ``before`` has both kinds.
    """
    if "\r\n" in before and not re.search(r"(?<!\r)\n", before):
        text = re.sub(r"(?<!\r)\n", "\r\n", text)
    return BYTE_ORDER_MARK + text if before.startswith(BYTE_ORDER_MARK) else text


@contextmanager
def replacing_text(path: Path) -> Iterator[IO[str]]:
    """Open a text file as ``replacing`` does: UTF-8, line ends as they are written."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()  # flushes, and leaves closing to ``replacing``


def write_durably(path: Path, content: bytes) -> None:
    """Write a file inside a run's directory in one step, and onto the disk itself."""
    try:
        with replacing(path) as file:
            file.write(content)
        remove_unfinished(path)
    except OSError as error:
        raise WriteError(path, error) from error


def write_synced(path: Path, content: bytes) -> None:
    """Write a file inside a run's directory onto the disk itself; if this is cut short, a part of it is there."""
    try:
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise WriteError(path, error) from error


@contextmanager
def asked_for(path: Path) -> Iterator[IO[str]]:
    """Open a text file that the user named for results, as ``replacing_text`` does."""
    try:
        with replacing_text(path) as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def write_rows(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file that the user named for results."""
    with asked_for(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _is_read_only(path: Path) -> bool:
    """Return whether there is a file that is protected: if its mode says so, from the administrator, too."""
    return path.exists() and not (path.stat().st_mode & 0o222 and os.access(path, os.W_OK))


def require_writable(path: Path) -> None:
    """Check a file that the user named for results before the work that they are results of. Nothing is changed."""
    if str(path) in _STREAMS:
        return
    folder = path.resolve().parent
    if path.is_dir():
        problem = os.strerror(errno.EISDIR)
    elif path.exists() and not path.is_file():  # a pipe or a device
        return
    elif not folder.is_dir():
        problem = os.strerror(errno.ENOENT)
    elif not os.access(folder, os.W_OK | os.X_OK):
        problem = os.strerror(errno.EACCES)
    elif _is_read_only(path):
        problem = _READ_ONLY
    else:
        return
    raise InputError(f"{path}: cannot be written: {problem}")


def require_folder(path: Path) -> None:
    """Check a folder that the user named for results before the work is done; it is made if need be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be made: {error.strerror}") from error
    require_writable(path / "results")


def walk(
    sources: Iterable[Path],
    unreadable: Callable[[OSError], object],  # called for each folder that may not be read, or link that leads nowhere
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Walk through folders and all that is below them, as ``os.walk`` does; each is passed through once.

    Folders come in the order of their names, then links to folders, which are followed, but for those that lead up.
    """
    seen: set[tuple[int, int]] = set()
    for source in sources:
        above = {_identity(folder) for folder in source.resolve().parents}
        for name, folders, files in os.walk(source, onerror=unreadable, followlinks=True):
            here = Path(name)
            if (identity := _identity(here)) in seen | above:
                folders.clear()
                continue
            seen.add(identity)
            folders.sort(key=lambda name, here=here: ((here / name).is_symlink(), name))  # type: ignore[misc]
            for path in (here / name for name in sorted(files) if not name.startswith(".")):
                if path.is_symlink() and not path.exists():
                    unreadable(FileNotFoundError(errno.ENOENT, "it is a link that leads nowhere", str(path)))
            yield here, folders, files


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def find_below(folder: Path, name: str) -> list[Path]:
    """Return the files of a name in a folder and at any depth below it, in the order of their paths; see ``walk``."""
    return sorted(here / name for here, _, files in walk([folder], lambda _: None) if name in files)


def lock(descriptor: int) -> bool:
    """Lock a file until it is closed; whether that is so. A file system without locks grants all of them."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file or folder. Where the file system has no locks, none seems to."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for a folder. Where the file system has no locks, do not wait."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}; choose another folder") from error
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def expanded(path: str | PathLike[str]) -> Path:
    """Return a path with a home folder in place of a tilde at its beginning."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"{path}: the home folder that '~' stands for is not known; write it out") from None


def home() -> Path:
    """Return the user's home folder."""
    try:
        return Path.home()
    except RuntimeError:
        raise InputError("this user has no home folder; set HOME to a folder that flmarket may write to") from None
