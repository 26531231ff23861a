#!/bin/sh
# The whole test suite with coverage, in two processes. Usage: sh tests/run.sh DIR_OF_PYTHON
# Compiled functions are invisible to a coverage tool, so small cases of them run a second time as plain Python.
set -eu
bin=$1
export COVERAGE_FILE="${COVERAGE_FILE:-.coverage}"
"$bin/coverage" erase
"$bin/python" -m pytest "${PYTEST_ARGS:--q}" -n 2 --dist loadfile --cov=greenbatch --cov-report= --cov-fail-under=0
NUMBA_DISABLE_JIT=1 "$bin/coverage" run -m pytest -q -m plain tests/engine tests/envs
"$bin/coverage" combine -q --append
"$bin/coverage" report
"$bin/python" tests/fuzz.py --seconds "${FUZZ_SECONDS:-30}"
