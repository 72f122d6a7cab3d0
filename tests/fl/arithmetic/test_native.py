"""Where the compiled extension is, and why there is none."""

from pathlib import Path

import pytest

from fl.arithmetic.native import kernel_problem
from flmarket.core.installation import ROOT


def test_a_kernel_that_was_built_is_not_said_to_be_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The installed flmarket has its kernel; a checkout that shadows it has none."""

    class File:
        parent, name = Path("fl"), "_fused.abi3.so"

        def locate(self) -> Path:
            return tmp_path / "site-packages" / "fl" / self.name

    class Distribution:
        files = (File(),)

    monkeypatch.setattr("fl.arithmetic.native.distribution", lambda _: Distribution)
    assert kernel_problem().startswith("was not built")
    (tmp_path / "site-packages" / "fl").mkdir(parents=True)
    File().locate().touch()
    expected = f"is built for the flmarket in {tmp_path / 'site-packages'}, but Python imports the one in {ROOT}"
    assert kernel_problem() == expected
