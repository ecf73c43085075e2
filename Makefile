# The verbs of the project; `make help` lists them. Everything happens in .venv, which `make setup` builds from the lock.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup ablation test lint ui clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

setup: $(READY) ## create .venv with every version pinned

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info < (3, 13); sys.exit(0 if ok else f"Python 3.11 or 3.12 is needed, {sys.executable} is {sys.version.split()[0]}; name another one: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

ablation: $(READY) ## run the arms on the bundled collection and print the table
	$(BIN)/litgrade ablation

test: $(READY) ## fetch the model weights that tests use, then run all tests
	$(BIN)/litgrade models fetch mpnet minilm
	$(BIN)/python -m pytest

lint: $(READY) ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

ui: $(READY) ## look at the runs in the MLflow UI on http://127.0.0.1:5000
	@echo 'Open http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning (Ctrl-C ends it)'
	MLFLOW_DISABLE_TELEMETRY=true $(BIN)/mlflow ui --backend-store-uri sqlite:///outputs/mlflow.db --workers 1

clean: ## remove .venv and tool caches; outputs/ stays
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
