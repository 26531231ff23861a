#!/bin/sh
# The whole test suite in two processes. Usage: sh tests/run.sh DIR_OF_PYTHON
# With coverage, unless COVERAGE=0. Compiled functions are invisible to a coverage tool,
# and compiled code must do what plain Python does, so small cases of them run a second time as plain Python.
set -eu
bin=$1
if [ "${COVERAGE:-1}" = 0 ]; then
    "$bin/python" -m pytest "${PYTEST_ARGS:--q}" -n 2 --dist loadfile --no-loadscope-reorder
    NUMBA_DISABLE_JIT=1 "$bin/python" -m pytest -q -m plain tests/engine tests/envs tests/rare
else
    export COVERAGE_FILE="${COVERAGE_FILE:-.coverage}"
    "$bin/coverage" erase
    "$bin/python" -m pytest "${PYTEST_ARGS:--q}" -n 2 --dist loadfile --no-loadscope-reorder --cov=greenbatch --cov-report= --cov-fail-under=0
    NUMBA_DISABLE_JIT=1 "$bin/coverage" run -m pytest -q -m plain tests/engine tests/envs tests/rare
    "$bin/coverage" combine -q --append
    "$bin/coverage" report
fi
"$bin/python" tests/fuzz.py --seconds "${FUZZ_SECONDS:-8}"
