# The two commands a newcomer needs are `make run` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup run test lint bench corpus clean
.DELETE_ON_ERROR:

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

run: setup
	$(BIN)/gloveport run examples/demo.ts --tools examples/demo_tools.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/deno lint --quiet
	$(BIN)/deno fmt --quiet --check

test: lint
	$(BIN)/pytest

bench: setup
	$(BIN)/python -m benchmarks

# Loads every definition of two public collections; they are fetched into benchmarks/corpus.tmp.
corpus: setup
	$(BIN)/python -m benchmarks.corpus

clean:
	rm -rf .venv
