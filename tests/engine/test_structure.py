"""The shape of the engine, read from its text: typed parts, layouts written once, one clock, one slot arithmetic."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import greenbatch
from greenbatch.engine import records
from greenbatch.engine.views import memory

SOURCE = Path(greenbatch.__file__).parent
SLOTS = "energy/slots.py"
DECORATORS = ("compiled", "compiled_rare", "compiled_small", "compiled_allocating")


class Function(NamedTuple):
    """A function and where it is."""

    file: str
    node: ast.FunctionDef

    @property
    def place(self) -> str:
        return f"{self.file}:{self.node.name}"


def engine_files() -> dict[str, str]:
    """Name -> text of every file of the engine and of compiled policies."""
    compiled = ("engine/", "policies/compiled/", SLOTS)
    return {name: text for name, text in all_files().items() if name.startswith(compiled)}


def all_files() -> dict[str, str]:
    return {file.relative_to(SOURCE).as_posix(): file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py")}


def functions(files: dict[str, str]) -> Iterator[Function]:
    for file, text in files.items():
        yield from (Function(file, node) for node in functions_in(text))


def holding(word: str, files: dict[str, str]) -> dict[str, str]:
    """The files that have a word in them: others need not be read as Python."""
    return {name: text for name, text in files.items() if word in text}


@cache
def functions_in(text: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]


def is_compiled(function: Function) -> bool:
    """Whether Numba compiles it: a decorator says so, it is registered for a kind of part, or it takes a state."""
    for decorator in function.node.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id in DECORATORS:
            return True
        if isinstance(decorator, ast.Call):
            called = decorator.func
            if isinstance(called, ast.Attribute) and called.attr == "register" and is_variant(called.value):
                return True
            if isinstance(called, ast.Name) and called.id == "variant":
                return True
    return any(each.arg == "s" for each in parameters(function.node))


def is_variant(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in VARIANTS


def declares(node: ast.FunctionDef) -> bool:
    """Whether it is asked of parts, and what holds for one of them."""
    called = (each.func for each in node.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Name) and each.id == "variant" for each in called)


VARIANTS = {each.node.name for each in functions(engine_files()) if declares(each.node)}


def parameters(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def test_no_contract_asks_more_than_ten_functions() -> None:
    """A contract is a file of variants, see docs/decisions/0068-contracts-by-question.md."""
    asked = Counter(each.file for each in functions(holding("@variant", all_files())) if declares(each.node))
    assert asked["engine/machine/resources.py"] == 5
    assert {file: count for file, count in asked.items() if count > 10} == {}


# ---------------------------------------------------------------- typed parts

ANY_KIND = {"engine/decide.py:decide", "engine/entry_points.py:_run", "policies/compiled/rolling.py:attempt"}
"""Functions whose parameter ``decider`` may be of any kind: its type chooses the implementation."""


def untyped(files: dict[str, str]) -> list[str]:
    """Parameters and results of compiled functions that have no type, or any."""
    found = []
    for function in filter(is_compiled, functions(files)):
        given = {each.arg: each.annotation for each in parameters(function.node)}
        if function.place in ANY_KIND:
            given.pop("decider")
        given["return"] = function.node.returns
        found += [f"{function.place}: {name}" for name, kind in given.items() if kind is None or is_any(kind)]
    return found


def is_any(kind: ast.expr) -> bool:
    return isinstance(kind, ast.Name) and kind.id in ("Any", "object")


def test_every_compiled_function_takes_typed_parts() -> None:
    seen = [each for each in functions(engine_files()) if is_compiled(each)]
    assert len(seen) > 100
    assert {"fits", "take", "give", "next_change_s", "flow", "forecast_w", "decide"} <= VARIANTS
    assert untyped(engine_files()) == []


def test_a_state_is_called_s_and_is_a_state() -> None:
    wrong = [
        f"{function.place}: {each.arg}" for function in functions(engine_files()) if is_compiled(function)
        for each in parameters(function.node)
        if (each.arg == "s") != (ast.unparse(each.annotation or each) == "State")
    ]  # fmt: skip
    assert wrong == []


# ---------------------------------------------------------------- records


def layouts(files: dict[str, str]) -> list[str]:
    """Places that write the layout of a record down, other than as a class."""
    found = []
    for file, text in files.items():
        for node in ast.walk(ast.parse(text)) if "dtype" in text else ():
            written = isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.List | ast.Dict)
            if written and ast.unparse(node.func) == "np.dtype":  # type: ignore[attr-defined]
                found.append(f"{file}:{node.lineno}")  # type: ignore[attr-defined]
            if isinstance(node, ast.keyword) and node.arg == "dtype" and isinstance(node.value, ast.List):
                found.append(f"{file}:{node.value.lineno}")
    return found


def test_a_layout_is_written_once() -> None:
    files = engine_files()
    assert layouts(files) == []
    likely = functions(holding("np.dtype(fields", files))
    made = [place.place for place in likely if "np.dtype(fields" in ast.unparse(place.node)]
    assert made == ["engine/records.py:dtype_of"]


def test_fields_of_records_are_no_methods_of_numpy() -> None:
    """In plain Python such a field would be hidden: ``slots.repeat`` was the method of that name, which is true."""
    kinds = [each for module in (records, memory) for _, each in inspect.getmembers(module, inspect.isclass)
             if each.__module__ == module.__name__ and each.__annotations__]  # fmt: skip
    assert {"Job", "Clock", "Slots", "Ledger", "Event", "Known"} <= {each.__name__ for each in kinds}
    hidden = [f"{each.__name__}.{name}" for each in kinds for name in each.__annotations__ if hasattr(np.record, name)]
    assert hidden == []


# ---------------------------------------------------------------- slots

SIZES = {"engine/views/codec.py:state_of", "engine/prepare.py:check_slots", "engine/state.py:new_state",
         "energy/site.py:horizon_slots", "energy/site.py:_facts", "energy/site.py:month_at",
         "engine/capacity/value.py:_count_until", "engine/capacity/value.py:worth_of", "engine/observe/image.py:draw",
         "engine/observe/features.py:fill_ticks", "policies/compiled/packer.py:_weigh"}  # fmt: skip
"""Functions that divide a duration by a step, for the size of a table or to count ticks, or multiply them, for a
duration or the begins of many slots at once."""


def slot_arithmetic(files: dict[str, str]) -> set[str]:
    """Functions that compute the number of a slot from a time, or a time from the number of a slot."""
    return {
        function.place for function in functions(files) for node in ast.walk(function.node)
        if isinstance(node, ast.BinOp) and is_slot_arithmetic(node)
    }  # fmt: skip


def is_slot_arithmetic(node: ast.BinOp) -> bool:
    left, right = ast.unparse(node.left), ast.unparse(node.right)
    if isinstance(node.op, ast.Add):
        return left.endswith("origin_s") or right.endswith("origin_s")
    if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
        return False  # some steps: a duration
    return isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod | ast.Mult) and right.endswith(("step_s", "tick_s"))


def test_slots_are_computed_in_one_file() -> None:
    files = engine_files() | {"energy/site.py": all_files()["energy/site.py"]}
    assert len(slot_arithmetic({SLOTS: files.pop(SLOTS)})) == 2
    assert slot_arithmetic(files) == SIZES


# ---------------------------------------------------------------- the clock

MOVERS = {
    "engine/state.py:new_state": "the first submission", "engine/views/codec.py:state_of": "that of the view",
    "engine/events.py:next_event": "the next event", "engine/events.py:switch_until": "the next switch of a node",
    "engine/events.py:next_slot": "the next slot of the supply",
}  # fmt: skip
"""Functions that set the clock, and to what."""
CALLERS = {
    "complete": {"engine/events.py:next_event", "engine/events.py:_rest_of_instant"},
    "next_event": {"engine/events.py:next_instant", "engine/events.py:_event_at_once"},
    "next_instant": {"engine/step.py:happen"},
    "happen": {"engine/step.py:_next_decision"},
    "_next_decision": {"engine/step.py:drive"},
    "drive": {*(f"engine/step.py:{name}" for name in ("advance", "is_due", "apply")),
              "engine/entry_points.py:_run", "engine/entry_points.py:_step"},
    "advance": {
        "engine/observe/batch.py:advance_to_choice",
        "policies/compiled/lookahead/plan.py:run_many", "policies/compiled/rolling.py:attempt",
    },
}  # fmt: skip
"""Function that moves the clock -> the functions that may call it."""
LOOPS = {"engine/entry_points.py:_run", "engine/views/session.py:advance", "engine/views/session.py:run_policy",
         "engine/views/session.py:run_plain_rule", "engine/views/session.py:run_learning",
         "policies/compiled/lookahead/plan.py:run_many", "engine/observe/batch.py:advance_to_choice",
         "policies/compiled/rolling.py:attempt"}  # fmt: skip
"""Loops over the events of a simulation: the one of the engine, three around Python, one over many simulations, one
over the decisions at which an agent has no choice, and one up to the horizon of a planner."""


def movers(files: dict[str, str]) -> set[str]:
    """Functions that assign to ``now_s`` of a clock."""
    found = set()
    for function in functions(holding("now_s", files)):
        for node in ast.walk(function.node):
            named = isinstance(node, ast.Attribute) and node.attr == "now_s"
            key = node.slice if isinstance(node, ast.Subscript) else None
            keyed = isinstance(key, ast.Constant) and key.value == "now_s"
            if (named or keyed) and isinstance(node.ctx, ast.Store):  # type: ignore[attr-defined]
                found.add(function.place)
    return found


def callers(files: dict[str, str], name: str) -> set[str]:
    return {
        function.place for function in functions(holding(name, files)) for node in ast.walk(function.node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    }  # fmt: skip


def loops(files: dict[str, str]) -> set[str]:
    """Functions with a loop whose condition advances a simulation."""
    return {
        function.place for function in functions(holding("while ", files)) for node in ast.walk(function.node)
        if isinstance(node, ast.While) and re.search(r"\b(_?advance|drive)\(", ast.unparse(node.test))
    }  # fmt: skip


def test_only_events_move_the_clock() -> None:
    assert movers(all_files()) == set(MOVERS)


@pytest.mark.parametrize("name", CALLERS)
def test_the_clock_is_moved_by_advance_alone(name: str) -> None:
    own = (
        {"engine/views/session.py:run_plain_rule", "engine/views/session.py:run_learning"}
        if name == "advance"
        else set()
    )  # a local name of the entry point
    assert callers(all_files(), name) == CALLERS[name] | own


def test_there_is_one_loop() -> None:
    assert loops(all_files()) == LOOPS


# ---------------------------------------------------------------- these tests can fail

OFFENSE = """
@compiled_small
def moves(s: Any, grid, state: State):
    s.clock.now_s = 3.0
    c.now_s, c.event = 1, 2
    while advance(s):
        next_event(s, np.inf)
    return np.dtype([("a", float)])

@fits.register(Pool)
def fits_pool(machine, processors: int) -> Any:
    return True
"""


def test_offenses_are_seen() -> None:
    files = {"engine/x.py": OFFENSE}
    missing = ["moves: s", "moves: grid", "moves: return", "fits_pool: machine", "fits_pool: return"]
    assert untyped(files) == [f"engine/x.py:{each}" for each in missing]
    assert movers(files) == loops(files) == callers(files, "next_event") == {"engine/x.py:moves"}
    lines = ("floor((t_s - s.origin_s) / s.step_s)", "t_s // tick_s", "origin_s + shift_s", "a_s + slot * x.step_s")
    for line in lines:
        assert slot_arithmetic({"x.py": f"def f():\n    return {line}"}) == {"x.py:f"}
    assert len(layouts(files)) == 1
