"""Work distributed over processes: the same results, errors and files as in one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from small_work import killed, square

import greenbatch as gb
from greenbatch.errors import InputError
from greenbatch.experiments.running.compare import compare
from greenbatch.workers import WORTH_S, choose, spread


@gb.rule("of-this-test")
def of_this_test(queue: gb.Queue):
    """Many processors first."""
    return -queue.processors * (1.0 + queue.wait_s)


class Policy:
    """Last come, first served."""

    def decide(self, view: gb.View) -> gb.Start:
        return gb.Start(len(view.job_id) - 1)


def test_items_come_back_from_other_processes() -> None:
    found = dict(spread(range(6), square, square, 2))
    assert {number: value for number, (value, _) in found.items()} == {n: n**2 for n in range(6)}
    assert os.getpid() not in {process for _, process in found.values()}


def test_what_cannot_be_sent_is_done_here() -> None:
    lock = threading.Lock()
    found = dict(spread([1, 2], square, lambda number: (lock, square(number)), 2))
    assert found == {1: (1, os.getpid()), 2: (4, os.getpid())}


def test_the_rest_of_killed_processes_is_done_here() -> None:
    task = partial(killed, os.getpid())
    assert dict(spread([1, 2, 3], task, task, 2)) == {1: 1, 2: 4, 3: 9}


def test_the_first_error_counts_and_reads_as_it_does_here() -> None:
    lines = []
    for workers in (1, 2):
        with pytest.raises(InputError) as caught:
            dict(spread([5, -7, 6, -8, 7], square, square, workers))
        lines.append((str(caught.value), caught.value.field, caught.value.line))
    assert lines[0] == lines[1] == ("numbers.txt, line 3: number: is -7 (give 0 or more)", "number", 3)


def test_short_work_stays_here_and_a_given_number_is_taken() -> None:
    assert choose(None, WORTH_S / 2) == 1
    assert 1 <= choose(None, WORTH_S * 2) <= len(os.sched_getaffinity(0))
    assert choose(3, 0.0) == 3


def test_a_comparison_does_not_depend_on_the_number_of_processes() -> None:
    deciders = {
        "fcfs+easy": "fcfs+easy", "plus": "gas-marl-plus@default", "mine": of_this_test, "policy": Policy,
        "local": lambda queue: queue.requested_time_s,
    }  # fmt: skip
    scenario, starts = gb.load_scenario("default"), (500, 0, 2000, 1000, 70)
    told: list[tuple[str, int, int]] = []
    frames = [
        compare(scenario, deciders, starts, 48, "fcfs+easy", lambda *at: told.append(at), workers=workers).frame
        for workers in (1, 2)
    ]
    assert frames[0]["window"].unique(maintain_order=True).to_list() == [str(start) for start in starts]
    assert frames[1].equals(frames[0])
    runs = len(starts) * len(deciders)
    first = len(deciders)  # compiling is in the first window, so it counts as one step
    assert [done for _, done, total in told[:runs]] == [0] * first + list(range(first, runs))
    assert [done for _, done, _ in told[-4:]] == [10, 15, 20, 25], "of several processes, window by window"


def test_a_policy_that_cannot_be_sent_is_compared_here() -> None:
    lock, processes_of = threading.Lock(), set()

    class Locked:
        def decide(self, view: gb.View) -> gb.Start:
            with lock:
                processes_of.add(os.getpid())
                return gb.Start(0)

    got = gb.compare("default", {"locked": Locked}, starts=[0, 50, 90], jobs=10, workers=2)
    assert got.starts == (0, 50, 90)
    assert processes_of == {os.getpid()}


SCRIPT = """\
import greenbatch as gb

@gb.rule("in-a-script")
def rule(queue):
    return queue.wait_s * queue.processors

print(gb.compare("default", ["in-a-script+easy"], starts=[0, 40, 80], jobs=16, workers=2).starts)
"""


def test_a_script_needs_no_guard_and_prints_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-W", "error", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("(0, 40, 80)\n", "")


def test_processes_inherit_a_block_of_ctrl_c_and_then_ignore_it():
    code = (
        "import signal\nfrom greenbatch.workers import spread\n"
        "def there(_):\n"
        "    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
        "    return blocked, signal.getsignal(signal.SIGINT) == signal.SIG_IGN\n"
        "print([found for _, found in spread([1, 2], there, there, 2)])\n"
        "print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[(True, True), (True, True)]", "False"]


COMPILING = """\
import sys, time
from greenbatch.machine_code.kept import announced, cache_folder
file = cache_folder() / "part.code"
with announced(file, "a part of this test"):
    print("inside", flush=True)
    time.sleep(0.5)
    file.touch()
"""


def test_a_part_of_the_engine_is_compiled_by_one_process_at_a_time(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    run = partial(subprocess.Popen, [sys.executable, "-c", COMPILING], env=environment, text=True)
    both = [run(stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    said = [each.communicate(timeout=60) for each in both]
    assert [out for out, _ in said] == ["inside\n"] * 2
    once = "compiling the engine (a part of this test; once per version)"
    assert sorted(error.count(once) for _, error in said) == [0, 1]
