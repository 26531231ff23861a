"""A recorded dataset fills the buffer as the same schedulers do in the training itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from off_policy import off_policy_plan
from tiny import resumed_as_whole, weights_of

from greenbatch import datasets
from greenbatch.errors import InputError
from greenbatch.learning.offpolicy.loop import FILL, OffPolicySetup, train
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.runs.windows import seen_jobs

OFFLINE = {"training.off_policy.online": False, "training.off_policy.buffer": 4000}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The windows of a training under its schedulers, as a dataset; and the folder of its preset and scenario."""
    place = tmp_path_factory.mktemp("recorded")
    plan = off_policy_plan(place, overrides=OFFLINE)
    folder = place / "decisions"
    folder.mkdir()
    datasets.write(OffPolicySetup(plan, torch.device("cpu")).recording(), folder)
    return place, folder


def from_dataset(recorded: tuple[Path, Path], **more: object) -> Plan:
    place, folder = recorded
    table = {"training.off_policy.schedulers": [], "training.off_policy.fill_windows": 0}
    given = {**OFFLINE, **table, "training.off_policy.dataset": str(folder), **more}
    return off_policy_plan(place, overrides=given)


def test_the_buffer_is_the_same_and_so_are_the_weights(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    place, _ = recorded
    plans = off_policy_plan(place, overrides=OFFLINE), from_dataset(recorded)
    buffers = []
    for number, plan in enumerate(plans):
        setup = OffPolicySetup(plan, torch.device("cpu"))
        (played,) = setup.collect(FILL, setup.behavior(FILL, 0))
        buffers.append((setup.replay, played))
        train(plan, tmp_path / str(number))
    (ours, first), (theirs, second) = buffers
    assert len(ours) == len(theirs) > 50
    all_of = np.arange(len(ours))
    for mine, other in zip(ours.outcomes(all_of), theirs.outcomes(all_of), strict=True):
        np.testing.assert_array_equal(mine, other)
    for name, values in ours.seen(all_of).items():
        np.testing.assert_array_equal(values, theirs.seen(all_of)[name])
    np.testing.assert_allclose(first.returns, second.returns)
    assert weights_of(tmp_path / "0") == weights_of(tmp_path / "1")


def test_the_jobs_that_were_recorded_are_those_that_the_model_has_seen(recorded: tuple[Path, Path]) -> None:
    last = {"training.keep": "last", "training.validation.windows": 0}
    _, folder = recorded
    record = datasets.read(folder).record
    expected = {int(job) for start in record.starts for job in range(start, start + record.jobs)}

    def seen(**more: object) -> set[int]:
        plan = from_dataset(recorded, **last, **more)
        runs = seen_jobs(plan.scenario, plan.settings, plan.windows)
        return {job for first, final in runs for job in range(first, final + 1)}

    assert seen() == expected
    assert seen(**{"training.off_policy.online": True}) > expected  # windows of its own, which can be any


def test_schedulers_have_their_shares_of_the_windows(tmp_path: Path) -> None:
    more = {**OFFLINE, "training.off_policy.shares": [1.0, 3.0], "training.off_policy.fill_windows": 8}
    made = OffPolicySetup(off_policy_plan(tmp_path, overrides=more), torch.device("cpu")).recording()
    numbers = np.concatenate([played.scheduler for played in datasets.play(made)])
    assert np.bincount(numbers).tolist() == [2, 6]


def test_an_interrupted_training_from_a_dataset_resumes(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    resumed_as_whole(from_dataset(recorded), tmp_path, train)


def test_another_dataset_is_another_training(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    place, folder = recorded
    train(from_dataset(recorded), tmp_path / "run")
    other = OffPolicySetup(
        off_policy_plan(place, overrides={**OFFLINE, "training.off_policy.fill_windows": 5}), torch.device("cpu")
    )
    kept = tmp_path / "kept"
    folder.rename(kept)
    folder.mkdir()
    try:
        datasets.write(other.recording(), folder)
        with pytest.raises(InputError, match=r"dataset\.json"):
            train(from_dataset(recorded), tmp_path / "run")
    finally:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        kept.rename(folder)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"training.jobs": 20}, "set training.jobs=12"),
        ({"training.off_policy.buffer": 50}, r"more than training.off_policy.buffer \(set training.off_policy.buffer="),
        ({"training.off_policy.dataset": "absent"}, "training.off_policy.dataset: absent is not a folder"),
        ({"observation.queue.rows": 4}, "differs from small-off-policy in observation.queue.rows"),
        ({"reward.form": "sparse"}, "reward.form"),
    ],
)
def test_a_dataset_of_something_else_is_refused(
    recorded: tuple[Path, Path], tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        train(from_dataset(recorded, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()
