"""Every printed fix works: a bad input, what its message says to do, and what comes out when that is done.

A row of `FIXES` is an input that is refused. ``follow`` does what the fix says and reads again; it must not fail, and
what it returns is compared with ``right``. Rooms add rows to the table, or a module beside this one with a table of its
own in `TABLES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from greenbatch.errors import InputError
from greenbatch.scenarios.scenario import load_scenario
from greenbatch.workload import read_workload

FIELD = Path(__file__).with_name("field")


@dataclass(frozen=True)
class Fix:
    """A bad input and the way out that its message names."""

    file: str
    """File of ``field``, or the name of the file that holds ``content``."""
    fix: str
    """Words of the fix that are followed."""
    follow: Callable[[Path, Path], Any]
    """Does what they say: the bad file and an empty folder -> what is read then."""
    right: Any
    """What that is."""
    content: str = ""
    """Text of the bad file, if it is not in ``field``."""
    read: Callable[..., Any] = read_workload
    """Refuses the bad file."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of ``read``."""


def run_times(path: Path, **options: Any) -> list[float]:
    return read_workload(path, **options).run_time_s.tolist()


def with_lines(change: Callable[[list[str]], list[str]], name: str = "mended.txt") -> Callable[[Path, Path], Any]:
    """Reads a file again after its lines were changed."""

    def follow(bad: Path, folder: Path) -> list[float]:
        mended = folder / name
        mended.write_text("\n".join(change(bad.read_text().splitlines())) + "\n")
        return run_times(mended)

    return follow


def in_a_scenario(key: str, value: Any) -> Callable[[Path, Path], Any]:
    """Loads a scenario of the file with a key set."""

    def follow(bad: Path, _: Path) -> list[float]:
        scenario = load_scenario("default", trace=bad, processors=256, strict=True, overrides={key: value})
        return scenario.workload.run_time_s.tolist()

    return follow


def without_field(name: str) -> Callable[[list[str]], list[str]]:
    """The dump as sacct prints it without a field of free text: line breaks and separators in its cells go too."""

    def change(lines: list[str]) -> list[str]:
        names = lines[0].split("|")
        place, after = names.index(name), len(names) - names.index(name) - 1
        whole = re.sub(r"\n(?!\d+\|)", " ", "\n".join(lines[1:])).splitlines()
        cells = [row.split("|") for row in whole]
        kept = [[*row[:place], *row[len(row) - after :]] for row in cells]
        return ["|".join(row) for row in ([n for n in names if n != name], *kept)]

    return change


def sacct_of_json(bad: Path, folder: Path) -> list[float]:
    """What ``sacct -X -P -o ...`` prints of the ended jobs of a JSON dump."""
    rows = ["JobIDRaw|JobID|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|ReqCPUS"]
    for job in json.loads(bad.read_text())["jobs"]:
        time, number = job["time"], str(job["job_id"])
        limit = str(time["limit"]["number"]) if time["limit"]["set"] else "UNLIMITED"
        cpus = next(str(each["count"]) for each in job["tres"]["allocated"] if each["type"] == "cpu")
        stamps = [str(time[key] or "Unknown") for key in ("submission", "eligible", "start", "end")]
        rows.append(
            "|".join([number, number, job["state"]["current"][0], *stamps, str(time["elapsed"]), limit, cpus, cpus])
        )
    (folder / "sacct.txt").write_text("\n".join(rows) + "\n")
    return run_times(folder / "sacct.txt")


def csv_of_pbs(bad: Path, folder: Path) -> list[float]:
    """The table of the E records that the message describes."""
    rows = ["submit_s,run_time_s,processors,requested_time_s"]
    for line in bad.read_text().splitlines():
        _, kind, _, text = line.split(";", 3)
        if kind == "E":
            of = dict(pair.partition("=")[::2] for pair in text.split())
            hours, minutes, seconds = map(int, of["Resource_List.walltime"].split(":"))
            limit_s = hours * 3600 + minutes * 60 + seconds
            rows.append(f"{of['ctime']},{int(of['end']) - int(of['start'])},{of['Resource_List.ncpus']},{limit_s}")
    (folder / "jobs.csv").write_text("\n".join(rows) + "\n")
    return run_times(folder / "jobs.csv")


XDMOD = (
    "JobIDRaw|JobID|Cluster|Partition|Account|Group|GID|User|UID|Submit|Eligible|Start|End|Elapsed|ExitCode|State"
    "|NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|Timelimit|NodeList|JobName"
)
"""The fields of the dump without a header, in the order in which they were asked for."""
HEADER = "JobIDRaw|State|Submit|Start|ElapsedRaw|AllocCPUS|AllocTRES"
ROW = "1|COMPLETED|1772438400|1772438410|60|4|cpu=4,mem=8G"
FIXED = "\n".join("".join(f"{cell:20}" for cell in row.split("|")) for row in (HEADER, "---|" * 7, ROW))
TABLE = "submit_s,run_time_s,processors,power_w\n0,60,4,100\n1,60,4,110\n2,60,4,203000\n"

FIXES: dict[str, Fix] = {
    "no header line": Fix(
        "03-sacct-noheader.txt", "put the names after -o into line 1, joined by |",
        with_lines(lambda lines: [XDMOD, *lines]), [3600, 1800],
    ),
    "sacct --json": Fix("02-sacct.json", "sacct -X -P -o JobIDRaw,JobID,State", sacct_of_json, [3600]),
    "PBS": Fix("16-pbs-accounting.log", "make a CSV file of its E records: submit_s = ctime", csv_of_pbs, [3600, 4140]),
    "free text": Fix(
        "14-jobname-separators.txt", "leave out fields of free text (JobName", with_lines(without_field("JobName")),
        [3600, 1800],
    ),
    "a count that is none": Fix(
        "08-ncpus-question.txt", "write a whole number",
        with_lines(lambda lines: [line.replace("16?|3Gn", "16|3Gn").replace("|16|16?", "|16|16G") for line in lines]),
        [3600, 1800],
    ),
    "a short line of SWF": Fix(
        "21-odd.swf", "18 fields; write -1 for unknown ones",
        with_lines(lambda lines: [*lines[:-1], lines[-1] + " -1" * 6], "mended.swf"), [100.5, 1000, 300, 300],
    ),
    "absurd energy, cleared": Fix(
        "10-energy.txt", "clear the value",
        with_lines(lambda lines: [line.replace("9223372036854775", "0") for line in lines]),
        [3600, 1800, 1800, 30, 600], options={"strict": True},
    ),
    "absurd power in a table": Fix(
        "jobs.csv", "clear the value", with_lines(lambda lines: [*lines[:-1], "2,60,4,"], "mended.csv"), [60, 60, 60],
        content=TABLE, options={"strict": True},
    ),
    "absurd power in a table, believed": Fix(
        "jobs.csv", "or set workload.most_node_w above 51000", in_a_scenario("workload.most_node_w", 51_000),
        [60, 60, 60], content=TABLE, options={"strict": True},
    ),
    "runs of requeued jobs": Fix(
        "06-requeue.txt", 'workload.requeued = "every-run"', in_a_scenario("workload.requeued", "every-run"),
        [3890, 1800, 4473, 6122, 5700], options={"strict": True},
    ),
    "columns of fixed width": Fix(
        "sacct.txt", "separate the fields by |: sacct -X -P",
        with_lines(lambda lines: ["|".join(line.split()) for line in lines if line[0] != "-"]), [60], content=FIXED,
    ),
    "commas in cells": Fix(
        "sacct.txt", "fields such as AllocTRES contain ',': sacct -X -P",
        with_lines(lambda lines: [line.replace(",", "|").replace("|mem=", ",mem=") for line in lines]), [60],
        content=f"{HEADER}\n{ROW}\n".replace("|", ","),
    ),
    "last line cut off": Fix(
        "sacct.txt", "remove the line", with_lines(lambda lines: lines[:-1]), [60],
        content=f"{HEADER}\n{ROW}\n2|COMPL", options={"strict": True},
    ),
    "profiles of Batsim": Fix(
        "19-batsim.json", 'give it a profile of "type": "delay"',
        with_lines(lambda lines: [line.replace('"parallel_homogeneous", "cpu": 1e9, "com": 0', '"delay", "delay": 7')
                                  for line in lines], "mended.json"), [100, 20.2, 7], options={"strict": True},
    ),
}  # fmt: skip
TABLES: dict[str, dict[str, Fix]] = {"jobs": FIXES}
"""Room -> its rows."""


@pytest.mark.parametrize(("room", "case"), [(room, case) for room, rows in TABLES.items() for case in rows])
def test_the_fix_of_a_message_works(tmp_path: Path, room: str, case: str) -> None:
    row = TABLES[room][case]
    bad = FIELD / row.file
    if row.content:
        bad = tmp_path / row.file
        bad.write_text(row.content)
    with pytest.raises(InputError) as refused:
        row.read(bad, **row.options)
    assert row.fix in (refused.value.fix or "")
    folder = tmp_path / "mended"
    folder.mkdir()
    assert row.follow(bad, folder) == row.right
