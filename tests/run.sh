#!/bin/sh
# The whole test suite, in two processes: most tests with the compiled engine, those marked plain as plain Python, which
# costs no compilation and shows compiled functions to coverage.
# Usage: sh tests/run.sh DIR_OF_PYTHON. With coverage, unless COVERAGE=0.
set -eu
bin=$1
unset PYTHONDONTWRITEBYTECODE  # tests start many processes, each of which would compile its Python again
cover=
if [ "${COVERAGE:-1}" != 0 ]; then
    export COVERAGE_FILE="${COVERAGE_FILE:-.coverage}"
    "$bin/coverage" erase
    cover="--cov=greenbatch --cov-report= --cov-fail-under=0 --cov-append"
fi
folders="tests/cli tests/datasets tests/engine"  # as in conftest.py, so that nothing else is collected
marked=$(grep -rl 'mark\.plain' tests --include='test_*.py' | grep -Ev '^tests/(cli|datasets|engine)/')
tests() { env NUMBA_DISABLE_JIT="$plain" "$bin/python" -m pytest "${PYTEST_ARGS:--q}" -n 2 --dist loadfile --no-loadscope-reorder $cover "$@"; }
failed=0
plain=1
tests -m plain $folders $marked || failed=1
plain=0
tests -m "compiled or not plain" || failed=1
if [ -n "$cover" ]; then
    "$bin/coverage" report || failed=1
fi
exit $failed
