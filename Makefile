# Every target makes its environment in .venv when missing; Python 3.11 or later and make are all it takes.

PYTHON ?= $(shell for python in python3.11 python3; do \
	$$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
RUNTIME := .venv/.runtime
STAMP := .venv/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help environment demo serve test check bench format docs clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

environment: $(STAMP) ## Make .venv with everything development needs

# What runs and draws plans, and no more. The build backend comes from the constraints too, which an isolated
# build would not read. Modules are compiled when they are first imported: most never are.
$(RUNTIME): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "aioflow needs Python 3.11 or later with venv; set PYTHON=..." >&2; exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	$(PIP) --no-compile hatchling
	$(PIP) --no-compile --no-build-isolation --editable '.[graph]'
	@touch $@

$(STAMP): $(RUNTIME)
	$(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@

demo: $(RUNTIME) ## Run the demonstration
	$(BIN)/aioflow demo

serve: $(RUNTIME) ## Run the service against the bundled site, until Ctrl-C
	$(BIN)/python -m aioflow.demo.serving

test: $(STAMP) ## Run the tests, on all cores; skipped ones are listed by name
	$(BIN)/python -m pytest -q -rs --numprocesses auto --dist loadgroup

check: $(STAMP) ## Check format, lint and types, then run the tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(MAKE) test

bench: $(STAMP) ## Run the benchmarks
	$(BIN)/aioflow bench

format: $(STAMP) ## Format the code and fix what ruff can
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

docs: $(STAMP) ## Write docs/operators.md and docs/rest.md from the code
	@mkdir -p docs
	$(BIN)/python -m aioflow ops --markdown > docs/operators.md.new
	mv docs/operators.md.new docs/operators.md
	$(BIN)/python -m aioflow.service.rest > docs/rest.md.new
	mv docs/rest.md.new docs/rest.md

clean: ## Remove the environment, caches and builds
	rm -rf .venv dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find aioflow operators plans benchmarks tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
