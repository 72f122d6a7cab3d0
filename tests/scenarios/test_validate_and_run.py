"""`validate` accepts a scenario exactly if `run` starts it, and what `run` refuses it refuses before the first run."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import flmarket
from support import shell

PLUGINS = """\
from flmarket import Mechanism, Offer, Policy, dataset, mechanism, model, policy
import numpy as np


@policy("frugal")
class Frugal(Policy):
    def __init__(self, context, *, share=0.5, checkpoint=None):
        super().__init__(context)
        if share > 1:
            raise ValueError("share must be at most 1")
        if share < 0:
            raise SystemExit(0)

    def act(self, observation):
        return Offer.none()


@policy("digestless")
class Digestless(Policy):
    @classmethod
    def agent_digest(cls, checkpoint):
        return b"no text"

    def act(self, observation):
        return Offer.none()


@mechanism("lottery")
class Lottery(Mechanism):
    def __init__(self, *, tickets):
        if tickets == 0:
            raise SystemExit(0)

    def clear(self, book):
        raise NotImplementedError


@model("narrow")
def narrow(labels):
    from torch import nn

    return nn.Linear(3, labels)


@model("flat")
def flat(labels, shape):
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(shape.channels * shape.height * shape.width, labels))


@dataset("broken")
def broken():
    raise SystemExit(0)


@dataset("halves")
def halves():
    images = np.zeros((200, 1, 28, 28), np.uint8)
    images[::2, :, :14] = 255
    labels = np.arange(200) % 2
    return images, labels, images, labels
"""

SCENARIO = """\
name = "generated"
rounds = 1
dqi = "published"

[clients]
count = 3
cores = 1
data_size = [SIZE]
emd = [0.2]
cost = { per_sample = 0.05, per_emd = 0.5 }

[training]
local_epochs = 1
eval_samples = 20
backend = "real"
kernel = "KERNEL"
device = "DEVICE"
model = "MODEL"

[market]
mechanism = "MECHANISM"
OPTIONS

[[services]]
name = "alpha"
dataset = "DATASET"
budget = 6.5
target_accuracy = 0.99
reward_base = 60
policy = "POLICY"
POLICY_OPTIONS
CHECKPOINT
"""

# Most are good by themselves, so that scenarios without a fault are drawn, too.
KEYS = {
    "SIZE": ["20"] * 9 + ["10000"],
    "KERNEL": ["auto", "reference"] * 3 + ["fused"],
    "DEVICE": ["cpu"] * 9 + ["cuda"],
    "MODEL": ["mlp", "cnn", "flat"] * 3 + ["narrow"],
    "MECHANISM": ["pay-as-offered"] * 4 + ["lottery"],
    "POLICY_OPTIONS": [""] * 5 + ["policy_options = { share = 0.3 }"] * 2 + [
        "policy_options = { share = 2 }", "policy_options = { share = -1 }", "policy_options = { shares = 1 }"],
    "OPTIONS": [""] * 5 + ["options = { tickets = 2 }", "options = { tickets = 0 }"],
    "POLICY": ["random", "frugal", "lcfa", "frugal"] * 2 + ["mahdrl", "digestless"],
    "CHECKPOINT": [""] * 8 + ['checkpoint = "missing.safetensors"', 'checkpoint = "damaged.safetensors"'],
    "DATASET": ["digits", "digits", "halves"] * 3 + ["broken", "mnist"],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with plug-ins, a damaged agent, and a damaged copy of MNIST; KMNIST is not there."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "plugins.py").write_text(PLUGINS)
    (folder / "damaged.safetensors").write_bytes(b"no tensors")
    raw = folder / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (raw / f"{name}-ubyte").write_bytes(b"damaged")
    return folder


def starts(file: Path, out: Path) -> bool:
    """Whether a run of the scenario begins, however it ends. If not, nothing of it is there."""
    try:
        flmarket.run(file, out=out, progress=False)
    except flmarket.BatchFailed:
        pass
    except flmarket.InputError:
        assert not out.exists()
        return False
    return True


@pytest.mark.slow
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(chosen=st.fixed_dictionaries({key: st.sampled_from(values) for key, values in KEYS.items()}))
def test_validate_accepts_what_run_starts(
    chosen: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SCENARIO
    for key in ("POLICY_OPTIONS", *KEYS):
        text = text.replace(key, chosen[key])
    (folder / "generated.toml").write_text(text)
    with monkeypatch.context() as patch, TemporaryDirectory() as out:
        patch.setenv("FLMARKET_DATA", str(folder / "data"))
        patch.chdir(folder)
        flmarket.load_plugin("plugins.py")
        validated = shell.flmarket("validate", "generated.toml", "--plugin", "plugins.py", cwd=folder)
        event(f"exit status {validated.returncode}")
        assert (validated.returncode == 0) == starts(Path("generated.toml"), Path(out, "runs")), (chosen, validated)


def test_a_data_set_that_is_not_here_yet_is_noted(folder: Path, tmp_path: Path) -> None:
    """A run downloads it: that is no fault of the scenario."""
    text = SCENARIO
    good = {key: values[0] for key, values in KEYS.items()} | {"DATASET": "kmnist"}
    for key in ("POLICY_OPTIONS", *KEYS):
        text = text.replace(key, good[key])
    (tmp_path / "far.toml").write_text(text)
    done = shell.flmarket("validate", "far.toml", cwd=tmp_path, env={"FLMARKET_DATA": str(folder / "data")})
    assert done.returncode == 0
    assert done.stderr == "note: data set 'kmnist' is not here; flmarket run downloads it first\n"
