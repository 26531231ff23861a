"""Freeze every output: digests of schedules, books, metrics, tables and texts, to prove that a new shape changes none.

``python tests/freeze.py`` runs the scenarios and commands of ``freeze.toml`` and names the first difference from what
``freeze.csv`` says, then how many there are in each place; ``--store`` writes that file. Words choose what runs: names
that have one of them in it, or are one of them after an equals sign. All runs as plain Python, without compilation:
`tests/engine/test_kinds.py` proves that compiled code does the same. A refusal is an output as well. Shipped scenarios
require the data, see CONTRIBUTING.md.

A row of ``freeze.csv`` is one run, or one file that a command writes: name, part, and ``column=digest`` for each
column, metric or group of lines. Numbers count with 12 significant digits, so that another libm makes no difference.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import html
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

os.environ.update(NUMBA_DISABLE_JIT="1", COLUMNS="100", TERM="dumb", NO_COLOR="1", TZ="UTC")
sys.path.insert(0, str(Path(__file__).resolve().parent / "cli"))

from small import SMALL

from greenbatch.cli import main as command
from greenbatch.engine.accounts import books
from greenbatch.errors import GreenbatchError
from greenbatch.experiments.notebook import Outcome
from greenbatch.experiments.notebook import simulate as simulate_window
from greenbatch.metrics import evaluate, evaluate_parts, measure, parts_of
from greenbatch.scenarios import load_scenario
from greenbatch.scenarios.scenario import shipped_names

TESTS = Path(__file__).resolve().parent
PLAN, STORED = TESTS / "freeze.toml", TESTS / "freeze.csv"
LINES = 20
"""Lines of a text that share a digest."""
UNLIKE = ("provenance.json", "log.jsonl", "run.json", "model.json", "checkpoint", "state.json")
"""Files and folders that tell times, versions or the machine."""

Row = dict[str, str]
"""Column -> digest."""
Rows = dict[tuple[str, str], Row]
"""(scenario or command, scheduler or file) -> what came out."""


# ---------------------------------------------------------------- digests


def digest(values: Iterable[Any]) -> str:
    """Eight hex digits of a column."""
    sha = hashlib.sha256()
    for value in values:
        sha.update(_shown(value).encode("utf-8", "surrogateescape") + b"\n")
    return sha.hexdigest()[:8]


def _shown(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{float(value) + 0.0:.12g}"
    if isinstance(value, Mapping):
        return repr([(str(key), _shown(each)) for key, each in value.items()])
    if isinstance(value, list | tuple | np.ndarray):
        return repr([_shown(each) for each in value])
    return str(value)


TOOK = re.compile(
    r"\b\d[\d.,]* (?:decisions|jobs|steps|runs)(?:/s| per (?:s|second|minute))|\bin \d[\d.,]* (?:s|min|ms)\b"
    r"|\b\d:\d\d:\d\d\b"
)
CHECKSUM = re.compile(r"\b[0-9a-f]{64}\b")
"""Among them is that of the source."""
VERSION = re.compile(r'\b\d+\.\d+\.\d+\b|"(?:python|platform|machine)": "[^"]*"')
"""Of libraries and of the machine, which a report tells."""
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{10,}(?:e-?\d+)?")


def lines_of(text: str, folder: Path) -> list[str]:
    """A text without paths of this run, versions, times that it took, checksums and progress."""
    text = text.replace(str(folder.resolve()), "FOLDER").replace(str(folder), "FOLDER")
    for pattern, word in ((VERSION, "VERSION"), (TOOK, "TIME"), (CHECKSUM, "SHA-256")):
        text = pattern.sub(word, text)
    text = NUMBER.sub(lambda number: f"{float(number[0]):.12g}", text)
    return [line.rstrip() for line in re.split(r"[\r\n]+", text) if "elapsed" not in line]


def text_row(text: str, folder: Path) -> Row:
    """Digests of groups of lines."""
    lines = lines_of(text, folder)
    return {
        f"lines {k + 1}-{min(k + LINES, len(lines))}": digest(lines[k : k + LINES]) for k in range(0, len(lines), LINES)
    }


def page_text(page: str) -> str:
    """What a reader of a page sees, a line for each element."""
    page = re.sub(r"<(svg|script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return "\n".join(
        line for line in map(str.strip, html.unescape(re.sub(r"<[^>]*>", "\n", page)).splitlines()) if line
    )


def file_row(path: Path, folder: Path) -> Row:
    """Digests of a file that a command wrote; none of what only a program reads."""
    match path.suffix:
        case ".parquet":
            frame = pl.read_parquet(path)
            return {name: digest(frame[name].to_list()) for name in frame.columns}
        case ".csv" | ".json" | ".md" | ".tex" | ".txt" | ".toml":
            return text_row(path.read_text(encoding="utf-8"), folder)
        case ".html":
            return text_row(page_text(path.read_text(encoding="utf-8")), folder)
    return {}


# ---------------------------------------------------------------- runs


def run_row(scenario: Any, name: str, jobs: int) -> Row:
    """Digests of the schedule, the books, the metrics and the parts of a run; of its refusal if it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = simulate_window(scenario, name, start=0, jobs=min(jobs, len(scenario.workload)))
            return outcome_row(outcome)
    except GreenbatchError as error:
        return {"refusal": digest([error])}
    except Exception as error:  # noqa: BLE001  (a defect is an output that must not come or go unseen)
        return {"defect": digest([type(error).__name__])}


def outcome_row(outcome: Outcome) -> Row:
    """Digests of a run."""
    row = {name: digest(column.to_list()) for name, column in outcome.frame().to_dict().items()}
    row |= {f"nodes.{name}": digest(column.to_list()) for name, column in outcome.nodes().to_dict().items()}
    for name in ("promised_start_s", "profile_time_s", "profile_load_w", "profile_command_w", "dvfs_level"):
        if (values := getattr(outcome, name)) is not None:
            row[name] = digest(values.tolist())
    if outcome.placements is not None:
        row["placements"] = digest(
            zip(
                *(
                    np.asarray(getattr(outcome.placements, each)).tolist()
                    for each in ("job", "node", "processors", "gpus")
                ),
                strict=True,
            )
        )
    row["decisions"] = digest([outcome.decisions, outcome.killed])
    if outcome.site is not None:
        row |= {f"books.{name}": digest([value]) for name, value in books(outcome)._asdict().items()}
    row |= {name: digest([value]) for name, value in evaluate(outcome).items()}
    parts = evaluate_parts(measure(outcome), parts_of(outcome.workload))
    return row | {name: digest([value]) for name, value in parts.items()}


def prepare(folder: Path) -> None:
    """What scenarios and commands find in their folder."""
    (folder / "small.toml").write_text(SMALL)
    shutil.copytree(TESTS.parent / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))


def variants(plan: Mapping[str, Any], words: Sequence[str]) -> Iterator[tuple[tuple[str, str], Row]]:
    """Scenarios made by hand."""
    for each in plan["variant"]:
        if chosen(each["name"], words):
            given = {"overrides": each.get("set"), "cluster": each.get("cluster")}
            try:
                scenario = load_scenario(each.get("base", "small.toml"), **given)
            except GreenbatchError as error:
                yield (each["name"], ""), {"refusal": digest([error])}
                continue
            more = plan["variants"]["all"] if each.get("all") else []
            usual = plan["variants"] | each
            for name in [*usual["schedulers"], *more]:
                yield (each["name"], name), run_row(scenario, name, usual["jobs"])


def shipped(plan: Mapping[str, Any], words: Sequence[str]) -> Iterator[tuple[tuple[str, str], Row]]:
    """Shipped scenarios."""
    for place in shipped_names():
        if place != "plain" and chosen(place, words):
            scenario = load_scenario(place)
            for name in dict.fromkeys([*plan["shipped"]["schedulers"], scenario.evaluation.baseline]):
                if name:
                    yield (place, name), run_row(scenario, name, plan["shipped"]["jobs"])


def verbs(plan: Mapping[str, Any], words: Sequence[str], folder: Path) -> Iterator[tuple[tuple[str, str], Row]]:
    """Commands, with what they print and write. Those that follow use what was written."""
    picked = [each for each in plan["verb"] if chosen(each["name"], words)]
    needed = {name for each in picked for name in each.get("needs", ())}
    for each in plan["verb"]:
        if each not in picked and each["name"] not in needed:
            continue
        before = {path for path in folder.rglob("*") if path.is_file()}
        out, err = io.StringIO(), io.StringIO()
        with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
            warnings.simplefilter("ignore")
            code = command(shlex.split(each["words"]))
        if each not in picked:
            continue
        name = f"greenbatch {each['name']}"
        yield (name, "exit code"), {"code": str(code)}
        yield (name, "output"), text_row(out.getvalue(), folder)
        yield (name, "errors"), text_row(err.getvalue(), folder)
        for path in sorted({path for path in folder.rglob("*") if path.is_file()} - before):
            place = path.relative_to(folder)
            if not any(part in UNLIKE or part.startswith(".") for part in place.parts) and (
                row := file_row(path, folder)
            ):
                yield (name, place.as_posix()), row


def chosen(name: str, words: Sequence[str]) -> bool:
    """Whether a name has one of some words; all without words."""
    return not words or any(word[1:] == name if word.startswith("=") else word in name for word in words)


def outputs(
    words: Sequence[str] = (), kinds: Sequence[str] = ("variants", "verbs", "shipped")
) -> Iterator[tuple[tuple[str, str], Row]]:
    """All that is frozen, one row after the other."""
    plan = tomllib.loads(PLAN.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="greenbatch-freeze-") as name, chdir(name):
        prepare(Path(name))
        if "variants" in kinds:
            yield from variants(plan, words)
        if "verbs" in kinds:
            yield from verbs(plan, words, Path(name))
        if "shipped" in kinds:
            yield from shipped(plan, words)


# ---------------------------------------------------------------- what is stored


def read(path: Path = STORED) -> Rows:
    """What is stored; nothing if nothing is."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {(name, part): dict(cell.rsplit("=", 1) for cell in cells) for name, part, *cells in csv.reader(file)}


def write(rows: Rows, path: Path = STORED) -> None:
    """Store rows, in order."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [name, part, *(f"{column}={value}" for column, value in row.items())] for (name, part), row in rows.items()
        )


def differences(stored: Rows, found: Rows) -> Iterator[tuple[str, str, str]]:
    """(scenario, scheduler, column) of all that differs, in order; rows that were not computed are no difference."""
    for (name, part), row in found.items():
        before = stored.get((name, part))
        if before is None:
            yield name, part, "(new)"
            continue
        for column in dict.fromkeys([*before, *row]):
            if before.get(column) != row.get(column):
                yield name, part, column + ("" if column in before else " (new)") + ("" if column in row else " (gone)")


def gone(stored: Rows, found: Rows) -> Iterator[tuple[str, str, str]]:
    """Rows that are stored and did not come."""
    for name, part in stored:
        if (name, part) not in found:
            yield name, part, "(gone)"


def main(arguments: Sequence[str]) -> int:
    """Store or compare; 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name} instead of comparing with it")
    given = parser.parse_args(arguments)
    stored, found, wrong = read(), Rows(), []
    for key, row in outputs(given.words):
        found[key] = row
        if not given.store:
            others = list(differences(stored, {key: row}))
            if others and not wrong:
                print(f"the first difference: {' | '.join(others[0])}", flush=True)
            wrong += others
    if given.store:
        write((stored if given.words else {}) | found)
    elif not given.words:
        wrong += gone(stored, found)
    for place, count in Counter(name for name, *_ in wrong).items():
        shown = [f"{part}: {column}" for name, part, column in wrong if name == place]
        print(f"{count:6} in {place}: {'; '.join(shown[:3])}{' ...' if len(shown) > 3 else ''}")
    for (name, part), row in found.items():
        if "defect" in row:
            print(f"defect: {name} | {part}")
    what = f"{sum(map(len, found.values()))} digests stored" if given.store else f"{len(wrong)} differences"
    print(f"{what}: {len(found)} rows in {sum(os.times()[:4]):.0f} s of CPU time")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
