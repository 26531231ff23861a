"""The replay buffer: what goes in comes out, whatever its size; n-step returns; its memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_env import RICH, observation

from greenbatch.datasets.tables import Field, Tables
from greenbatch.errors import InputError
from greenbatch.learning.networks.observations import as_batch, copied
from greenbatch.learning.offpolicy.buffer import Replay, bytes_of, check_memory, n_step_returns
from greenbatch.learning.offpolicy.tables import batch_of

FIELDS = {"image": Field((2, 3, 5), np.bool_), "jobs": Field((4, 2), np.float32), "slot": Field((), np.int64)}


def trajectories(seed: int, lengths: list[int]) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """Random observations whose ``slot`` numbers them, actions, rewards and offsets."""
    random, count = np.random.default_rng(seed), sum(lengths)
    seen = {
        "image": random.random((count, 2, 3, 5)) < 0.5,
        "jobs": random.random((count, 4, 2)).astype(np.float32),
        "slot": np.arange(count),
    }
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return seen, random.integers(7, size=count), random.normal(size=count), offsets


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=8), st.integers(1, 40), st.integers(1, 5), st.integers(1, 3),
    st.integers(0, 1000),
)  # fmt: skip
def test_what_it_holds_are_the_last_transitions_in_the_order_of_time(lengths, capacity, n_step, parts, seed):
    """Trajectories are added in several parts; every transition is compared with a loop over its trajectory."""
    lengths = [*lengths, 1]
    seen, actions, rewards, offsets = trajectories(seed, lengths)
    discounts = np.random.default_rng(seed).uniform(0.5, 1.0, len(actions))
    replay = Replay(FIELDS, capacity)
    for few in np.array_split(np.arange(len(lengths)), parts):
        if len(few):
            low, high = offsets[few[0]], offsets[few[-1] + 1]
            replay.add(
                {name: value[low:high] for name, value in seen.items()}, actions[low:high], rewards[low:high],
                offsets[few[0] : few[-1] + 2] - low, discounts=discounts[low:high], n_step=n_step,
            )  # fmt: skip
    total = len(actions)
    assert replay.total == total
    assert len(replay) == min(total, capacity)
    ends = np.repeat(offsets[1:], np.diff(offsets))
    for number in range(total - len(replay), total):
        place = np.array([number % capacity])
        found, done = replay.seen(place), replay.outcomes(place)
        assert found["slot"][0] == number
        np.testing.assert_array_equal(found["image"][0], seen["image"][number])
        np.testing.assert_array_equal(found["jobs"][0], seen["jobs"][number])
        assert done.actions[0] == actions[number]
        until = min(number + n_step, ends[number])
        expected = sum(np.prod(discounts[number:k]) * rewards[k] for k in range(number, until))
        assert done.rewards[0] == pytest.approx(expected, rel=1e-6)
        goes_on = number + n_step < ends[number]
        assert done.discounts[0] == pytest.approx(np.prod(discounts[number : number + n_step]) if goes_on else 0.0)
        if goes_on:
            assert replay.seen(replay.following(place))["slot"][0] == number + n_step


def test_n_step_returns_of_a_whole_trajectory_are_its_rewards_to_go():
    rewards, offsets = np.array([1.0, 2.0, 3.0, 10.0]), np.array([0, 3, 3, 4])
    sums, discounts, ahead = n_step_returns(rewards, offsets, np.full(4, 0.5), 100)
    np.testing.assert_array_equal(sums, [1 + 1 + 0.75, 2 + 1.5, 3.0, 10.0])
    np.testing.assert_array_equal(discounts, 0.0)
    np.testing.assert_array_equal(ahead, 0)


def test_images_are_stored_as_bits_and_1_75_million_of_50_resources_fit_in_4_gb():
    """Images of 50 resources of two types over 48 ticks, in two channels, and 5 jobs of 9 numbers."""
    fields = {"image": Field((2, 48, 100), np.bool_), "jobs": Field((5, 9), np.float32)}
    assert bytes_of(fields) == 2 * 48 * 100 // 8 + 5 * 9 * 4 + 14
    check_memory(fields, 1_750_000, 4.0)
    held = sum(array.nbytes for array in vars(Replay(fields, 1000)).values() if isinstance(array, np.ndarray))
    stored = sum(array.nbytes for array in Replay(fields, 1000)._arrays.values())
    assert held + stored == 1000 * bytes_of(fields)


def test_more_memory_than_asked_for_is_refused_with_what_would_fit():
    fields = {"image": Field((48, 100), np.float32)}
    with pytest.raises(InputError) as caught:
        check_memory(fields, 1_750_000, 4.0)
    assert "needs 33.6 GB for 1,750,000 transitions of 19,214 bytes" in str(caught.value)
    assert f"at most {int(4e9 / 19_214):,}" in str(caught.value)
    check_memory(fields, int(4e9 / 19_214), 4.0)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(0, 1000))
def test_observations_come_back_from_the_arrays_as_they_were(count, seed):
    tables, seen = Tables(RICH, 100), observation(RICH, count, seed)
    before, after = as_batch(copied(seen)), batch_of(tables.arrays(seen))
    for name in ("queue", "queue_offsets", "queue_owner", "selectable", "running", "running_offsets", "state"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name), err_msg=name)
    np.testing.assert_array_equal(before.supply[before.supply_row], after.supply[after.supply_row])
