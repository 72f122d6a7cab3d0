"""A user without a home folder."""

import pytest

from flmarket.core.errors import InputError
from flmarket.core.files import home


def test_who_has_no_home_folder_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", unknown)
    told = r"^this user has no home folder; set HOME to a folder that flmarket may write to$"
    with pytest.raises(InputError, match=told):
        home()
