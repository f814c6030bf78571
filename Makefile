# make quickstart   from a clone to a first result
# make test         lint, types, layers and tests, as CI runs them

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export OMP_NUM_THREADS ?= $(shell nproc 2>/dev/null || echo 1)

.PHONY: quickstart test install install-dev lint types layers unit format clean

# The paper's study in small: a slice of the default corpus, the baseline (A) and the dynamic model (D)
quickstart: install
	$(BIN)/dntm reproduce --preset quick --output-dir studies/quickstart

test: install-dev lint types layers unit

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

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

layers:
	$(BIN)/lint-imports

unit:
	OMP_NUM_THREADS=1 $(BIN)/pytest -q

format:
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info
