# make run: set up and train a conditional GAN on real digits.   make test: set up and run all tests.
# Plain commands for both stand in README.md.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

TENSORFLOW ?= 2.20

.PHONY: run test fast lint clean test-tensorflow

run: $(VENV)/installed
	$(BIN)/python -m pipeline.main --gin_file=quickstart.gin

test: $(VENV)/installed
	$(BIN)/python -m pytest

fast: $(VENV)/installed
	$(BIN)/python -m pytest -m "not slow"

# The fast tests on another TensorFlow; 2.20 is the oldest allowed and the newest with a wheel for TPUs.
test-tensorflow:
	$(PYTHON) -m venv .venv-tf$(TENSORFLOW)
	.venv-tf$(TENSORFLOW)/bin/python -m pip install --quiet --editable '.[dev]' 'tensorflow==$(TENSORFLOW).*'
	.venv-tf$(TENSORFLOW)/bin/python -m pytest -m "not slow"

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Gantry needs Python 3.11 or newer; set PYTHON=python3.11 or the like. Received " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .venv-tf* .pytest_cache .mypy_cache .ruff_cache
