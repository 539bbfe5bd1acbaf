# Two commands are enough: `make lab` to learn, `make test` to change something. README.md has both without make.
.DEFAULT_GOAL := help
.PHONY: help lab test build check bench fuzz mutants lock

PYTHON ?= python3
PORT ?= 8888
ARGS ?=
JOBS ?= auto
BIN := .venv/bin
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# Every Jupyter process starts 2 s sooner with this stand-in; see the file in tests/stubs.
FAST_START := PYTHONPATH="$(CURDIR)/tests/stubs"

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

lab: .venv/.lab ## make .venv, install, open JupyterLab on lessons/ (PORT=8890, ARGS=--no-browser)
	@$(BIN)/jupyter lab --ip=127.0.0.1 --port=$(PORT) $(AS_ROOT) --LabApp.default_url=/lab/tree/lessons \
	  --ServerApp.jpserver_extensions="{'labkit.explore.server': True}" $(ARGS)

test: .venv/.dev ## make .venv, install with [dev,instructor], run everything: library, notebooks, browser
	@$(FAST_START) $(BIN)/python -m pytest --numprocesses=$(JOBS) --dist=loadfile --nbval --nbval-current-env --nbval-sanitize-with tests/sanitize.cfg labkit tests lessons solutions $(ARGS)

build: .venv/.dev ## make the notebooks from lessons/src and solutions/src
	@$(FAST_START) $(BIN)/labkit build $(ARGS)

check: .venv/.dev ## style, types, imports and the fast tests, in about five minutes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(FAST_START) $(BIN)/python -m pytest -m "not slow and not browser" --numprocesses=$(JOBS) --dist=loadfile labkit tests $(ARGS)

bench: .venv/.dev ## measure: one table a script of tests/bench
	@missed=0; for script in tests/bench/*.py; do $(BIN)/python $$script || missed=1; done; exit $$missed

fuzz: .venv/.dev ## 20,000 random graphs through the passes (ARGS="2000 7": how many, first seed)
	@$(BIN)/python -m tests.fuzz.run $(ARGS)

mutants: .venv/.dev ## remove each guard of each pass in turn: a test has to notice (ARGS="affine pads": only these files)
	@$(BIN)/python -m tests.mutants.run $(ARGS)

lock: ## pin the requirements for all platforms (needs uv)
	@for name in requirements requirements-dev; do \
	  extra=$$(test $$name = requirements || echo "--extra dev --extra instructor"); \
	  uv pip compile --quiet --universal --python-version 3.11 --custom-compile-command "make lock" \
	    pyproject.toml $$extra --output-file $$name.txt || exit 1; \
	  echo "-e .$$(test $$name = requirements || echo '[dev,instructor]')" >> $$name.txt; \
	done

.venv/.lab: requirements.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet -r requirements.txt
	@$(BIN)/python -c "import matplotlib.font_manager"  # its first start builds a cache and talks about it
	@touch $@

.venv/.dev: requirements-dev.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	@$(BIN)/python -c "import matplotlib.font_manager"  # its first start builds a cache and talks about it
	@touch $@
