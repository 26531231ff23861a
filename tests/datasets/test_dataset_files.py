"""Datasets: shares of schedulers, files and back, what fits, and what is refused in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import greenbatch as gb
from greenbatch import datasets
from greenbatch.cli import main
from greenbatch.datasets.recording import in_turn, side_by_side
from greenbatch.datasets.schema import DatasetRecord
from greenbatch.datasets.tables import Tables
from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import InputError
from greenbatch.files import sha256_of
from greenbatch.presets.preset import preset
from greenbatch.presets.shapes import shapes_of

RULES = "qos+none,hvf+none"


def planned(**changes: Any) -> datasets.Recording:
    given_: dict[str, Any] = {"decisions": 400, "episode_s": 50.0, "seed": 1} | changes
    return datasets.recording(gb.load_scenario("rare/10"), "rare", RULES, **given_)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DatasetRecord]:
    folder = tmp_path_factory.mktemp("dataset")
    return folder, datasets.write(planned(), folder)


# ---------------------------------------------------------------- shares


@given(
    weights=st.lists(st.floats(0.01, 1), min_size=1, max_size=6), lengths=st.data(), most=st.integers(1, 50),
    target=st.floats(1, 5000),
)  # fmt: skip
def test_no_scheduler_is_off_its_share_by_more_than_windows_of_the_others(
    weights: list[float], lengths: st.DataObject, most: int, target: float
) -> None:
    shares = np.array(weights) / sum(weights)
    usual = np.array(lengths.draw(st.lists(st.floats(1, 100), min_size=len(shares), max_size=len(shares))))
    chosen = in_turn(shares, np.zeros(len(shares)), usual, most, target)
    had = np.bincount(chosen, usual[chosen], len(shares))
    assert len(chosen) == most or had.sum() >= target
    assert had.sum() - (usual[chosen[-1]] if len(chosen) else 0) < target
    assert (np.abs(had - shares * had.sum()) <= usual.sum()).all()


def test_shares_are_those_asked_for_but_for_a_window() -> None:
    made = planned(shares=[1, 3], decisions=400)
    played = list(datasets.play(made))
    own = np.concatenate([np.repeat(each.scheduler, np.diff(each.offsets)) for each in played])
    longest = max(np.diff(each.offsets).max() for each in played)
    assert 400 <= len(own) < 400 + longest * 2
    assert abs(np.mean(own) - 0.75) * len(own) <= longest
    assert np.concatenate([each.episode for each in played]).tolist() == list(range(sum(len(p.start) for p in played)))


def test_the_same_seed_gives_the_same_decisions_in_any_number_of_threads() -> None:
    one, two, other = (
        list(datasets.play(planned(seed=s, threads=n, decisions=100))) for s, n in ((1, 1), (1, 2), (2, 1))
    )
    for ours, theirs in zip(one, two, strict=True):
        for name, found in ours._asdict().items():
            if name != "seen":
                np.testing.assert_array_equal(found, getattr(theirs, name))
    assert [each.start.tolist() for each in one] != [each.start.tolist() for each in other]


def test_without_a_number_of_decisions_windows_side_by_side_cover_the_trace() -> None:
    made = planned(decisions=None, episode_s=100.0)
    submit_s = made.env.scenario.workload.submit_s
    begins_s = submit_s[made.starts]
    assert (np.diff(begins_s) >= 100).all()
    assert ((submit_s[made.starts[1:] - 1] - begins_s[:-1]) < 100).all()  # none is left out in between
    scenario = gb.load_scenario("default", overrides={"workload.generator.jobs": 1000})
    env = BatchEnv(scenario, "rlscheduler", environments=1, jobs=64)
    assert side_by_side(np.arange(1000 - 64 + 1), env).tolist() == list(range(0, 937, 64))
    short = gb.load_scenario("default", overrides={"workload.generator.jobs": 100})
    (played,) = datasets.play(datasets.recording(short, "rlscheduler", "fcfs+easy", jobs=30))
    assert played.start.tolist() == [0, 30, 60]


# ---------------------------------------------------------------- files and back


def test_a_dataset_is_read_as_it_was_played(written: tuple[Path, DatasetRecord]) -> None:
    folder, record = written
    made, found = planned(), datasets.read(folder)
    tables = Tables(shapes_of(made.env.preset), made.env.jobs)
    at = episode = 0
    for played in datasets.play(made):
        part = slice(at, at := at + len(played.actions))
        for name, each in tables.arrays(played.seen).items():
            np.testing.assert_array_equal(found.observations[name][part], each)
        np.testing.assert_array_equal(found.actions[part], played.actions)
        np.testing.assert_array_equal(found.rewards[part], played.rewards)
        np.testing.assert_array_equal(found.time_s[part], played.time_s)
        np.testing.assert_array_equal(found.increments["finished_value"][part], played.increments[:, 0])
        np.testing.assert_array_equal(
            found.offsets[episode : episode + len(played.offsets)], played.offsets + part.start
        )
        episode += len(played.start)
    assert at == len(found) == record.decisions >= 400
    assert found.record == record
    assert found.preset == made.env.preset
    assert len(found.episodes) == episode == len(record.starts)
    ends = np.array([each.stop - 1 for each in found.episodes])
    assert np.flatnonzero(found.timeouts).tolist() == ends.tolist()
    assert not found.terminals.any()


def test_the_record_counts_what_is_in_the_files(written: tuple[Path, DatasetRecord]) -> None:
    folder, record = written
    frame = pl.read_parquet(folder / "*.parquet")
    assert list(frame["queue.qos"].dtype.shape) == [11]
    for number, each in enumerate(record.schedulers):
        own = frame.filter(pl.col("scheduler") == number)
        assert (each.decisions, each.episodes) == (len(own), own["episode"].n_unique())
        assert each.choices == (own["allowed"] > 1).sum()
        assert each.mean_return == pytest.approx(own["reward"].sum() / each.episodes)
    assert (frame["allowed"] == frame["selectable"].arr.to_list().list.sum()).all()


def test_a_dataset_fits_its_scenario_and_presets_that_see_do_and_earn_the_same(
    written: tuple[Path, DatasetRecord],
) -> None:
    found, scenario = datasets.read(written[0]), gb.load_scenario("rare/10")
    for name in ("rare", "rare-offline", "rare-clone"):
        datasets.check_fits(found, scenario, name)
    with pytest.raises(InputError, match=r"differs from rare/10 in scenario\.rules\.pools\.ready"):
        datasets.check_fits(found, gb.load_scenario("rare/10", overrides={"rules.pools.ready": 9}), "rare")
    blind = preset("rare")
    blind = blind.model_copy(
        update={"observation": blind.observation.model_copy(update={"state": type(blind.observation.state)()})}
    )
    with pytest.raises(InputError, match=r"differs from rare in observation\.state\.columns"):
        datasets.check_fits(found, scenario, blind)
    paid = blind.model_copy(
        update={"observation": preset("rare").observation, "reward": type(blind.reward)(terms={"late_jobs": 1})}
    )
    with pytest.raises(InputError, match=r"differs from rare in reward\."):
        datasets.check_fits(found, scenario, paid)


# ---------------------------------------------------------------- damaged files


def changed(column: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """A file of decisions with a column that was changed, under the right checksum."""

    def damage(folder: Path) -> None:
        file = folder / "part-00000.parquet"
        frame = pl.read_parquet(file)
        values = np.array(frame[column].to_numpy())
        frame.with_columns(pl.Series(column, change(values))).write_parquet(file)
        record = json.loads((folder / "dataset.json").read_text())
        record["parts"][0]["sha256"] = sha256_of(file)
        (folder / "dataset.json").write_text(json.dumps(record))

    return damage


def set_at(place: Any, value: Any) -> Callable[[Any], Any]:
    def change(values: Any) -> Any:
        values[place] = value
        return values

    return change


def recorded_as(**changes: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        record = json.loads((folder / "dataset.json").read_text())
        (folder / "dataset.json").write_text(json.dumps(record | changes))

    return damage


def truncated(folder: Path) -> None:
    file = folder / "part-00000.parquet"
    file.write_bytes(file.read_bytes()[:-100])


def without(folder: Path) -> None:
    (folder / "part-00000.parquet").unlink()


def without_column(folder: Path) -> None:
    file = folder / "part-00000.parquet"
    pl.read_parquet(file).drop("queue.qos").write_parquet(file)
    record = json.loads((folder / "dataset.json").read_text())
    record["parts"][0]["sha256"] = sha256_of(file)
    (folder / "dataset.json").write_text(json.dumps(record))


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "no record": (lambda folder: (folder / "dataset.json").unlink(), "dataset.json: no such file"),
    "not JSON": (lambda folder: (folder / "dataset.json").write_text("{"), "dataset.json: is damaged: it is not"),
    "later layout": (recorded_as(format=2), "has layout 2, this version of greenbatch reads 1"),
    "another kind": (recorded_as(kind="d4rl"), "kind: "),
    "no key": (recorded_as(unknown=1), "unknown: unknown key"),
    "no parts": (recorded_as(parts=[]), "parts: "),
    "outside": (recorded_as(parts=[{"file": "../x.parquet", "decisions": 1, "sha256": "0" * 64}]), "file: "),
    "decisions": (recorded_as(decisions=7), "decisions: is not the sum of the parts"),
    "truncated": (truncated, "part-00000.parquet: is damaged: its checksum is another one"),
    "no file": (without, "part-00000.parquet: no such file"),
    "no column": (without_column, "queue.qos: is missing"),
    "NaN in a table": (changed("queue.value", set_at((5, 0), np.nan)), "queue: is not a finite number at decision 5"),
    "infinite reward": (changed("reward", set_at(3, np.inf)), "reward: is not a finite number at decision 3"),
    "action outside": (changed("action", set_at(2, 99)), "action: is a row that may not be chosen at decision 2"),
    "negative action": (changed("action", lambda a: np.where(np.arange(len(a)) == 1, -1, a.astype(int))),
                        "action: is a row that may not be chosen at decision 1"),
    "action masked": (changed("selectable", set_at(4, False)), "action: is a row that may not be chosen at decision 4"),
    "order": (changed("step", lambda a: a[::-1]), "episode and step: are not complete and in order"),
    "no end": (changed("truncated", set_at(slice(None), False)), "terminal or truncated: is not set at ends alone"),
    "words": (changed("reward", lambda a: [str(each) for each in a]), "reward: is String"),
    "narrow": (changed("queue.qos", lambda a: a[:, :3]), "queue.qos: is Array"),
    "scheduler": (changed("scheduler", set_at(0, 2)), "scheduler: is not in dataset.json at decision 0"),
    "negative scheduler": (changed("scheduler", lambda a: a.astype(int) - 1), "scheduler: is not in dataset.json"),
    "other counts": (changed("scheduler", lambda a: 1 - a.astype(int)), "schedulers: says "),
    "time": (changed("time_s", lambda a: a[::-1]), "time_s: is earlier than before at decision "),
    "no time": (changed("time_s", set_at(2, np.nan)), "time_s: is not a finite number at decision 2"),
    "starts": (recorded_as(starts=[]), "starts: do not have one job for each episode"),
}  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of one short window."""
    folder = tmp_path_factory.mktemp("small")
    datasets.write(planned(decisions=1, episode_s=30.0), folder)
    datasets.read(folder)
    return folder


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_in_one_line(name: str, small: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small, tmp_path / "d"))
    damage, told = DAMAGE[name]
    damage(folder)
    with pytest.raises(InputError) as caught:
        datasets.read(folder)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.fix


# ---------------------------------------------------------------- the verb


def test_the_verb_writes_a_dataset_and_says_what_it_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "d"
    words = [
        "record",
        "rare-offline",
        "--scenario",
        "rare/10",
        "--schedulers",
        RULES,
        "--mix",
        "1,2",
        "--episode-s",
        "30",
    ]
    words += ["--decisions", "200", "--set", "observation.image.ticks=0", "--threads", "1", "--out", str(out)]
    assert main(words) == 0
    shown, found = capsys.readouterr().out, datasets.read(out)
    assert f"{len(found):,} decisions of {len(found.episodes)} episodes" in shown
    assert "image" not in {name.split(".")[0] for name in pl.read_parquet(out / "part-00000.parquet").columns}
    for each in found.record.schedulers:
        assert f"{each.decisions:,}" in shown
    assert [each.share for each in found.record.schedulers] == pytest.approx([1 / 3, 2 / 3])
    before = {file: file.read_bytes() for file in out.iterdir()}
    assert main(words) == 2
    assert "not empty" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0
    assert {file: file.read_bytes() for file in out.glob("part*")} == {
        f: b for f, b in before.items() if "part" in f.name
    }


def test_a_site_records_its_own_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The dump in ``examples``: every job starts when it did, so the time of each decision is a start of the dump."""
    examples = Path(__file__).parents[2] / "examples"
    site, trace, out = str(examples / "site.toml"), str(examples / "sacct.txt"), tmp_path / "d"
    words = ["record", "rlscheduler", "--scenario", site, "--trace", trace, "--schedulers", "as-recorded"]
    assert main([*words, "--out", str(out)]) == 0
    capsys.readouterr()
    jobs = gb.load_scenario(site, trace=trace).workload
    found = datasets.read(out)
    copy = Path(shutil.copy(trace, tmp_path / "same.txt"))
    for same in (gb.load_scenario(site), gb.load_scenario(site, trace=copy)):  # contents count, not places
        datasets.check_fits(found, same, "rlscheduler")
    np.testing.assert_array_equal(found.time_s, np.sort(jobs.submit_s + jobs.recorded_wait_s))
    assert found.terminals.sum() == len(found.episodes) == 1


REFUSED = {
    "no waits": (["rlscheduler", "--schedulers", "as-recorded"], "as-recorded: the trace"),
    "unknown rule": (["rlscheduler", "--schedulers", "fcsf+easy"], "fcsf"),
    "shares": (["rlscheduler", "--schedulers", "fcfs+easy", "--mix", "1,2"], "--mix: is 1, 2"),
    "no share": (["rlscheduler", "--schedulers", "fcfs+easy,sjf+easy", "--mix", "1,0"], "--mix: is 1, 0"),
    "words": (["rlscheduler", "--schedulers", "fcfs+easy", "--mix", "half"], "--mix: 'half' is not numbers"),
    "planner": (["gas-marl-plus", "--schedulers", "fcfs+easy"], "is found by search"),
    "windows": (["rlscheduler", "--schedulers", "fcfs+easy", "--windows", "some"], "--windows: is 'some'"),
    "jobs": (["rlscheduler", "--schedulers", "fcfs+easy", "--jobs", "999999999"], "--jobs: is 999999999"),
    "no rule": (["rlscheduler", "--schedulers", ","], "--schedulers: names no scheduler"),
    "no length": (
        ["rare", "--scenario", "rare/10", "--schedulers", "fcfs+none", "--episode-s", "0"],
        "--episode-s: is 0",
    ),
    "pools": (["rare", "--schedulers", "fcfs+easy"], "sees what is powered in the ticks ahead"),
    "length": (["rlscheduler", "--schedulers", "fcfs+easy", "--episode-s", "60"], "capacity follows the power"),
    "nodes": (["ineps", "--schedulers", "fcfs+easy", "--scenario", "ineps/convergence-1s"], "chooses nodes"),
}
"""Words -> what is said."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_recorded_is_refused_and_nothing_is_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, told = REFUSED[name]
    assert main(["record", *words, "--out", str(tmp_path / "d")]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
