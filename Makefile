# The two commands a newcomer needs are `make run` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup run test lint bench inspector conformance clean
.DELETE_ON_ERROR:

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

run: setup
	$(BIN)/gloveport serve examples/demo_tools.py

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

# What others say of our MCP server: both need npm's registry, and install what they need into .interop.
inspector conformance: setup
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[interop]'
	$(BIN)/python -m interop.$@

clean:
	rm -rf .venv .interop
