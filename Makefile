# Common commands. Each installs what it requires in .venv.
PYTHON ?= python3
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE  # else each of the processes that the tests start compiles what it imports
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo setup help test suite check docs bench fuzz kills mutants freeze clean

demo: $(READY)          ## compare schedulers on the embedded scenario: table, report
	$(BIN)/greenbatch demo --out demo --force

setup: $(READY)         ## install everything in .venv: about 2 GB, some minutes
	@echo "ready: run . $(BIN)/activate to use the command greenbatch"

help:                   ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 15

test: $(READY)          ## check style and types, run the tests with coverage
	@$(MAKE) --no-print-directory -j 2 check suite

suite: $(READY)         ## run the tests only
	sh tests/run.sh $(BIN)

check: $(READY)         ## check style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	$(BIN)/mypy

docs: $(READY)          ## build the documentation in docs/_build
	$(BIN)/python docs/tables.py
	$(BIN)/sphinx-build -W -q docs docs/_build

bench: $(READY)         ## measure the speed, as one JSON object
	$(BIN)/python benchmarks/engine.py --json

fuzz: $(READY)          ## test damaged input files for ten minutes
	$(BIN)/python tests/fuzz.py --minutes 10

kills: $(READY)         ## kill commands at each file-system step; signals; losses; attacks
	$(BIN)/python tests/kills.py --every
	$(BIN)/python tests/signals.py --instants 40
	$(BIN)/python tests/lost.py
	$(BIN)/python tests/attack.py

mutants: $(READY)       ## try a list of faults, each of which its tests must find
	$(BIN)/python tests/mutants.py

freeze: $(READY)        ## compare all outputs with stored digests, or STORE=--store
	$(BIN)/python tests/freeze.py $(STORE)

clean:                  ## remove .venv, demo and docs/_build
	rm -rf $(VENV) demo docs/_build

$(READY): pyproject.toml constraints.txt tests/peers.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than Python 3.11: give another one, make PYTHON=python3.11"; exit 1; }
	@echo "installing in $(VENV): about 2 GB, some minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip  # one of before 2025 takes twice as long to look at the wheels
	$(BIN)/pip install -q --no-compile -c constraints.txt -e '.[weather,learn,scale,docs,dev]'
	$(BIN)/pip install -q --no-compile --no-deps -r tests/peers.txt
	touch $(READY)
