"""Job power for traces that record none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.files import decode, read_bytes
from greenbatch.workload.plausible_power import MOST_NODE_W
from greenbatch.workload.table import Workload


def per_processor_power(workload: Workload, seed: int, low_w: int = 5, high_w: int = 50) -> Workload:
    """Power of a job = its processors x a uniform integer in [``low_w``, ``high_w``] W.

    One number is drawn per job line of the trace, so a job's power does not depend on which other jobs were dropped.
    Source: GAS-MARL, Eq. 16.

    Raises:
        InputError: an empty or negative range, or a negative seed.
    """
    if not 0 <= low_w <= high_w:
        raise InputError(f"[{low_w}, {high_w}]", field="power per processor", fix="give 0 <= low_w <= high_w")
    if seed < 0:
        raise InputError(f"is {seed}", field="seed", fix="give an integer >= 0")
    if not len(workload):
        return workload
    drawn = np.random.default_rng(seed).integers(low_w, high_w + 1, size=int(workload.trace_row.max()) + 1)
    return workload.with_columns(power_w=workload.processors * drawn[workload.trace_row].astype(np.float64))


def per_unit_power(workload: Workload, unit_w: float) -> Workload:
    """Power of a job = its processors and GPUs x a number of W: p_full - p_idle of a unit at full load (RARE, Eq. 4.1).

    Raises:
        InputError: the power is not a number >= 0.
    """
    if not 0 <= unit_w < np.inf:
        raise InputError(f"is {unit_w}", field="unit_w", fix="give a number >= 0")
    units = workload.processors + np.maximum(workload.gpus, 0)
    return workload.with_columns(power_w=units * float(unit_w))


def power_list(workload: Workload, path: str | Path) -> Workload:
    """Power of a job = its processors x the number [W] on line k of a file, for the k-th job line of the trace.

    Dropped job lines count too. The file is plain text or gzip, with one number per line, from 0 to
    `plausible_power.MOST_NODE_W`.

    Raises:
        InputError: the file cannot be read, has a line that is not such a number, or has fewer lines than the trace.
    """
    path = Path(path)
    content, sha256 = read_bytes(path)
    watts = _numbers(content, path)
    if len(workload) and int(workload.trace_row.max()) >= len(watts):
        needed = int(workload.trace_row.max()) + 1
        raise InputError(
            f"has {len(watts)} lines for {needed} job lines of {workload.name}", file=path,
            line=len(watts), field="power", fix="give one number per job line",
        )  # fmt: skip
    return workload.with_columns(
        power_w=workload.processors * watts[workload.trace_row], sources={**workload.sources, path.name: sha256}
    )


def _numbers(content: bytes, path: Path) -> NDArray[np.float64]:
    lines = decode(content, path).replace("\r\n", "\n").rstrip().split("\n")
    try:
        watts = np.fromiter(map(float, lines), np.float64, len(lines))
    except ValueError:
        watts = np.array([_number(text) for text in lines])
    bad = np.flatnonzero(~((watts >= 0) & (watts <= MOST_NODE_W)))
    if bad.size:
        text = lines[bad[0]].strip()[:20]
        line = int(bad[0]) + 1
        problem, fix = f"{text!r} is not a power", f"write one number from 0 to {MOST_NODE_W:g} [W] per line"
        raise InputError(problem, file=path, line=line, field="power", fix=fix)
    return watts


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
