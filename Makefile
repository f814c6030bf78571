# make quickstart   from a clone to a first result
# make test         lint, types, import layers, API reference and tests, as CI runs them
# make torture      damaged files and kill -9, many of each (docs/reliability.md)
# make benchmark    speed on this machine (BENCHMARK=train, pretrain, read, data or baselines;
#                   ARGUMENTS="--threads 1"), or plain text compared with gold annotation
#                   (BENCHMARK=segmentation or unknown_words; ARGUMENTS=OntoGUM's folder), or
#                   language modeling (BENCHMARK=blimp or lambada; ARGUMENTS=FILE), or the cost of
#                   an adapter (BENCHMARK=adapter)
# make docs         the API reference from the docstrings, in build/api
# make tour         the outputs in README.md and docs/tour.md again, with the bundled model
# make bundled-model   train the bundled model again (bundled_model.mk)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
WORKERS ?= 2
export OMP_NUM_THREADS ?= $(shell nproc 2>/dev/null || echo 1)

.PHONY: quickstart test torture benchmark install install-dev browser lint types layers docs tour unit format clean

# A small study: part of the default corpus, the baseline (A) and the dynamic model (D)
quickstart: install
	$(BIN)/dntm reproduce --preset quick --output-dir studies/quickstart

test: install-dev browser lint types layers docs unit

BENCHMARK ?= train

benchmark: install
	$(BIN)/python -m benchmarks.$(BENCHMARK) $(ARGUMENTS)

torture: install-dev
	OMP_NUM_THREADS=1 DNTM_TORTURE=1 $(BIN)/pytest -n 0 tests/torture

install: $(VENV)/.installed

install-dev: $(VENV)/.installed-dev

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --version >/dev/null
	touch $@

# torch first, so that no other package pulls another build of it
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[coref,pretrained,dev]"
	touch $@

# The tests of the page use Debian's chromium and are skipped if it cannot be installed
browser:
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	then (apt-get update -qq; DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq \
		--no-install-recommends chromium) >/dev/null 2>&1 || true; fi

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

layers:
	$(BIN)/lint-imports

docs:
	OMP_NUM_THREADS=1 $(BIN)/python docs/make_api.py build/api

tour: install-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.test_readme

# Tests of one file share fixtures, so they run in one process
unit:
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n $(WORKERS) --dist worksteal

format:
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info

include bundled_model.mk
