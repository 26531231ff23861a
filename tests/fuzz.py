"""Fuzz readers and verbs: mutate valid files and command lines; read and resolve, simulate, resume or export them.

Anything that is raised but a ``GreenbatchError`` of one line is a finding: other exceptions, warnings, and cases that
take more than 20 s of CPU time. Every case follows from the seed and its number, so that a finding can be repeated::

    python tests/fuzz.py --seconds 30
    python tests/fuzz.py --minutes 10 --seed 7
    python tests/fuzz.py --seed 7 --case 1234        # one case, with its traceback
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path

import coverage
from numba.core import event

from fuzz_seeds import (
    ALEA,
    BATSIM,
    BESIDE,
    FDATA,
    FDATA_TEXTS,
    IRMASIM,
    LOGS,
    MODELS,
    PLATFORM,
    PM100,
    PM100_TEXTS,
    PRESET,
    PRICES,
    RUNS,
    SACCT,
    SACCT_GPUS,
    SACCT_LONG,
    SCENARIO,
    SCENARIO_GRID,
    SCENARIO_MODEL,
    SCENARIO_NODES,
    SCENARIO_SYNTHETIC,
    SERIES,
    SLURM_CONF,
    STATES,
    SWF,
    TABLE,
    TOKENS,
    TRAINED,
    WEATHER,
    WORDS,
)  # fmt: skip
from greenbatch.errors import GreenbatchError
from greenbatch.machine_code.compile import PLAIN

SLOW_S = 20.0
"""CPU time that a case may take. [s]"""
MEASURED = (
    "greenbatch.workload", "greenbatch.energy", "greenbatch.cluster", "greenbatch.json_input",
    "greenbatch.scenarios", "greenbatch.models.records",
    "greenbatch.models.model", "greenbatch.learning.runs.folder", "greenbatch.learning.runs.checkpoint",
    "greenbatch.learning.runs.counters", "greenbatch.learning.runs.log",
)  # fmt: skip


def flip(r: random.Random, data: bytes) -> bytes:
    if not data:
        return b"\x00"
    at = r.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << r.randrange(8))]) + data[at + 1 :]


def insert(r: random.Random, data: bytes) -> bytes:
    at = r.randrange(len(data) + 1)
    return data[:at] + r.choice(TOKENS) + data[at:]


def cut(r: random.Random, data: bytes) -> bytes:
    at = r.randrange(len(data) + 1)
    return data[:at] + data[at + r.choice([1, 2, 10, 100]) :]


def truncate(r: random.Random, data: bytes) -> bytes:
    return data[: r.randrange(len(data) + 1)]


def lines(change: Callable[[random.Random, list[bytes]], None]) -> Callable[[random.Random, bytes], bytes]:
    def mutate(r: random.Random, data: bytes) -> bytes:
        rows = data.split(b"\n")
        change(r, rows)
        return b"\n".join(rows)

    mutate.__name__ = change.__name__
    return mutate


@lines
def drop_line(r: random.Random, rows: list[bytes]) -> None:
    rows.pop(r.randrange(len(rows)))


@lines
def repeat_line(r: random.Random, rows: list[bytes]) -> None:
    rows.insert(r.randrange(len(rows) + 1), r.choice(rows))


@lines
def swap_lines(r: random.Random, rows: list[bytes]) -> None:
    a, b = r.randrange(len(rows)), r.randrange(len(rows))
    rows[a], rows[b] = rows[b], rows[a]


@lines
def swap_fields(r: random.Random, rows: list[bytes]) -> None:
    at = r.randrange(len(rows))
    parts = re.split(rb"([ |,=\t]+)", rows[at])
    a, b = r.randrange(0, len(parts), 2), r.randrange(0, len(parts), 2)
    parts[a], parts[b] = parts[b], parts[a]
    rows[at] = b"".join(parts)


def replace_token(r: random.Random, data: bytes) -> bytes:
    places = list(re.finditer(rb"[^\s|,=\[\]]+", data))
    if not places:
        return data
    at = r.choice(places)
    return data[: at.start()] + r.choice(TOKENS) + data[at.end() :]


def change_number(r: random.Random, data: bytes) -> bytes:
    places = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not places:
        return data
    at = r.choice(places)
    new = r.choice([str(r.randrange(-5, 70)), str(10 ** r.randrange(1, 22)), f"{r.uniform(-10, 1e6):.3g}"])
    return data[: at.start()] + new.encode() + data[at.end() :]


MUTATIONS = (
    flip, insert, cut, truncate, drop_line, repeat_line, swap_lines, swap_fields, replace_token, replace_token,
    change_number, change_number,
)  # fmt: skip


def wrap(r: random.Random, data: bytes) -> bytes:
    """Sometimes gzip, and then sometimes broken."""
    if r.random() < 0.9:
        return data
    packed = gzip.compress(data, mtime=0)
    return flip(r, packed) if r.random() < 0.5 else packed


@dataclass(frozen=True)
class Kind:
    seeds: tuple[bytes, ...]
    file: str
    run: Callable[[random.Random, Path], None]


def run_workload(r: random.Random, path: Path) -> None:
    from greenbatch.workload import SWF_RULES, measured_power, outages, read_workload

    options: dict[str, object] = {"strict": r.random() < 0.1}
    if r.random() < 0.2:
        options["processors"] = r.choice([1, 8, 10**6])
    if path.name.endswith("swf") and r.random() < 0.4:
        options |= {"limit": r.choice([1, 3, 10**9]), "repairs": SWF_RULES[r.choice(["default", "papers"])]}
    if path.name.startswith("sacct"):
        options["time_zone"] = r.choice(["UTC", "Europe/Berlin", "America/New_York"])
    workload = read_workload(path, **options)
    repr(workload.frame())
    outages(workload)
    if r.random() < 0.2:
        workload = measured_power(workload)
    _simulate(r, workload, None)


def run_series(r: random.Random, path: Path) -> None:
    from greenbatch import energy

    column, unit = r.choice([("ghi", "W/m2"), ("wind", "m/s"), ("wind", "kW")])
    kind = r.choice(["utc", "local", "offset", "unix", "elapsed", "ignore"])
    series = energy.read_series(
        path, columns=[column], unit=unit, time_kind=kind, time_column="time",
        time_zone="Europe/Berlin" if kind == "local" else None, step_s=r.choice([None, 3600.0, 900.0]),
        gaps=r.choice(["refuse", "interpolate", "hold"]), unsorted=r.choice(["refuse", "sort"]),
        duplicates=r.choice(["refuse", "first", "last"]), negative=r.choice(["refuse", "zero"]), missing=[-9999],
    )  # fmt: skip
    if column == "ghi":
        energy.combine("here", {"solar": energy.pv(series, area_m2=100.0)})


def run_prices(r: random.Random, path: Path) -> None:
    """An export of prices, read as one or as something else."""
    from greenbatch import energy

    declared = {**energy.EXPORTS[r.choice(["entso-e", "entso-e", "electricity-maps"])], "gaps": "hold"}
    declared |= {"columns": ["carbon"], "unit": "lb/MWh"} if r.random() < 0.3 else {}
    declared |= {"time_column": "MTU (CET/CEST)", "clock_changes": r.choice(["refuse", "fill"])}
    declared |= {"time_zone": r.choice(["UTC", "America/Chicago"])} if r.random() < 0.2 else {}
    energy.read_series(path, **declared, duplicates=r.choice(["refuse", "first", "last"]))


def run_weather(r: random.Random, path: Path) -> None:
    from greenbatch import energy

    weather = energy.read_weather(
        path, time_zone=r.choice([None, "-08:00"]), gaps=r.choice(["refuse", "interpolate", "hold"]),
        negative=r.choice(["refuse", "zero"]), longest_step_s=r.choice([None, 7200.0]),
    )  # fmt: skip
    if "wind_m_s" in weather.series:
        energy.combine("here", {"wind": energy.weather_turbine(weather, rated_w=1000.0)})


def run_scenario(r: random.Random, path: Path) -> None:
    from greenbatch.scenarios import load_scenario, read_scenario

    section, _, _ = read_scenario(path)
    made = section.model_dump(include={"workload": {"generator"}, "site": {"kind", "days", "step_s"}})
    site = made["site"]
    steps = site["days"] * 86_400 / max(site["step_s"], 1e-9) if site["kind"] == "synthetic" else 0
    if ((made["workload"]["generator"] or {}).get("jobs") or 0) > 100_000 or steps > 1e6:
        return  # a large order is no mistake, but nothing to wait for
    scenario = load_scenario(path, strict=r.random() < 0.05)
    window = scenario.window(r.choice([0, 0, 1]), r.choice([None, 1, 2]))
    span_s = window.submit_s.max() - window.submit_s.min() + window.run_time_s.sum()
    if scenario.site is None or span_s < 1e6 * scenario.site.step_s:
        _simulate(r, window, scenario)


def run_cluster(r: random.Random, path: Path) -> None:
    """Read a description of nodes, alone and as the machine of a scenario."""
    from greenbatch.cluster.readers import read_cluster
    from greenbatch.scenarios import load_scenario

    cluster = read_cluster(path)
    for note in cluster.notes:
        assert str(note).isprintable(), note
    group = cluster.groups[-1].name
    changes = [None, {"cluster.groups": [{"name": group, "type": "dell-r620"}]}, {"cluster.contention": "repaired"}]
    repr(load_scenario("tiny.toml", cluster=path, overrides=r.choice(changes)))


def run_model(r: random.Random, path: Path) -> None:
    """Load, warn about, compare, retrain and export a model with this record, beside the weights that it names."""
    from greenbatch.experiments.running.compare import compare
    from greenbatch.experiments.running.model_warnings import model_warnings
    from greenbatch.experiments.running.retrained import plan_of
    from greenbatch.models.model import load_model
    from greenbatch.models.network import graph_of
    from greenbatch.scenarios import load_scenario
    from greenbatch.schedulers import scheduler_table

    planner = b'"gas-marl-plus"' in path.read_bytes()
    weights = TRAINED / ("planner" if planner else "network") / "model" / "actor.safetensors"
    shutil.copy(weights, path.with_name("actor.safetensors"))
    model = load_model(path.parent)
    question, name = load_scenario("tiny.toml"), f"{model.preset.name}@{path.parent}+{model.backfill}"
    repr(model)
    model.check_fits(question)
    for line in model_warnings(scheduler_table([name]), question, [0, 150], 20):
        assert str(line).isprintable(), line
    compare(question, ["fcfs+easy", name], [r.choice([0, 150])], 20, "fcfs+easy")
    if not planner:
        graph_of(model)
    plan_of(model, question)


def run_training(r: random.Random, path: Path) -> None:
    """Resume a training with this ``run.json`` or ``state.json``."""
    from greenbatch.learning.runs.folder import check_same, other_versions
    from greenbatch.learning.trainers import train_or_search
    from greenbatch.scenarios import load_scenario
    from model_records import interrupted_plan

    content = path.read_bytes()
    ranking = b"rlscheduler-plus" in content or b'"validated_epoch": -1' in content
    name = "ranking-half" if ranking else "network-half"
    folder = path.parent / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(TRAINED / name, folder)
    plan = interrupted_plan(name, load_scenario("tiny.toml"))
    (folder / "checkpoint" / path.name if path.name == "state.json" else folder / path.name).write_bytes(content)
    other_versions(folder)
    check_same(folder, plan)
    if ranking or r.random() < 0.3:  # a network takes ten times as long
        train_or_search(plan, folder, watch=lambda _: None)


def run_log(r: random.Random, path: Path) -> None:
    from greenbatch.experiments.reports.curves import curve_plots, delay_plot, log_of

    log = log_of(path.parent)
    if r.random() < 0.1:
        curve_plots({"a": [log]})
        delay_plot([log], [{"kind": "none"}], "a")
        delay_plot([log], [{"kind": "none"}, {"kind": "seconds", "amount": 600.0}], "a")


def run_preset(_: random.Random, path: Path) -> None:
    """Read a preset, and plan a training with it down to the network."""
    from greenbatch.learning.networks import build
    from greenbatch.learning.runs.plan import make_plan
    from greenbatch.presets.preset import resolve
    from greenbatch.presets.shapes import shapes_of
    from greenbatch.scenarios import load_scenario

    question = load_scenario("tiny.toml")
    plan = make_plan(path, question)
    build(plan.preset.network, shapes_of(resolve(plan.preset, question)), 0)


def run_words(_: random.Random, path: Path) -> None:
    """A command line, in a folder with files that it may name. Large orders are no mistake, but nothing to wait for."""
    from greenbatch.cli import main

    words = path.read_bytes().decode(errors="surrogateescape").split("\n")
    large = any(len(number) > 3 for word in words for number in re.findall(r"\d+", word) if "e" not in word)
    elsewhere = any(word.startswith(("/", "~")) or ".." in word or "ray" in word for word in words)
    endless = not words[0] or any(word.startswith(("get", "down", "--install")) for word in words)
    endless |= words[0] == "demo" and "--help" not in words
    if large or elsewhere or endless or "\0" in "".join(words):
        return
    for left in ("out", "out.cells", "a.onnx"):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(TRAINED / "network" / "model", "net", dirs_exist_ok=True)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    assert code in (0, 2), (code, err.getvalue())
    raw = [c for c in out.getvalue() + err.getvalue() if unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\t"]
    assert not raw, raw
    if code:
        assert err.getvalue().splitlines()[-1].startswith("greenbatch: "), err.getvalue()
        raise GreenbatchError(err.getvalue().splitlines()[-1].encode(errors="replace").decode())


def _simulate(r: random.Random, workload: object, scenario: object) -> None:
    """A few jobs under some scheduler; the machine is as large as needed where there is no scenario."""
    from greenbatch import schedulers
    from greenbatch.cluster import Cluster
    from greenbatch.engine.rules import Rules
    from greenbatch.engine.simulate import simulate
    from greenbatch.metrics import evaluate, evaluate_parts, json_ready, measure, parts_of

    if len(workload) > 100:
        return
    names = ["fcfs+easy", "sjf+none", "f1+easy-schedgym"]  # one entry point, so that little is compiled
    if scenario is None:
        cluster, site, rules = Cluster.pooled(int(workload.processors.max())), None, Rules()
    else:
        cluster, site, rules = scenario.cluster, scenario.site, scenario.rules
    if site is not None:
        names += ["f2+green"]
    if type(cluster) is Cluster and (site is None or site.held_limit_w == float("inf")):
        names += ["wfp3+conservative", "as-recorded", "slurm-multifactor:age=10:fairshare=100+easy"]
        names += ["lptpn+none", "cheapest-start+none"] * (site is not None)
    name = r.choice(names)
    outcome = simulate(workload, cluster, site, rules, schedulers.scheduler(name))
    json_ready({**evaluate(outcome), **evaluate_parts(measure(outcome), parts_of(workload))})


KINDS: dict[str, Kind] = {
    "swf": Kind((SWF, ALEA), "trace.swf", run_workload),
    "sacct": Kind((SACCT, SACCT_LONG, SACCT_GPUS), "sacct.txt", run_workload),
    "scenario": Kind(
        (SCENARIO, SCENARIO_SYNTHETIC, SCENARIO_MODEL, SCENARIO_NODES, SCENARIO_GRID), "scenario.toml", run_scenario
    ),
    "platform": Kind((PLATFORM,), "platform.json", run_cluster),
    "slurm": Kind((SLURM_CONF,), "slurm.conf", run_cluster),
    "jobs": Kind((IRMASIM, BATSIM), "jobs.json", run_workload),
    "table": Kind((TABLE,), "jobs.csv", run_workload),
    "pm100": Kind((PM100, PM100_TEXTS), "job_table.parquet", run_workload),
    "fdata": Kind((FDATA, FDATA_TEXTS), "23_06.parquet", run_workload),
    "series": Kind((SERIES,), "series.csv", run_series),
    "prices": Kind((PRICES,), "prices.csv", run_prices),
    "weather": Kind(WEATHER, "weather.txt", run_weather),
    "model": Kind(tuple(MODELS.values()), "model/model.json", run_model),
    "run": Kind(tuple(RUNS.values()), "record/run.json", run_training),
    "state": Kind(tuple(STATES.values()), "record/state.json", run_training),
    "log": Kind(LOGS, "log/log.jsonl", run_log),
    "preset": Kind((PRESET,), "preset.toml", run_preset),
    "words": Kind(WORDS, "words.txt", run_words),
}


UNPACKED = {"scenario", "model", "run", "state", "log", "preset", "words"}
"""Kinds that are never read from an archive."""


@dataclass
class Tally:
    cases: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    findings: list[Path] = field(default_factory=list)


class TooSlow(BaseException):
    """Not an Exception, so that no handler of the library swallows it."""


class Compiling(event.Listener):
    """Stops the clock while Numba compiles, which is not what a case takes."""

    def __init__(self) -> None:
        self.depth, self.left_s = 0, 0.0

    def on_start(self, _: object) -> None:
        if self.depth == 0:
            self.left_s = signal.setitimer(signal.ITIMER_PROF, 0)[0]
        self.depth += 1

    def on_end(self, _: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            signal.setitimer(signal.ITIMER_PROF, self.left_s)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooSlow after some seconds of CPU time, compilation left out: a busy machine makes no difference."""

    def stop(*_: object) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with event.install_listener("numba:compile", Compiling()):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def make_case(seed: int, number: int) -> tuple[str, bytes, random.Random]:
    """Kind, content and random source of one case."""
    r = random.Random(f"{seed}:{number}")  # noqa: S311  # reproducible cases, no secrets
    kind = r.choice(list(KINDS))
    data = r.choice(KINDS[kind].seeds)
    for _ in range(r.choice([1, 1, 1, 2, 2, 3, 5, 10])):
        data = r.choice(MUTATIONS)(r, data)
    return kind, data if kind in UNPACKED else wrap(r, data), r


def write_files(kind: str, data: bytes, folder: Path) -> Path:
    """Write the file of a case, and those beside it as they were before other cases; returns its path."""
    path = folder / KINDS[kind].file
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, content in {**BESIDE, str(path.relative_to(folder)): data}.items():
        (folder / name).write_bytes(content)
    return path


def run_case(kind: str, data: bytes, r: random.Random, folder: Path) -> str | None:
    """None if the file is accepted, else the message of the refusal; anything else is raised."""
    path = write_files(kind, data, folder)
    try:
        with warnings.catch_warnings(), limited(SLOW_S):
            warnings.simplefilter("error")
            KINDS[kind].run(r, path)
    except GreenbatchError as error:
        message = str(error)
        if not message or "\n" in message or "\r" in message or not message.isprintable():
            raise AssertionError(f"a message of other than one line: {message!r}") from error
        return message
    return None


def fuzz(seed: int, until: Callable[[int], bool], folder: Path, save: Path) -> Tally:
    """Run cases until told to stop; findings are saved with their traceback."""
    totals = Tally()
    number = 0
    while not until(number):
        kind, data, r = make_case(seed, number)
        totals.cases[kind] += 1
        try:
            refusal = run_case(kind, data, r, folder)
        except (Exception, TooSlow):  # noqa: BLE001  # whatever it is, it is a finding
            save.mkdir(parents=True, exist_ok=True)
            place = save / f"{kind}-{seed}-{number}"
            place.with_suffix(".input").write_bytes(data)
            place.with_suffix(".txt").write_text(traceback.format_exc(), encoding="utf-8", errors="replace")
            totals.findings.append(place.with_suffix(".txt"))
        else:
            (totals.accepted if refusal is None else totals.refused)[kind] += 1
        number += 1
    return totals


def warm_up(folder: Path) -> None:
    """Compile and load what the cases need, so that no time is counted for it."""
    for kind, how in KINDS.items():
        for seed in how.seeds:
            for number in range(1 if kind == "words" else 5):
                with suppress(Exception):  # what goes wrong here is found again when it is counted
                    how.run(random.Random(number), write_files(kind, seed, folder))  # noqa: S311  # as above


def show_coverage(measured: coverage.Coverage) -> None:
    """Line coverage of the rooms that read."""
    print(f"{'file':58} {'lines':>6} {'covered':>8}")
    lines_in_all = covered_in_all = 0
    for file in sorted(measured.get_data().measured_files()):
        try:
            _, statements, _, missing, _ = measured.analysis2(file)
        except coverage.exceptions.NoSource:  # moved while the fuzzer ran
            continue
        if statements:
            done = len(statements) - len(missing)
            lines_in_all, covered_in_all = lines_in_all + len(statements), covered_in_all + done
            name = Path(file).parts[-2:]
            print(f"{'/'.join(name):58} {len(statements):6} {done / len(statements):8.0%}")
    print(f"{'in all':58} {lines_in_all:6} {covered_in_all / max(lines_in_all, 1):8.0%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--cases", type=int, help="stop after so many cases, instead of after a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run only this case and show what happens")
    parser.add_argument("--save", type=Path, default=Path("fuzz-findings"), help="folder for findings")
    options = parser.parse_args()
    options.save = options.save.absolute()
    with tempfile.TemporaryDirectory(prefix="greenbatch-fuzz-") as name, chdir(name):
        folder = Path()
        if options.case is not None:
            kind, data, r = make_case(options.seed, options.case)
            print(f"{kind}:\n{data!r}")
            print(run_case(kind, data, r, folder) or "accepted")
            return 0
        measured = coverage.Coverage(source_pkgs=list(MEASURED), data_file=None, config_file=False)
        measured.start()
        if not PLAIN:
            warm_up(folder)
        end = time.monotonic() + (options.minutes * 60 if options.minutes else options.seconds)
        most = options.cases
        enough = (lambda _: time.monotonic() > end) if most is None else (lambda number: number >= most)
        totals = fuzz(options.seed, enough, folder, options.save)
        measured.stop()
    print(f"{'kind':10} {'cases':>7} {'accepted':>9} {'refused':>8}")
    for kind in KINDS:
        print(f"{kind:10} {totals.cases[kind]:7} {totals.accepted[kind]:9} {totals.refused[kind]:8}")
    print(f"{'in all':10} {totals.cases.total():7} {totals.accepted.total():9} {totals.refused.total():8}\n")
    show_coverage(measured)
    for file in totals.findings:
        print(f"FINDING {file}")
    print(f"{len(totals.findings)} findings in {totals.cases.total()} cases, seed {options.seed}")
    return 1 if totals.findings else 0


if __name__ == "__main__":
    sys.exit(main())
