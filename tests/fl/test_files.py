"""Files of results: whole or as they were, whatever happens while they are written."""

from pathlib import Path

import pytest

from fl.files import WriteError, replacing, replacing_text, write_durably


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


def test_text_that_cannot_be_encoded_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), replacing_text(path) as file:
        file.write("\udcff")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["table.csv"]
