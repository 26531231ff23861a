"""Schedulers by name: what is understood, what is refused in one line, and user-defined rules."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import greenbatch as gb
from greenbatch.cluster import Cluster
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.settings import SETTINGS, WEIGHTS, plain
from greenbatch.engine.simulate import simulate
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.models.network import PARAMETERS
from greenbatch.policies import registry
from greenbatch.policies.backfillings import BACKFILLINGS
from greenbatch.schedulers import backfill_parameters, entries, names, scheduler, split_schedulers
from greenbatch.workload import Workload

Write = Callable[[str], str]

JOBS = Workload.from_columns(
    "jobs",
    {
        "submit_s": [0.0, 1.0, 2.0, 3.0], "run_time_s": [10.0, 9.0, 2.0, 5.0], "processors": [2, 2, 2, 1],
        "user": [1, 2, 1, 2], "power_w": [10.0, 10.0, 10.0, 10.0],
    },
)  # fmt: skip


@pytest.fixture(autouse=True)
def registry_as_it_was() -> Iterator[None]:
    before = dict(registry.ENTRIES)
    yield
    registry.ENTRIES.clear()
    registry.ENTRIES.update(before)


def starts(name: str, jobs: Workload = JOBS) -> list[float]:
    found: list[float] = simulate(jobs, Cluster.pooled(2), None, Rules(), scheduler(name)).start_s.tolist()
    return found


def refusal(name: str) -> str:
    """The one line that says why a scheduler is refused, when it is made or when it runs."""
    with pytest.raises(GreenbatchError) as caught:
        starts(name)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("spec", "name", "parameters", "backfill", "settings"),
    [
        ("fcfs", "fcfs+none", {}, "none", {}),
        (" fcfs+easy ", "fcfs+easy", {}, "easy", {}),
        ("f2+green:sigma=25000", "f2+green:sigma=25000", {}, "green", {"threshold_j": 25_000.0}),
        ("lptpn:sigma=1e+3", "lptpn:sigma=1e+3+none", {"sigma": 1000.0}, "none", {}),
        ("lptpn:sigma=1e+3+none", "lptpn:sigma=1e+3+none", {"sigma": 1000.0}, "none", {}),
        ("cheapest-start:psi=2:hold=5e5", "cheapest-start:psi=2:hold=5e5+none", {"psi": 2.0, "hold": 5e5}, "none", {}),
        ("random:seed=7+conservative", "random:seed=7+conservative", {"seed": 7.0}, "conservative", {}),
    ],
)
def test_what_a_name_spells(
    spec: str, name: str, parameters: dict[str, float], backfill: str, settings: dict[str, float]
) -> None:
    made = scheduler(spec)
    assert (made.name, made.parameters, made.backfill, made.settings) == (name, parameters, backfill, settings)
    program = made.program(JOBS)
    engine = "none" if backfill == "conservative" else backfill  # a decider of its own
    assert (program.name, program.backfill) == (name, engine)
    assert (program.decider is not None and program.decider.name == "conservative") == (backfill == "conservative")
    assert settings.items() <= (program.settings or {}).items()


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("fcsf+easy", "scheduler 'fcsf+easy': no policy is called 'fcsf' (did you mean fcfs?)"),
        ("fcfs+esay", "scheduler 'fcfs+esay': no backfilling is called 'esay' (did you mean easy?)"),
        ("fcfs+", "scheduler 'fcfs+': no backfilling is called '' (known: conservative, easy, easy-green-order, "
                  "easy-irmasim, easy-schedgym, first-fit, green, none)"),
        ("fcfs+low-power", "scheduler 'fcfs+low-power': low-power is a placement, the third part of a name "
                           "(put a backfilling before it, such as none+low-power or easy+low-power)"),
        (
            "ineps-plus",
            "scheduler 'ineps-plus': ineps-plus is a preset (give a model, ineps-plus@default or ineps-plus@FOLDER)",
        ),
        ("ineps+easy", "scheduler 'ineps+easy': ineps is a preset (train it, and give ineps@FOLDER)"),
        (
            "ineps-plus@default+easy",
            "ineps-plus@default+easy: ineps-plus@default+easy chooses among the pairs that fit now, so it neither "
            "delays, backfills nor commits",
        ),
        ("ineps@default", "ineps@default: is not a model (give the folder"),
        ("F2+easy", "scheduler 'F2+easy': no policy is called 'F2' (did you mean f2?)"),
        ("fcfs+easy+green", "scheduler 'fcfs+easy+green': no policy is called 'fcfs+easy'"),
        ("fcfs:sigma=3+easy", "scheduler 'fcfs:sigma=3+easy': fcfs has no parameter 'sigma' (it takes none)"),
        ("f2+green:psi=3", "'f2+green:psi=3': green has no parameter 'psi' (it takes sigma, brown, cost, carbon)"),
        ("f2+green:sigma=1:sigma=2", "f2+green:sigma=1:sigma=2: sigma is given twice (give it once)"),
        ("f2+green:sigma=much", "f2+green:sigma=much: sigma is 'much' (give 0 to 1e15 J)"),
        ("f2+green:sigma=-1", "f2+green:sigma=-1: sigma is -1 (give 0 to 1e15 J)"),
        ("f2+green:sigma=nan", "f2+green:sigma=nan: sigma is nan (give 0 to 1e15 J)"),
        ("f2+green:sigma=inf", "f2+green:sigma=inf: sigma is inf (give 0 to 1e15 J)"),
        ("f2+green:sigma=", "f2+green:sigma=: sigma is '' (give 0 to 1e15 J)"),
        ("lptpn+easy", "lptpn+easy: considers every job that could start itself and does not support "
                       "backfilling (leave out easy)"),
        ("ga+conservative", "ga+conservative: decides by itself, and conservative backfilling plans for all jobs"),
        ("min-min+none+pack", "min-min+none+pack: chooses the nodes itself and does not support a placement (leave out "
                              "pack)"),
        ("cheapest-start:tick=0", "cheapest-start:tick=0: tick is 0 (give 1 to 604800 s)"),
        ("cheapest-start:tick=1e-9", "cheapest-start:tick=1e-9: tick is 1e-9 (give 1 to 604800 s)"),
        ("cheapest-start:tick=1:horizon=31622400", "compares horizon / tick = 31,622,400 starts of each job, more than "
                                                  "5,000 (give a longer tick or a shorter horizon)"),
        ("foresee:tick=1:horizon=31622400", "compares horizon / tick = 31,622,400 starts of each job"),
        ("cheapest-start:reserve=5", "cheapest-start:reserve=5: reserve is 5 (give 0 to 1)"),
        ("random:seed=1.5", "random:seed=1.5: seed is 1.5 (give a whole number from 0 to 1e15)"),
        ("random:seed=1e30+easy", "random:seed=1e30+easy: seed is 1e30 (give a whole number from 0 to 1e15)"),
        ("no/such.py:mine+easy", "no/such.py: no such file (give a Python file that registers a rule)"),
        ("", "scheduler '': no policy is called ''"),
    ],
)  # fmt: skip
def test_what_is_refused(spec: str, line: str) -> None:
    assert line in refusal(spec)


RANGES = {
    **{
        f"{name}:{key}": each
        for name, entry in entries().items()
        for key, each in entry.parameters.items()
        if not each.choices
    },
    **{f"f2+{name}:{key}": each for name in BACKFILLINGS for key, each in backfill_parameters(name).items()},
}


@pytest.mark.parametrize("spec", RANGES)
def test_every_parameter_is_held_to_its_range(spec: str) -> None:
    known = RANGES[spec]
    outside = [math.nan, math.inf, -math.inf, math.nextafter(known.highest, math.inf)]
    outside += [-1e-300] * (known.lowest >= 0)
    outside += [math.nextafter(known.lowest, -math.inf)] + [known.lowest + 0.5] * known.whole
    for value in outside:
        said = refusal(f"{spec}={value!r}")
        assert said.startswith(f"{spec}={value!r}: {spec.rpartition(':')[2]} is "), said
        assert said.endswith(f"(give {known.span})")
    for value in (known.lowest, known.default, known.highest):
        scheduler(f"{spec}={value!r}")


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_of_a_program_is_held_to_its_range(name: str) -> None:
    known = SETTINGS[name]
    for value in (math.nan, math.inf, -1e-300, math.nextafter(known.highest, math.inf)):
        with pytest.raises(InputError, match=rf"mine: {name} is .* \(give .*\)"):
            Program(name="mine", settings={name: value})
    for value in (known.lowest, known.default, known.highest):
        Program(name="mine", settings={name: value})


WEIGHING = ("cheapest-start", "foresee", "green-threshold", "f2+green")
ENDS = {
    "sticky": (0, 1), "per_instant": (0, 1), "completion_first": (0, 1), "tick_s": (1, 604_800),
    "power_cap_w": (1, 1e15), "threshold_j": (0, 1e15), **{f"weight_{key}": (0, 1e6) for key in WEIGHTS},
    **{f"{name}:{key}": (0, 1e6) for name in WEIGHING for key in WEIGHTS},
    "green-threshold:share": (0, 1), "green-threshold:slowdown": (0, 1e6), "green-threshold:limit": (0, 31_622_400),
    "green-threshold:shape": (0.1, 10), "green-threshold:tick": (1, 604_800),
    "lptpn:sigma": (0, 1e15), "lptpn-published:sigma": (0, 1e15), "random:seed": (0, 1e15),
    "cheapest-start:hold": (0, 1e15), "cheapest-start:psi": (0, 1e15), "cheapest-start:reserve": (0, 1),
    "cheapest-start:short": (0, 1e11), "cheapest-start:horizon": (0, 31_622_400), "cheapest-start:tick": (1, 604_800),
    **{f"foresee:{key}": (0, 1e15) for key in ("slowdown", "idle")},
    **{f"foresee:{key}": (0, 1) for key in ("reserve", "filler", "holds", "learned")},
    **{f"foresee:{key}": (0, 31_622_400) for key in ("horizon", "limit")},
    **{f"foresee:{key}": (0, 10) for key in ("aging", "density", "wide")},
    "foresee:price": (0, 1e6), "foresee:backlog": (0, 1e6), "foresee:tick": (1, 604_800),
    **{f"rolling:{key}": (0, 1e15) for key in ("slowdown", "idle", "seed")},
    "rolling:makespan_bound": (1.25, 1.5), "rolling:futures": (1, 64), "rolling:horizon": (3600, 1_209_600),
    "rolling:error": (0, 3),
    "ga-published:eta": (0, 1e6), "ga-published:seed": (0, 1e15),
    **{f"{name}:{key}": (0, 1e6) for name in ("ga", "aco") for key in ("eta", "renewable", "cost", "carbon")},
    **{f"{name}:evaluations": (60, 1e6) for name in ("ga", "aco")}, "ga:seed": (0, 1e15), "aco:seed": (0, 1e15),
    **{f"charge_{key}": (0, 1) for key in ("below", "above", "carbon")},
    "packer:size": (0, 4), "packer:length": (-2, 2), **{f"packer:{key}": (0, 10) for key in ("bias", "age", "balance")},
    "random-action:seed": (0, 1e15), "f2+green:sigma": (0, 1e15),
    **dict.fromkeys((f"slurm-multifactor:{key}" for key in ("age", "fairshare", "size", "partition")), (0, 2**32 - 1)),
    "slurm-multifactor:max_age": (1, 31_622_400), "slurm-multifactor:half_life": (1, 316_224_000),
    "slurm-multifactor:favor_small": (0, 1),
    "sample": (0, 1), "seed": (0, 1e15), "eager": (0, 1e6), "hold": (0, 31_622_400),
}  # fmt: skip
"""Setting, parameter of a scheduler or option of a model -> its lowest and highest value, as documented."""


def test_every_range_ends_where_it_is_documented_to() -> None:
    known = {**SETTINGS, **RANGES, **PARAMETERS}
    assert known.keys() == ENDS.keys()
    for name, (lowest, highest) in ENDS.items():
        taken = [lowest, highest]
        refused = [math.nextafter(lowest, -math.inf), math.nextafter(highest, math.inf), 2.0 * highest]
        assert all(known[name].takes(value) for value in taken), name
        assert not any(known[name].takes(value) for value in refused), name


@pytest.mark.parametrize("name", ["treshold_j", "processors", "idle_w", "ranking", "supply_slots", "now_s", ""])
def test_a_program_sets_nothing_else_in_the_engine(name: str) -> None:
    with pytest.raises(InputError, match=f"mine: no setting is called {name!r} .*known: sticky, .*, weight_carbon.$"):
        Program(name="mine", settings={name: 1.0})


def test_a_job_may_have_5000_starts_to_compare() -> None:
    for horizon, taken in ((5000, True), (5001, False)):
        made = scheduler(f"cheapest-start:tick=1:horizon={horizon}")
        if taken:
            assert made.program(JOBS).settings
        else:
            with pytest.raises(InputError, match="more than 5,000"):
                made.program(JOBS)


def test_numbers_are_written_as_one_would_type_them() -> None:
    texts = ["0", "1", "0.2", "-3", "31622400", "604800", "1e15", "1e11", "1e-9", "1.05", "nan", "inf", "1e308"]
    assert [plain(float(text)) for text in texts] == texts
    assert plain(31622400.5) == "31622400.5"


def test_an_unknown_policy_far_from_any_names_them_all() -> None:
    for name in names():
        assert name in refusal("xxxxxxxx+easy")


def test_lists_of_schedulers() -> None:
    assert split_schedulers(" fcfs+easy, f2+green,,") == ["fcfs+easy", "f2+green"]
    with pytest.raises(InputError, match="names no scheduler"):
        split_schedulers(" , ")
    with pytest.raises(InputError, match=r"names fcfs\+easy twice"):
        split_schedulers("fcfs+easy,f2+green,fcfs+easy")


# --- user-defined rules -------------------------------------------------------------------------------------------

SHORTEST = """
import greenbatch as gb

@gb.rule("shortest")
def shortest(queue):
    '''Shortest request first, users with a high number before others.'''
    return queue.requested_time_s - 1000.0 * (queue.user > 1)
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a user's file and returns its path."""

    def to(text: str) -> str:
        (tmp_path / "my_rules.py").write_text(text)
        return str(tmp_path / "my_rules.py")

    return to


def test_a_rule_from_a_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(write(SHORTEST))
    assert starts(f"{path}:shortest+none") == [0.0, 15.0, 24.0, 10.0]
    assert starts(f"{path}:shortest+easy") == [0.0, 15.0, 24.0, 10.0]
    assert entries()["shortest"].summary == "Shortest request first, users with a high number before others."
    assert scheduler("shortest+none").program(JOBS).compiled is not None
    monkeypatch.chdir(path.parent)
    assert starts("my_rules.py:shortest+none") == [0.0, 15.0, 24.0, 10.0]
    assert "no policy is called 'shortish' (did you mean shortest?)" in refusal("my_rules.py:shortish+none")


def test_a_fixed_rule_is_asked_once_for_all_jobs(write: Write) -> None:
    text = SHORTEST.replace('rule("shortest")', 'rule("shortest", fixed=True)')
    path = write(text)
    assert starts(f"{path}:shortest+none") == [0.0, 15.0, 24.0, 10.0]
    assert scheduler("shortest").program(JOBS).compiled is None


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("def half(:\n    pass", 1, "SyntaxError: invalid syntax"),
        ("import greenbatch as gb\nx = 1 / 0", 2, "ZeroDivisionError: division by zero"),
        ("import numpy\n\n\nimport no_such_module_at_all", 4, "ModuleNotFoundError"),
        ("import sys\nsys.exit(3)", 2, "SystemExit: 3"),
        ("import greenbatch as gb\n\n@gb.rule('fcfs')\ndef mine(queue):\n    return queue.wait_s\n", None,
         "fcfs: is the name of a built-in policy (choose another name)"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named_with_its_line(body: str, line: int | None, message: str, write: Write) -> None:
    path = write(body)
    known = names()
    said = refusal(f"{path}:mine+easy")
    assert message in said
    assert path in said
    if line is not None:
        assert said.startswith(f"{path}, line {line}: ")
    assert names() == known
    assert starts("fcfs+easy") == [0.0, 10.0, 19.0, 21.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("return queue.wait_s * float('nan')", "returned NaN, or not one score per waiting job, at 0 s"),
        ("return queue.wait_s[1:].copy()", "returned NaN, or not one score per waiting job, at 0 s"),
        ("return [float('nan') for _ in queue.wait_s]", "returned NaN, or not one score per waiting job, at 0 s"),
        ("return [1.0] * (1 + len([w for w in queue.wait_s]))", "returned NaN, or not one score"),
        ("return 3.0", "returned NaN, or not one score per waiting job, at 0 s"),
        ("return queue.nothing", "my_rules.py, line 5: AttributeError: 'Queue' object has no attribute 'nothing'"),
        ("return {}['a']", "my_rules.py, line 5: KeyError: 'a'"),
        ("raise ValueError('no idea')", "ValueError: no idea"),
        ("return queue.wait_s + queue.wait_s[123456789]", "IndexError: index"),
        ("return 'first'", "returned NaN, or not one score"),
        ("return None", "returned NaN, or not one score"),
        ("return queue.wait_s + 1j", "returned NaN, or not one score"),
        ("return [complex(w) for w in queue.wait_s]", "returned NaN, or not one score"),
        ("return [1.0, [2.0]]", "returned NaN, or not one score"),
    ],
)
@pytest.mark.parametrize("fixed", [False, True])
def test_a_rule_that_goes_wrong_is_one_line(line: str, message: str, fixed: bool, write: Write) -> None:
    """Compiled or not, asked once or at every event: never a traceback, never a crash."""
    text = f"import greenbatch as gb\n\n@gb.rule('mine', fixed={fixed})\ndef mine(queue):\n    {line}\n"
    said = refusal(f"{write(text)}:mine+none")
    assert message in said


def test_rules_may_return_whole_numbers_truth_values_lists_and_views(write: Write) -> None:
    lines = [
        "return queue.processors.astype(np.int64)", "return queue.processors > 1.0", "return queue.processors[:]",
        "return [float(p) for p in queue.processors]",
    ]  # fmt: skip
    for line in lines:
        text = f"import numpy as np\nimport greenbatch as gb\n\n@gb.rule('mine')\ndef mine(queue):\n    {line}\n"
        assert starts(f"{write(text)}:mine+none") == [0.0, 15.0, 24.0, 10.0], line


@pytest.mark.parametrize("fixed", [False, True])
def test_a_rule_that_writes_to_its_columns_changes_no_job(fixed: bool, write: Write) -> None:
    path = write(
        f"import greenbatch as gb\n\n@gb.rule('mine', fixed={fixed})\ndef mine(queue):\n"
        "    score = queue.submit_s.copy()\n    for column in (queue.submit_s, queue.wait_s, queue.requested_time_s,\n"
        "                   queue.processors, queue.power_w, queue.user):\n        column[:] = 1.0\n    return score\n"
    )
    before = JOBS.frame()
    assert starts(f"{path}:mine+easy") == starts("fcfs+easy") == [0.0, 10.0, 19.0, 21.0]
    assert JOBS.frame().equals(before, null_equal=True)


def test_a_rule_registered_in_the_program_itself() -> None:
    @gb.rule("last-come-first-served")
    def last(queue: gb.Queue) -> np.ndarray:
        """The latest first."""
        return -queue.submit_s

    assert starts("last-come-first-served") == [0.0, 17.0, 15.0, 10.0]
    with pytest.raises(InputError, match="f2: is the name of a built-in policy"):
        gb.rule("f2")(last)


@pytest.mark.parametrize("name", ["", " ", "a+b", "a,b", "a:b", "a@b", "a=b", "a b", "a\n", 3, None, len])
@pytest.mark.parametrize("kind", ["rule", "policy"])
def test_names_with_syntax_characters_are_refused(kind: str, name: Any) -> None:
    with pytest.raises(InputError, match=rf"^{kind}: is .* \(give a (name without|text that is not empty)") as caught:
        getattr(gb, kind)(name)
    assert "\n" not in str(caught.value)


# --- user-defined policies ---------------------------------------------------------------------------------------

POLICY = """
import greenbatch as gb

@gb.policy("patient")
class Patient:
    '''Start nothing before 7 s.'''
    def decide(self, view):
        {}
"""


def test_a_policy_from_a_file(write: Write) -> None:
    text = POLICY.format("return gb.Start(0) if view.now_s >= 3 else gb.Wait()")
    path = write(text)
    assert starts(f"{path}:patient+none") == [3.0, 13.0, 22.0, 24.0]
    assert starts(f"{path}:patient+easy") == [3.0, 13.0, 22.0, 24.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pass", "patient+none: returned None (return Start(row), Wait(), Suspend() or Charge(power_w))"),
        ("return gb.Start(9)", "patient+none: chose row 9 of a queue of 1"),
        ("return gb.Start.after_seconds(0, float('inf'))", "patient+none: chose a delay of inf"),
        (
            "return gb.Wait()",
            "patient+none left 4 jobs waiting forever (when nothing runs and no job will arrive, a policy must start ",
        ),
        ("return view.future", "my_rules.py, line 8: AttributeError: 'View' object has no attribute 'future'"),
    ],
)
def test_a_policy_that_goes_wrong_is_one_line(line: str, message: str, write: Write) -> None:
    assert message in refusal(f"{write(POLICY.format(line))}:patient+none")


def test_a_policy_that_cannot_be_made_is_one_line(write: Write) -> None:
    text = POLICY.replace("    def decide", "    INIT\n    def decide").format("return gb.Wait()")
    said = refusal(f"{write(text.replace('INIT', 'def __init__(self, x): ...'))}:patient+none")
    assert "policy 'patient': cannot be created without arguments, missing a required argument: 'x'" in said
    assert "registry.py" not in said
    said = refusal(f"{write(text.replace('INIT', 'def __init__(self): 1 / 0'))}:patient+none")
    assert said.endswith("my_rules.py, line 7: ZeroDivisionError: division by zero (fix the file)")


def test_a_policy_that_decides_nothing_is_one_line(write: Write) -> None:
    path = write("import greenbatch as gb\n\n@gb.policy('five')\ndef five():\n    return 5\n")
    assert "'int' object has no attribute 'decide'" in refusal(f"{path}:five")


def test_a_policy_class_without_its_method_is_named(write: Write) -> None:
    path = write("import greenbatch as gb\n\n@gb.policy('mute')\nclass Mute:\n    pass\n")
    assert "my_rules.py, line 3: InputError: policy 'mute' has no method decide(self, view)" in refusal(f"{path}:mute")


def test_conservative_backfilling_takes_no_policy_object(write: Write) -> None:
    path = write(POLICY.format("return gb.Start(0)"))
    line = "decides by itself, and conservative backfilling plans for all jobs (use easy, or a priority rule)"
    assert line in refusal(f"{path}:patient+conservative")


# --- an installed plug-in ----------------------------------------------------------------------------------------


def with_plug_in(folder: Path, module: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that sees a distribution with an entry point for rules."""
    folder.joinpath("tides.py").write_text(module)
    info = folder / "tides-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tides\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[greenbatch.rules]\ntides = tides\n")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_rule_of_an_installed_package_is_known_by_name(tmp_path: Path) -> None:
    module = SHORTEST.replace("shortest", "ebb-first").replace("def ebb-first", "def ebb_first")
    code = "from greenbatch.schedulers import *; print('ebb-first' in names(), scheduler('ebb-first+easy').name)"
    done = with_plug_in(tmp_path, module, code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["True", "ebb-first+easy"]


def test_an_installed_package_that_is_broken_is_one_line(tmp_path: Path) -> None:
    code = (
        "import sys; from greenbatch.cli import main; "
        f"sys.exit(main(['simulate', '--scheduler', 'fcfs+easy', '--out', {str(tmp_path / 'out')!r}]))"
    )
    done = with_plug_in(tmp_path, "import no_such_module_at_all", code)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "greenbatch: plug-in tides = tides: cannot be loaded, ModuleNotFoundError: No module named "
        "'no_such_module_at_all' (fix or uninstall tides)"
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["foresee:price", "f2+green:sigma"])
def test_a_parameter_without_a_value_is_named(name: str) -> None:
    with pytest.raises(InputError, match=rf"{name.rpartition(':')[2]} needs a value"):
        scheduler(name)
