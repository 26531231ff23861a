"""Finished windows of an interrupted comparison: read back exactly, or refused in one line if anything is damaged."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from greenbatch.errors import InputError
from greenbatch.experiments.reports.outputs import comparison_record
from greenbatch.experiments.running.compare import Comparison, compare
from greenbatch.experiments.running.finished import finished_windows
from greenbatch.scenarios import load_scenario

STARTS, SCHEDULERS = (0, 100, 200), ("fcfs+easy", "sjf+easy")
DAMAGED = "contains a damaged comparison (compare again with --force)"


@pytest.fixture(scope="module")
def made() -> tuple[Comparison, dict[str, Any]]:
    """A comparison and its provenance."""
    question = load_scenario("default")
    comparison = compare(question, SCHEDULERS, STARTS, 16, SCHEDULERS[0])
    return comparison, comparison_record(question, SCHEDULERS, SCHEDULERS[0], STARTS, 16, seed=1)


@pytest.fixture
def folder(made: tuple[Comparison, dict[str, Any]], tmp_path: Path) -> Path:
    """The files that a comparison is resumed from."""
    made[0].frame.write_parquet(tmp_path / "results.parquet")
    (tmp_path / "provenance.json").write_text(json.dumps(made[1]))
    return tmp_path


def rewrite(folder: Path, starts: str) -> None:
    """Put another text for the starts into the provenance."""
    record = json.loads((folder / "provenance.json").read_text())
    record["settings"]["starts"] = "STARTS"
    (folder / "provenance.json").write_text(json.dumps(record).replace('"STARTS"', starts))


def test_every_value_comes_back(made, folder: Path) -> None:
    comparison, record = made
    found = finished_windows(folder, record)
    assert list(found) == list(STARTS)
    rows = [
        (str(start), scheduler, metric, None if math.isnan(value) else value)
        for start, window in found.items()
        for scheduler, values in window.items()
        for metric, value in values.items()
    ]
    assert rows == comparison.frame.rows()


def test_a_part_of_the_windows_may_be_finished(made, folder: Path) -> None:
    rewrite(folder, "[0, 200]")
    made[0].frame.filter(pl.col("window") != "100").write_parquet(folder / "results.parquet")
    assert list(finished_windows(folder, made[1])) == [0, 200]


@pytest.mark.parametrize(
    "starts", ["[1e400]", "[-1e400]", "[0.7, 100, 200]", "[0.0, 100, 200]", "[true]", '["0"]', "[null]", "7", "{}"]
)
def test_starts_that_are_no_whole_numbers_are_damage(made, folder: Path, starts: str) -> None:
    rewrite(folder, starts)
    with pytest.raises(InputError) as refused:
        finished_windows(folder, made[1])
    assert str(refused.value) == f"{folder}: --resume: {DAMAGED}"


FRAMES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "text as values": lambda frame: frame.with_columns(pl.col("value").cast(pl.String)),
    "whole numbers as values": lambda frame: frame.with_columns(pl.col("value").cast(pl.Int64, strict=False)),
    "numbers as windows": lambda frame: frame.with_columns(pl.col("window").cast(pl.Int64)),
    "a column less": lambda frame: frame.drop("metric"),
    "a column more": lambda frame: frame.with_columns(more=1),
    "columns in another order": lambda frame: frame.select("scheduler", "window", "metric", "value"),
    "no row": lambda frame: frame.clear(),
    "no value of a window": lambda frame: frame.filter(pl.col("window") != "100"),
    "no value of a scheduler": lambda frame: frame.filter(pl.col("scheduler") != "sjf+easy"),
    "a metric missing once": lambda frame: frame.filter(pl.int_range(pl.len()) != 5),
    "a metric missing everywhere": lambda frame: frame.filter(pl.col("metric") != "makespan_s"),
    "a value twice": lambda frame: pl.concat([frame, frame[:1]]),
    "another scheduler": lambda frame: pl.concat([frame, frame.with_columns(scheduler=pl.lit("f2+easy"))]),
    "another window": lambda frame: pl.concat([frame, frame.with_columns(window=pl.lit("300"))]),
    "a window in other words": lambda frame: frame.with_columns(pl.col("window").replace("100", "0100")),
    "a window without a number": lambda frame: frame.with_columns(pl.col("window").replace("100", "x")),
    "a row without a window": lambda frame: frame.with_columns(pl.col("window").replace("100", None)),
    "a row without a metric": lambda frame: frame.with_columns(pl.col("metric").replace("makespan_s", None)),
}


@pytest.mark.parametrize("case", FRAMES)
def test_results_that_do_not_match_the_provenance_are_damage(made, folder: Path, case: str) -> None:
    comparison, record = made
    FRAMES[case](comparison.frame).write_parquet(folder / "results.parquet")
    with pytest.raises(InputError) as refused:
        finished_windows(folder, record)
    assert str(refused.value) == f"{folder}: --resume: {DAMAGED}"


def test_metrics_of_a_users_own_are_kept(made, folder: Path) -> None:
    comparison, record = made
    own = comparison.frame.filter(pl.col("metric") == "jobs").with_columns(metric=pl.lit("own"))
    pl.concat([comparison.frame, own]).write_parquet(folder / "results.parquet")
    assert finished_windows(folder, record)[100]["sjf+easy"]["own"] == 16


def test_a_folder_without_results_contains_no_comparison(made, folder: Path) -> None:
    shutil.copytree(folder, folder / "copy")
    for file in ("results.parquet", "provenance.json"):
        (folder / file).unlink()
        with pytest.raises(InputError, match=r"contains no comparison \(leave --resume out\)"):
            finished_windows(folder, made[1])
    (folder / "copy" / "results.parquet").write_bytes(b"PAR1 and then text")
    with pytest.raises(InputError, match="contains a damaged comparison"):
        finished_windows(folder / "copy", made[1])
