"""Files of results: whole or as they were, whatever happens while they are written."""

import os
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from flmarket.core.errors import InputError
from flmarket.core.files import (
    WriteError,
    asked_for,
    replacing,
    replacing_text,
    require_writable,
    write_durably,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_takes_its_place_when_all_of_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with replacing_text(path) as file:
        file.write("grün\n")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_bytes() == "grün\n".encode()
    assert names(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("opened", [replacing, replacing_text])
def test_a_failure_half_way_leaves_what_was_there(tmp_path: Path, opened) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")

    def write() -> None:
        with opened(path) as file:
            file.writelines([])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["table.csv"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "meta.json"
    with pytest.raises(WriteError) as caught:
        write_durably(path, b"{}")
    assert str(caught.value) == (
        f"{path}: cannot be written: No such file or directory; the same command continues from what is there"
    )
    write_durably(tmp_path / "meta.json", b"{}")
    assert (tmp_path / "meta.json").read_bytes() == b"{}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing/values.csv", "No such file or directory"), (".", "Is a directory"), ("/", "Is a directory")],
)
def test_a_file_of_results_that_cannot_be_written_is_named_as_the_user_named_it(
    name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught, asked_for(Path(name)) as file:
        file.write("x")
    assert str(caught.value) == f"{name}: cannot be written: {reason}"
    assert names(tmp_path) == []


def test_what_cannot_be_written_shows_before_and_what_can_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "table.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("table.csv")
    (tmp_path / "lost.csv").symlink_to("nowhere/table.csv")
    os.mkfifo(tmp_path / "pipe")
    before = names(tmp_path)
    for name in ("folder", "nowhere/table.csv", "table.csv/table.csv", "lost.csv"):
        with pytest.raises(InputError, match=rf"{name}: cannot be written: \w+"):
            require_writable(tmp_path / name)
        with pytest.raises(InputError, match=rf"{name}: cannot be written: \w+"), asked_for(tmp_path / name):
            pytest.fail("the block of a file that cannot be written is not begun")
    for path in (tmp_path / "table.csv", tmp_path / "new.csv", tmp_path / "link.csv", tmp_path / "pipe"):
        require_writable(path)
    require_writable(Path("/dev/null"))
    require_writable(Path("/dev/stdout"))
    assert names(tmp_path) == before
    assert (tmp_path / "table.csv").read_text() == "old"


def test_text_that_cannot_be_encoded_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), replacing_text(path) as file:
        file.write("\udcff")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["table.csv"]


def test_a_device_is_written_to_and_stays_one() -> None:
    """As root, the usual user of a container, renaming a file onto /dev/null would replace it for everybody."""
    with replacing(Path("/dev/null")) as file:
        file.write(b"rows")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with replacing(pipe) as file:
        file.write(b"rows")
    reader.join()
    assert read == [b"rows"]
    assert pipe.is_fifo()


def test_a_link_stays_one_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "table.csv", tmp_path / "here" / "table.csv"
    target.write_text("old")
    link.symlink_to("../there/table.csv")
    with suppress(KeyboardInterrupt), replacing(link) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (target.read_text(), names(target.parent), names(link.parent)) == ("new", ["table.csv"], ["table.csv"])


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        ("/dev/stdout", "stdout"), ("/dev/stderr", "stderr"),
    ],
)  # fmt: skip
def test_standard_output_by_name_is_written_where_it_goes(tmp_path: Path, name: str, stream: str) -> None:
    """Also where the shell appends it to a file: what the file held stays."""
    path = tmp_path / "out.txt"
    path.write_text("before\n")
    program = (
        "import sys; from pathlib import Path; from flmarket.core.files import replacing_text\n"
        "with replacing_text(Path(sys.argv[1])) as file: file.write('rows\\n')\n"
        "print('after', file=getattr(sys, sys.argv[2]))"
    )
    with path.open("a") as out:
        subprocess.run([sys.executable, "-c", program, name, stream], check=True, **{stream: out})
    assert path.read_text() == "before\nrows\nafter\n"


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    with replacing(tmp_path / "meta.json"):
        [left] = tmp_path.iterdir()
    left.write_text("{")
    assert names(tmp_path) == [left.name, "meta.json"]
    write_durably(tmp_path / "meta.json", b"{}")
    assert (tmp_path / "meta.json").read_bytes() == b"{}"
    assert names(tmp_path) == ["meta.json"]


def test_of_two_that_write_one_file_at_once_the_last_one_s_content_is_there_whole(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    with replacing(path) as first:
        first.write(b"first, ")
        first.flush()
        with replacing(path) as second:
            second.write(b"second")
        first.write(b"whole")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first, whole"
    assert names(tmp_path) == ["all.csv"]


def test_the_name_of_a_file_that_is_being_written_cannot_be_foreseen(tmp_path: Path) -> None:
    seen = set()
    for _ in range(3):
        with replacing(tmp_path / "all.csv") as file:
            seen |= {path.name for path in tmp_path.iterdir()} - {"all.csv"}
            file.write(b"rows")
    assert len(seen) == 3


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "table.csv"
    path.touch()
    path.chmod(mode)
    with replacing(path) as file:
        assert {stat.S_IMODE(it.stat().st_mode) for it in tmp_path.iterdir()} == {mode}  # at once, not in the end
        file.write(b"rows")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_user_s_mask_leaves(tmp_path: Path) -> None:
    (tmp_path / "touched").touch()
    with replacing(tmp_path / "table.csv") as file:
        file.write(b"rows")
    assert (tmp_path / "table.csv").stat().st_mode == (tmp_path / "touched").stat().st_mode


@pytest.mark.skipif(os.getuid() != 0, reason="only the administrator has other groups for sure")
def test_a_file_that_is_replaced_keeps_its_group(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.touch()
    os.chown(path, -1, 12345)
    with replacing(path) as file:
        file.write(b"rows")
    assert path.stat().st_gid == 12345


def test_a_read_only_file_is_not_replaced_and_shows_before(tmp_path: Path) -> None:
    path, link = tmp_path / "table.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o444)
    link.symlink_to("table.csv")
    for named in (path, link):
        with pytest.raises(InputError, match=rf"{named}: cannot be written: the file is read-only"):
            require_writable(named)
        with pytest.raises(InputError, match="cannot be written: the file is read-only"), asked_for(named):
            pytest.fail("the block of a file that cannot be written is not begun")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["link.csv", "table.csv"]
