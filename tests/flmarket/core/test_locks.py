"""A file is locked by one descriptor at a time, until that is closed."""

from pathlib import Path

from flmarket.core.files import is_locked, lock


def test_a_file_is_locked_by_one_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("w") as one, path.open() as another:
        assert not is_locked(path)
        assert lock(one.fileno())
        assert is_locked(path)
        assert not lock(another.fileno())
    assert not is_locked(path)
