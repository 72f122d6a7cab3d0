"""The network of CNN_FEMNIST as a plug-in of flmarket; the others take it from workload.py."""

import sys
from pathlib import Path

import flmarket

sys.path.insert(0, str(Path(__file__).parent))

from workload import femnist

flmarket.model("femnist")(femnist)
