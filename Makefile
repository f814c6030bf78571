# make quickstart   from a clone to a first result
# make test         lint, types, layers, the API's pages and tests, as CI runs them
# make torture      damaged files, kills and rude clients, many of each (minutes; docs/reliability.md)
# make docs         the API reference from the docstrings, in build/api
# make default-model   train the model in the box anew (default_model.mk)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
WORKERS ?= 2
export OMP_NUM_THREADS ?= $(shell nproc 2>/dev/null || echo 1)

.PHONY: quickstart test torture install install-dev browser lint types layers docs unit format clean

# The paper's study in small: a slice of the default corpus, the baseline (A) and the dynamic model (D)
quickstart: install
	$(BIN)/dntm reproduce --preset quick --output-dir studies/quickstart

test: install-dev browser lint types layers docs unit

torture: install-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture

install: $(VENV)/.installed

install-dev: $(VENV)/.installed-dev

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip --version >/dev/null
	touch $@

# torch first and alone: with the pinned build in place nothing else pulls another one
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[coref,dev]"
	touch $@

# The page's tests drive Debian's chromium; where it cannot be had they are skipped, visibly
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

# A file's tests stay in one process, with the fixtures they share
unit:
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n $(WORKERS) --dist loadfile

format:
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info

include default_model.mk
