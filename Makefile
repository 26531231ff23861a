# One command per habit. Each sets up what it needs in .venv.
PYTHON ?= python3
export PIP_DISABLE_PIP_VERSION_CHECK := 1
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test check docs bench fuzz clean

demo: $(READY)          ## schedulers compared on the embedded scenario: table, report
	$(BIN)/greenbatch demo --out demo --force

test: $(READY) check    ## style, types, tests with coverage
	sh tests/run.sh $(BIN)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/pip install -q -c constraints.txt -e '.[docs]'
	$(BIN)/sphinx-build -W -q docs docs/_build

bench: $(READY)
	$(BIN)/python benchmarks/engine.py --json

fuzz: $(READY)
	$(BIN)/python tests/fuzz.py --minutes 10

clean:
	rm -rf $(VENV) demo docs/_build

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt -e '.[weather,learn,dev]'
	touch $(READY)
