"""The notes of ``flmarket run`` on a sweep concern the points that are played, not the scenario without its sweep."""

from pathlib import Path

import pytest

from fl.data import torchvision_files as vision
from support.scenarios import SMALL
from support.shell import flmarket

SCENARIO = f"""\
{SMALL.replace('"digits"', '"mnist"')}
[training]
eval_samples = 50
[sweep]
services.one.dataset = ["digits", "strokes"]
"""


@pytest.mark.slow
def test_a_data_set_that_no_point_uses_is_neither_noted_nor_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(*_: object) -> None:
        raise vision.DownloadError("there is no network here")

    monkeypatch.setattr(vision, "download", download)
    (tmp_path / "small.toml").write_text(SCENARIO)
    done = flmarket("run", "small.toml", cwd=tmp_path, env={"FLMARKET_DATA": str(tmp_path / "empty")})
    assert done.returncode == 0, done.stderr
    assert "mnist" not in done.stderr
    for name in ("digits", "strokes"):
        assert (
            f"data set '{name}' is trained as its fits were measured, where the scenario leaves it open" in done.stderr
        )
