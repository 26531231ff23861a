"""Rules and policies handed over as they are, as from the cells of a notebook: functions, classes, objects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from threading import Lock
from typing import Any

import numba
import numpy as np
import pytest

import greenbatch as gb
from greenbatch.cluster import Cluster
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.policies import registry
from greenbatch.schedulers import scheduler, scheduler_table
from greenbatch.workload import Workload

JOBS = Workload.from_columns(
    "jobs", {"submit_s": [0.0, 1.0, 2.0, 3.0], "run_time_s": [10.0, 9.0, 2.0, 5.0], "processors": [2, 2, 2, 1]}
)
SHORTEST_FIRST, LAST_FIRST, IN_ORDER = [0.0, 17.0, 10.0, 12.0], [0.0, 17.0, 15.0, 10.0], [0.0, 10.0, 19.0, 21.0]


@pytest.fixture(autouse=True)
def registry_as_it_was() -> Iterator[None]:
    before = dict(registry.ENTRIES)
    yield
    registry.ENTRIES.clear()
    registry.ENTRIES.update(before)


def starts(decider: Any, **options: Any) -> list[float]:
    made = scheduler(decider, **options)
    found: list[float] = simulate(JOBS, Cluster.pooled(2), None, Rules(), made).start_s.tolist()
    return found


def shortest(queue):
    return queue.requested_time_s


class Fifo:
    def decide(self, view):
        return gb.Start(0)


class Counts:
    """Starts the last job first as long as it was asked for no more than three decisions in its life."""

    def __init__(self):
        self.asked = 0

    def decide(self, view):
        self.asked += 1
        return gb.Start(len(view.job_id) - 1 if self.asked <= 3 else 0)


# --- what is accepted --------------------------------------------------------------------------------------------


def test_a_function_is_a_scheduler_without_being_registered() -> None:
    known = set(registry.ENTRIES)
    assert starts(shortest) == starts("sjf") == SHORTEST_FIRST
    assert scheduler(shortest).name == "shortest+none"
    assert scheduler(shortest).program(JOBS).compiled is not None
    assert set(registry.ENTRIES) == known


def test_a_registered_function_keeps_its_name_and_fixed_flag() -> None:
    decorated = gb.rule("short-ones", fixed=True)(shortest)
    made = scheduler(decorated)
    assert (made.name, made.program(JOBS).fixed) == ("short-ones+none", True)
    assert scheduler(decorated, name="mine").program(JOBS).fixed
    assert starts(decorated) == SHORTEST_FIRST


def test_backfilling_of_a_function_is_given_beside_it() -> None:
    assert scheduler(shortest, backfill="green:sigma=25000").settings == {"threshold_j": 25_000.0}
    assert scheduler(shortest, backfill="easy").name == "shortest+easy"
    assert scheduler("fcfs", backfill="easy").name == "fcfs+easy"
    assert starts(shortest, backfill="conservative") == starts("sjf+conservative")
    with pytest.raises(InputError, match=r"no backfilling is called 'esay' \(did you mean easy\?\)"):
        scheduler(shortest, backfill="esay")
    with pytest.raises(InputError, match="has its backfilling already"):
        scheduler(scheduler("fcfs+easy"), backfill="easy")


def test_what_numba_compiled_and_what_it_cannot_compile_are_rules_too() -> None:
    assert starts(numba.njit(shortest)) == SHORTEST_FIRST
    assert starts(lambda queue: [eval("-s") for s in queue.submit_s], name="last") == LAST_FIRST  # noqa: S307
    assert starts(partial(lambda sign, queue: sign * queue.submit_s, -1), name="last") == LAST_FIRST


def test_policies_as_classes_and_objects() -> None:
    assert starts(Fifo) == starts(Fifo()) == IN_ORDER
    assert scheduler(Fifo).name == scheduler(Fifo()).name == "Fifo+none"
    assert scheduler(gb.policy("first")(Fifo)).name == "first+none"


def test_each_simulation_gets_an_object_as_it_was_given() -> None:
    counts = Counts()
    assert starts(counts) == starts(counts) == starts(Counts)
    assert counts.asked == 0


# --- notebooks ---------------------------------------------------------------------------------------------------


def run_cell(code: str, names: dict[str, Any]) -> None:
    """Run code that lies in no file."""
    exec(compile(code, "<cell>", "exec"), names)  # noqa: S102


def test_a_cell_that_is_run_again_with_another_rule_uses_the_new_one() -> None:
    names: dict[str, Any] = {"__name__": "__main__", "gb": gb}
    run_cell("@gb.rule('mine')\ndef mine(queue):\n    return queue.requested_time_s", names)
    assert starts(names["mine"]) == starts("mine") == SHORTEST_FIRST
    run_cell("@gb.rule('mine')\ndef mine(queue):\n    return -queue.submit_s", names)
    assert starts(names["mine"]) == starts("mine") == LAST_FIRST


@pytest.mark.parametrize("registered", [False, True])
def test_a_number_of_another_cell_may_change(registered: bool) -> None:
    """Machine code keeps the values it was made with; plain Python does not. Both must give the same."""
    names: dict[str, Any] = {"__name__": "__main__", "sign": 1.0, "weights": np.array([1.0, 1.0])}
    run_cell("def mine(queue):\n    return sign * weights[0] * queue.submit_s", names)
    mine = gb.rule("mine")(names["mine"]) if registered else names["mine"]
    assert scheduler(mine).program(JOBS).compiled is not None
    assert starts(mine) == IN_ORDER
    names["sign"] = -1.0
    assert starts(mine) == LAST_FIRST
    names["weights"][0] = -1.0
    assert starts(mine) == IN_ORDER
    assert scheduler(mine).program(JOBS).compiled is scheduler(mine).program(JOBS).compiled


def test_a_mistake_names_the_function_and_the_line_of_its_cell() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    run_cell("\ndef mine(queue):\n    return queue.nothing", names)
    with pytest.raises(InputError) as caught:
        starts(names["mine"])
    assert str(caught.value) == (
        "mine, line 3 of its cell: AttributeError: 'Queue' object has no attribute 'nothing' (fix the function)"
    )


# --- several -----------------------------------------------------------------------------------------------------


def test_names_in_a_comparison() -> None:
    given = ["fcfs+easy", shortest, Fifo, scheduler(shortest, backfill="easy"), "f2"]
    assert list(scheduler_table(given)) == ["fcfs+easy", "shortest", "Fifo", "shortest+easy", "f2"]
    assert list(scheduler_table({"a": shortest, "b": "f2+easy", "c": lambda queue: queue.submit_s})) == ["a", "b", "c"]
    assert list(scheduler_table("fcfs+easy, f2")) == ["fcfs+easy", "f2"]
    assert list(scheduler_table(shortest)) == ["shortest"]


def test_compare_takes_functions() -> None:
    scenario = gb.load_scenario("default")
    comparison = gb.compare(scenario, ["sjf", shortest], starts=[0], jobs=50)
    assert comparison.schedulers == ("sjf", "shortest")
    by_name, by_function = (comparison.example[name].start_s.tolist() for name in comparison.schedulers)
    assert by_name == by_function
    assert gb.simulate(scenario, shortest, jobs=50).start_s.tolist() == by_name
    assert gb.compare(scenario, {"a": shortest}, starts=[0], jobs=20).baseline == "a"


class Needs(Fifo):
    def __init__(self, x):
        self.lock = x


def test_objects_of_classes_with_init_arguments_are_accepted() -> None:
    assert starts(Needs(3)) == IN_ORDER
    message = r"^Needs: cannot be copied for a simulation, TypeError: .* \(pass the class instead of an object\)$"
    with pytest.raises(InputError, match=message):
        starts(Needs(Lock()))


# --- what is refused ---------------------------------------------------------------------------------------------


def other() -> Any:
    def shortest(queue):
        return queue.processors

    return shortest


@pytest.mark.parametrize("given", [[shortest, other()], ["f2", "f2"], [Fifo, Fifo()]])
def test_two_of_one_name_are_refused(given: list[Any]) -> None:
    with pytest.raises(InputError, match=r"^schedulers: two are called \w+ \(name each scheduler once"):
        scheduler_table(given)


ACCEPTED = r"is not a scheduler \(give a name such as fcfs\+easy, a rule function, or a class or object with decide"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "scheduler: 5 " + ACCEPTED),
        (None, "scheduler: None " + ACCEPTED),
        ({"a": shortest}, ACCEPTED),
        (np.zeros(3), ACCEPTED),
        (lambda queue: queue.submit_s, "a scheduler needs a name, and this function has none"),
        (partial(shortest), "a scheduler needs a name, and this function has none"),
        (dict, r"policy 'dict' has no method decide\(self, view\)"),
        (Needs, r"^policy 'Needs': cannot be created without arguments, missing a required argument: 'x' \(give the "
                r"arguments of __init__ defaults, or pass an object of the class\)$"),
    ],
)  # fmt: skip
def test_objects_that_are_not_schedulers_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        scheduler(given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [3, "", " ", None, ("a",)])
def test_names_in_a_mapping_must_be_text(name: Any) -> None:
    with pytest.raises(InputError, match=r"^a name in schedulers: is .* \(give a text that is not empty\)$"):
        scheduler_table({"a": "fcfs+easy", name: "sjf"})


@pytest.mark.parametrize("name", [3, ""])
def test_the_name_of_a_scheduler_must_be_text(name: Any) -> None:
    with pytest.raises(InputError, match=r"^name: is .* \(give a text that is not empty\)$"):
        scheduler(shortest, name=name)


@pytest.mark.parametrize("nothing", [[], (), {}, iter([]), np.array([], dtype=str)])
def test_empty_lists_of_schedulers_are_refused(nothing: Any) -> None:
    with pytest.raises(InputError, match=r"^schedulers: names no scheduler"):
        gb.compare("default", nothing, starts=[0], jobs=16)


def test_names_may_be_an_array_or_generator() -> None:
    names = ["fcfs+easy", "sjf"]
    for given in (np.array(names), (name for name in names)):
        comparison = gb.compare("default", given, starts=[0], jobs=16)
        assert comparison.schedulers == ("fcfs+easy", "sjf")
        assert {type(name) for name in comparison.schedulers} == {str}
