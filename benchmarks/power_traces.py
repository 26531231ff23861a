"""Time and memory to read traces with measured power: PM100 whole, a month of F-DATA, and many months of it.

``python benchmarks/power_traces.py`` writes invented jobs in the exact schemas to a temporary folder (3 GB), reads each
trace in a process of its own and prints a table with the targets; ``--json`` prints one object. CPU seconds count all
threads; memory is the largest resident set of the process, which Linux tells.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

from engine import Figures, calibration_s, measured, table

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from power_trace_files import fdata, pm100, written  # noqa: E402 - the invented jobs of the tests

PM100_JOBS, MONTH_JOBS, MONTHS = 231_238, 1_000_000, 24
PART = 250_000
"""Jobs that are made at a time."""
TARGETS: dict[str, tuple[str, float]] = {"fdata_month_wall_s": ("<", 30), "fdata_month_rss_mb": ("<", 2000)}
READ = """
import json, sys, time
from pathlib import Path
from greenbatch.workload import read_workload
begin = time.perf_counter(), time.process_time()
jobs = read_workload(sys.argv[1])
print(json.dumps({
    "jobs": len(jobs), "wall_s": time.perf_counter() - begin[0], "cpu_s": time.process_time() - begin[1],
    "rss_mb": int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024,
}))
"""


def month(path: Path, *, embedded: int) -> Path:
    """A month of F-DATA, of whose jobs the first have an embedding."""
    parts = []
    for k in range(MONTH_JOBS // PART):
        some = min(max(embedded - k * PART, 0), PART)
        parts.append(written(fdata(PART, k, embedded=some), path.with_suffix(f".{k}")))
    pl.scan_parquet(parts).sink_parquet(path, row_group_size=50_000)
    for part in parts:
        part.unlink()
    return path


def read(figures: Figures, name: str, path: Path) -> None:
    """Figures of reading a file or folder in a process of its own."""
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else (path,)))
    figures[f"{name}_file_mb"] = size / 2**20
    figures |= {f"{name}_{key}": value for key, value in json.loads(done.stdout).items()}


def whole_pm100(figures: Figures) -> None:
    """A table of jobs as large as PM100's."""
    with tempfile.TemporaryDirectory(prefix="greenbatch-bench-") as scratch:
        read(figures, "pm100", written(pm100(PM100_JOBS), Path(scratch) / "job_table.parquet"))


def months_of_fdata(figures: Figures) -> None:
    """A month with all embeddings; the same month without any, alone and many times."""
    with tempfile.TemporaryDirectory(prefix="greenbatch-bench-") as scratch:
        read(figures, "fdata_month", month(Path(scratch) / "23_06.parquet", embedded=MONTH_JOBS))
    with tempfile.TemporaryDirectory(prefix="greenbatch-bench-") as scratch:
        bare = month(Path(scratch) / "bare.parquet", embedded=0)
        read(figures, "fdata_bare_month", bare)
        folder = Path(scratch) / "months"
        folder.mkdir()
        for k in range(MONTHS):
            (folder / f"{k:02}.parquet").symlink_to(bare)
        read(figures, f"fdata_{MONTHS}_months", folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = measured({"calibration_s": calibration_s()}, (whole_pm100, months_of_fdata), TARGETS)
    print(json.dumps(figures, indent=2) if options.json else table(figures, TARGETS))


if __name__ == "__main__":
    main()
