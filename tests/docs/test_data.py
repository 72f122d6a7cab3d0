"""The examples of docs/data.md, in order: its files are written, and its commands run on pictures of the test's own."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch import nn

from fl.data.dataset import Shape
from fl.data.registry import BUILTIN
from fl.training.networks import build
from support.shell import flmarket, process

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures of cats and dogs: the one dark at the left, the other at the top."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, axis in (("cat", 0), ("dog", 1)):
        (folder / "pets" / name).mkdir(parents=True)
        for k in range(40):
            ramp = np.indices((12, 12))[axis][..., np.newaxis] * 15
            pixels = (ramp + rng.integers(0, 60, (12, 12, 3))).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "pets" / name / f"{k:02}.png")
    return folder


@pytest.mark.slow
def test_the_page_works_from_top_to_bottom(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    printed: dict[str, str] = {}
    for language, content in BLOCK.findall(PAGE):
        if language == "toml":
            Path(content.partition("\n")[0].removeprefix("# ")).write_text(content)
        elif language == "python":
            exec(compile(content, "data.md", "exec"), {})  # noqa: S102 - our own page
        else:
            for line in content.splitlines():
                words = line.removeprefix("$ flmarket ").split()
                done = flmarket(*words, cwd=folder, env={"FLMARKET_FITS": str(folder / "own")})
                assert done.returncode == 0, line + "\n" + done.stdout + done.stderr
                printed[line.removeprefix("$ ")] = done.stdout + done.stderr
    assert "cifar-10" in printed["flmarket datasets"]
    assert (
        "  pets/:0.3: resnet8, local_epochs 1, batch_size 10, learning_rate 0.05, momentum 0 (model as the scenario "
        "says, the rest by default: flmarket has no fits of it)\n"
    ) in printed["flmarket validate pets.toml"]
    table = next(said for line, said in printed.items() if "validate" in line and "clouds" in line)
    assert "60 test rows (30 of each of 2 classes), each 20 features, standardised\n" in table
    assert (
        "data set 'pets/:0.3' is your own: meta.json holds its digests; publish them with any result"
        in printed["flmarket run pets.toml"]
    )
    metas = [json.loads(path.read_text()) for path in Path("runs").rglob("meta.json")]
    assert sorted((*meta["training"], meta["backend"], *meta["data"]) for meta in metas) == [
        ("clouds.npz", "real", "clouds.npz"),
        ("lamps.npz", "real", "lamps.npz"),
        ("pets/:0.3", "real", "pets/:0.3"),
        ("pets/:0.3", "surrogate", "pets/:0.3"),
    ]
    for meta in metas:
        for data in meta["data"].values():
            assert not data["official"]
            assert set(data["sha256"]) == {"train-images", "train-labels", "test-images", "test-labels"}
    for figure in ("dqi-pets-0.3.png", "surrogate-pets-0.3.png"):
        assert list(Path().rglob(figure))
    verified = flmarket("verify", "runs", "--rerun", cwd=folder, env={"FLMARKET_FITS": str(folder / "own")})
    assert verified.returncode == 0, verified.stdout + verified.stderr
    # Bids depend on how many labels there are: what the logs say is not judged by a folder that has got another class.
    (folder / "pets" / "emu").mkdir()
    for k in range(40):
        Image.new("RGB", (12, 12), (k, k, k)).save(folder / "pets" / "emu" / f"{k}.png")
    judged = process("verify", *map(str, Path("runs").glob("pets-*/*/*")), cwd=folder)
    assert "4 of 4 runs are valid" in judged.stderr, judged.stdout + judged.stderr
    shutil.rmtree(folder / "pets" / "emu")
    # Other pictures under the same name are noticed.
    Image.new("RGB", (12, 12), (1, 2, 3)).save(folder / "pets/cat/00.png")
    again = process("verify", "runs", "--rerun", cwd=folder, env={"FLMARKET_FITS": str(folder / "own")})
    assert again.returncode == 2
    assert "data set 'pets/:0.3' is not the one with which the run was played" in again.stdout + again.stderr


def test_each_data_set_has_a_card_with_its_sizes_and_its_licence() -> None:
    found = dict(re.findall(r"^\| `([\w-]+)` \| (\d.*?) \|", PAGE, re.MULTILINE))
    assert found == {name: f"{it.info.train_size:,} + {it.info.test_size:,}" for name, it in BUILTIN.items()}
    for name, source in BUILTIN.items():
        assert re.search(
            rf"^\| `{name}` \| \d.*(; {re.escape(source.info.licence)} \||as `emnist-digits`)", PAGE, re.MULTILINE
        )


@pytest.mark.parametrize("name", ["cnn", "mlp", "resnet8"])
def test_the_page_counts_the_parameters_right(name: str) -> None:
    module: nn.Module = build(name, 10, Shape(3, 32, 32), 0)
    count = sum(parameter.numel() for parameter in module.parameters())
    assert re.search(rf"^\| `{name}` \|.*\| {count:,} \|$", PAGE, re.MULTILINE)
