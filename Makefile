# `make run` and `make test` are all the set-up there is: each builds the virtual environment when it is missing or stale.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help

# Tests start many processes, and each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-all test-research test-arm tui lint format bench bench-peers screenshots gallery docs golden api attack mutants clean

help:  ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

run: $(VENV)/installed  ## Set up, run the quickstart scenario (no download) and show its results
	$(BIN)/flmarket run quickstart --fresh

# One more than there are cores: many tests wait for processes that they start.
PYTEST := $(BIN)/python -m pytest -n $(shell $(PYTHON) -c "import os; print(1 + (os.cpu_count() or 1))") --dist worksteal

test: $(VENV)/installed-dev  ## Set up and run the tests that are fast: about 5 minutes on 2 cores
	$(PYTEST) -m "not slow"

test-all: $(VENV)/installed-dev  ## Run those that take longer, and all properties on more examples: about 20 minutes on 2 cores
	$(PYTEST) -m "slow or hypothesis" --hypothesis-profile full

test-research: $(VENV)/installed-dev  ## Test that research/ shows what its results say: about 2 minutes on 2 cores
	$(PYTEST) research

test-arm: $(VENV)/installed-dev  ## Build the kernel for arm64 and compare its results, under an emulator (g++-aarch64-linux-gnu, qemu-user)
	$(BIN)/python -m pytest -q -rs tests/fl/arithmetic/test_arithmetic.py -k arm64

lint: $(VENV)/installed-dev  ## Check style (ruff), types (mypy) and the order of imports (import-linter)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/house.py

format: $(VENV)/installed-dev  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

tui: $(VENV)/installed  ## Set up and start the terminal user interface
	$(BIN)/flmarket tui

screenshots: $(VENV)/installed  ## Make the pictures in docs/screenshots from real runs
	$(BIN)/python docs/screenshots/make.py

gallery: $(VENV)/installed-dev  ## Make docs/screens.md: pictures of all screens at four sizes, dark and light
	$(BIN)/python docs/screenshots/gallery.py

docs: $(VENV)/installed-docs  ## Build the documentation site into site/, strictly: every link leads somewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open site/index.html; it needs no server and no network."

bench: $(VENV)/installed  ## Measure how fast it is, on a quiet machine in about twenty minutes, and put it into docs/performance.md and docs/measurements.md
	$(BIN)/python benchmarks/engine.py --repeat 6 --rounds 2
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/jobs.py --only lr_mnist
	$(BIN)/python benchmarks/market.py
	$(BIN)/python benchmarks/lockstep.py
	$(BIN)/python benchmarks/batch.py --seeds 2
	$(BIN)/python benchmarks/tui_screens.py --presses 100
	$(BIN)/python benchmarks/measure.py

PEERS := .venv-peers
bench-peers: $(foreach PEER,flower fedlab pfl blazefl,$(PEERS)/$(PEER)/ready)  ## Install other frameworks, each in its own environment, for `make bench`

golden: $(VENV)/installed-dev  ## Renew the digests of golden logs, after a change that is meant to change logs
	PYTHONPATH=tools:tests/lib $(BIN)/python -m golden --renew

api: $(VENV)/installed-dev  ## Renew the record of the public interface, after a change that CHANGELOG.md tells
	PYTHONPATH=tools:tests/lib $(BIN)/python -m api

MINUTES := 60
attack: $(VENV)/installed-dev  ## Attack it for MINUTES=60: kills, damaged logs, mistakes in plug-ins, failing disks; continues where it ended
	PYTHONPATH=tools:tests/lib $(BIN)/python -m attack --minutes $(MINUTES)

N := 100
SEED := 0
mutants: $(VENV)/installed-mutants  ## Attack the tests: N=100 random mutants of the code, drawn by SEED=0; tries survivors again
	PYTHONPATH=tools:tests/lib $(BIN)/python -m mutants --number $(N) --seed $(SEED)

clean:  ## Remove the virtual environment and all caches
	rm -rf $(VENV) .venv-peers build site *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# On Linux for x86_64, PyTorch's plain build is that for CUDA; pip cannot ask for the other one by its name, uv can.
TORCH = $(shell grep -E '^(torch|torchvision)==' constraints.txt)
define announce
@$(BIN)/python -c 'import torch' 2> /dev/null || { \
	echo "Installing flmarket, PyTorch and about 50 other packages into $(VENV). With PyTorch's CPU build that is about"; \
	echo "320 MB to download and 1.4 GB on disk; it takes one to ten minutes, depending on your network."; \
	[ "$$(uname -sm)" != "Linux x86_64" ] || [ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || printf '%s\n' \
		"There is no NVIDIA GPU here, but PyTorch for Linux brings several gigabytes of CUDA unless told otherwise." \
		"To avoid that, press Ctrl-C, install its CPU build first, and continue:" \
		"    $(BIN)/pip install uv" \
		"    $(BIN)/uv pip install --python $(VENV) --torch-backend cpu $(TORCH)" \
		"    make $(MAKECMDGOALS)"; \
}
endef

# Editable: the compiled kernel is built in place, and changes to Python files need no new install.
$(VENV)/installed: pyproject.toml constraints.txt setup.py $(wildcard fl/_native/*) | $(VENV)/bin/python
	$(announce)
	$(PIP) install --constraint constraints.txt --editable '.[torch]'
	@touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt setup.py $(wildcard fl/_native/*) | $(VENV)/bin/python
	$(announce)
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/installed

$(VENV)/installed-docs: pyproject.toml constraints.txt | $(VENV)/installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

$(VENV)/installed-mutants: pyproject.toml constraints.txt $(VENV)/installed-dev
	$(PIP) install --quiet --constraint constraints.txt 'cosmic-ray>=8.7'
	@touch $@

# What each peer needs besides torch. One that cannot be installed here is left out: make reports it and continues.
$(PEERS)/flower/ready: PEER := 'flwr[simulation]'
$(PEERS)/fedlab/ready: PEER := fedlab torchvision
$(PEERS)/pfl/ready: PEER := pfl
$(PEERS)/blazefl/ready: PEER := 'blazefl[contrib,reproducibility]'

$(PEERS)/%/ready:
	$(PYTHON) -m venv $(@D)
	grep -E '^(torch|torchvision|numpy)==' constraints.txt > $(@D)/constraints.txt
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --constraint $(@D)/constraints.txt torch $(PEER) \
		&& touch $@ || { rm -rf $(@D); echo "$(*F) cannot be installed here; the benchmark runs without it"; }
