# Gadget: `make run` starts it, `make test` checks it. PYTHON names the interpreter, 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
LOCK_VENV := .lock-venv
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --no-deps
COMPILE := $(LOCK_VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-find-links --no-emit-index-url --no-annotate

.PHONY: run test lint format bench soak mutants house screens wheel lock clean
.DEFAULT_GOAL := run

run: $(RUN_STAMP)  ## Installs what is needed, makes the demo data and starts everything
	@exec $(BIN)/python manage.py up --demo

test: $(DEV_STAMP)  ## The fixed set of tests; ARGS=--all: all, on both databases; ARGS="tests/platform -x" goes to pytest
	@$(BIN)/python -m tests $(ARGS)

lint: $(DEV_STAMP)  ## Static checks
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "Not formatted; 'make format' mends it:"; $(BIN)/ruff format --check .; }
	@$(BIN)/mypy .
	@$(BIN)/djlint templates --quiet --profile jinja --extend-exclude templates/django
	@$(BIN)/djlint templates/django --quiet --profile django

format: $(DEV_STAMP)  ## Formats all files
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

bench: $(DEV_STAMP)  ## Benchmarks
	@$(BIN)/python -m tests.bench $(ARGS)

soak: $(DEV_STAMP)  ## Long random tests
	@$(BIN)/python -m tests.soak $(ARGS)

mutants: $(DEV_STAMP)  ## Weaken one guard at a time: its tests must notice
	@$(BIN)/python -m tests.mutants $(ARGS)

house: $(DEV_STAMP)  ## Figures of the code: knots, the way of a write, sizes; ARGS="--only way" for one of them
	@$(BIN)/python -m tests.house $(ARGS)

screens: $(DEV_STAMP)  ## Screenshots of every page, in docs/screens/; git keeps those that a page shows
	@$(BIN)/python -m tests.screens $(ARGS)

wheel: $(DEV_STAMP)  ## Builds the package into dist/
	@rm -rf dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-index --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

lock:  ## Pins the dependencies of requirements*.in anew, with hashes
	@test -x $(LOCK_VENV)/bin/uv || { $(PYTHON) -m venv $(LOCK_VENV) && \
		$(LOCK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv; }
	@$(COMPILE) $(LOCK_ARGS) requirements.in -o requirements.lock
	@$(COMPILE) $(LOCK_ARGS) requirements-build.in -o requirements-build.lock
	@$(COMPILE) $(LOCK_ARGS) requirements-dev.in -o requirements-dev.lock

clean:  ## Removes what was installed and built, but not the data under var/
	@rm -rf $(VENV) $(LOCK_VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(RUN_STAMP): requirements.lock | $(BIN)/python
	@echo "Installing the dependencies of Gadget (only when requirements.lock has changed) ..."
	@$(PIP_INSTALL) -r requirements.lock
	@touch $@

$(DEV_STAMP): requirements-dev.lock | $(BIN)/python
	@echo "Installing the dependencies of the tests (only when requirements-dev.lock has changed) ..."
	@$(PIP_INSTALL) -r requirements-dev.lock
	@touch $@ $(RUN_STAMP)

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no '$(PYTHON)'. Gadget needs Python 3.11 or later: make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "'$(PYTHON)' is $$($(PYTHON) -V). Gadget needs Python 3.11 or later: make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); .ci/install-venv && $(PYTHON) -m venv $(VENV); } || \
		{ rm -rf $(VENV); echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
