"""CPU seconds of each test file, child processes included, and how much of them went into compilation.

Wall time says little on a machine that others use too. Child processes count once they have ended and were waited for;
their compilations are not told apart. The processes of a Ray cluster count nowhere.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from numba.core import event

from greenbatch.engine.observe.stacked import Batch
from greenbatch.engine.state import State

SHOWN = 25
"""Files that are printed, those that take most; ``CPU_FILES`` is another number. ``LINKED=1`` lists what was linked."""


class Spent(NamedTuple):
    """What was spent since the process began."""

    cpu_s: float = 0.0
    compiling_s: float = 0.0
    compiled: int = 0
    """Functions that were compiled on their own: entry points of the engine and rules, not their parts."""

    def __add__(self, other: tuple[float, ...]) -> Spent:
        return Spent(*(one + more for one, more in zip(self, other, strict=True)))

    def __sub__(self, other: tuple[float, ...]) -> Spent:
        return Spent(*(one - less for one, less in zip(self, other, strict=True)))


class Compilations(event.Listener):
    """Counts compilations by Numba; one within another is part of it."""

    def __init__(self) -> None:
        self.depth, self.began_s, self.seconds, self.number = 0, 0.0, 0.0, 0
        self.linked: set[str] = set()

    def on_start(self, each: Any) -> None:
        if self.depth == 0:
            self.began_s = time.process_time()
            function, kinds = each.data["dispatcher"].py_func, each.data["args"]
            classes = [getattr(getattr(kind, "of", kind), "instance_class", None) for kind in kinds]
            if function.__module__.startswith("greenbatch.") and {State, Batch} & set(classes):
                self.linked.add(f"{function.__module__}.{function.__qualname__} {kinds}")
        self.depth += 1

    def on_end(self, _: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.process_time() - self.began_s
            self.number += 1


class CpuSeconds:
    """A plugin of pytest: measures in each process, adds up in the one that reports."""

    def __init__(self) -> None:
        self.compilations = Compilations()
        event.register("numba:compile", self.compilations)
        self.last = self.spent()
        self.files: dict[str, Spent] = defaultdict(Spent)
        self.processes_s = 0.0
        self.linked: set[str] = set()

    def spent(self) -> Spent:
        return Spent(sum(os.times()[:4]), self.compilations.seconds, self.compilations.number)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self.last = self.spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report: Any = yield
        now = self.spent()
        report.spent, self.last = [*(now - self.last)], now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.files[report.nodeid.partition("::")[0]] += getattr(report, "spent", Spent())

    def pytest_sessionfinish(self, session: Any) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["cpu_s"] = self.spent().cpu_s
            session.config.workeroutput["linked"] = sorted(self.compilations.linked)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {})
        self.processes_s += told.get("cpu_s", 0.0)
        self.linked |= set(told.get("linked", ()))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        ranked = sorted(self.files.items(), key=lambda file: -file[1].cpu_s)
        rows = ranked[: int(os.environ.get("CPU_FILES", SHOWN))]
        rows.append((f"all {len(ranked)} files", sum(self.files.values(), Spent())))
        terminalreporter.section("CPU seconds")
        terminalreporter.write_line("   all  compiling  compiled")
        for name, spent in rows:
            terminalreporter.write_line(f"{spent.cpu_s:6.1f}  {spent.compiling_s:9.1f}  {spent.compiled:8.0f}  {name}")
        own_s = sum(os.times()[:2]) if self.processes_s else self.spent().cpu_s  # the processes are its children
        terminalreporter.write_line(f"{self.processes_s + own_s:6.1f}  with imports and collection")
        linked = sorted(self.linked | self.compilations.linked)
        terminalreporter.write_line(f"{len(linked)} entry points that take a state were linked, each for other types")
        for each in linked if os.environ.get("LINKED") else ():
            terminalreporter.write_line(each)
