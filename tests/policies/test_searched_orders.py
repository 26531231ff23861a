"""Operators on orders of jobs keep every job, and do what they say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.policies.orders import alternating, order_crossover, rank_of, swap_blocks


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two orders of the same jobs."""
    jobs = list(range(draw(st.integers(2, 12))))
    return draw(st.permutations(jobs)), draw(st.permutations(jobs))


@given(pair=pairs(), data=st.data())
def test_crossover_keeps_a_slice_and_goes_round_the_other_parent(
    pair: tuple[list[int], list[int]], data: st.DataObject
) -> None:
    one, other = pair
    first, last = sorted(data.draw(st.lists(st.integers(0, len(one) - 1), min_size=2, max_size=2, unique=True)))
    child = order_crossover(one, other, first, last)
    assert child[first + 1 : last + 1] == one[first + 1 : last + 1]
    round_from = [child[(last + 1 + k) % len(one)] for k in range(len(one) - (last - first))]
    round_other = [other[(last + 1 + k) % len(one)] for k in range(len(one))]
    assert round_from == [job for job in round_other if job not in one[first + 1 : last + 1]]


@given(pair=pairs(), data=st.data())
def test_blocks_change_places(pair: tuple[list[int], list[int]], data: st.DataObject) -> None:
    order = pair[0]
    length = data.draw(st.integers(1, len(order) // 2))
    first = data.draw(st.integers(0, len(order) - 2 * length))
    second = data.draw(st.integers(first + length, len(order) - length))
    changed = order.copy()
    swap_blocks(changed, length, first, second)
    assert sorted(changed) == sorted(order)
    assert changed[first : first + length] == order[second : second + length]
    assert changed[second : second + length] == order[first : first + length]
    swap_blocks(changed, length, first, second)
    assert changed == order


@given(pair=pairs())
def test_taken_in_turn(pair: tuple[list[int], list[int]]) -> None:
    """Each job is the first of its list that earlier ones left."""
    made = alternating(*pair)
    for k, job in enumerate(made):
        assert job == next(each for each in pair[k % 2] if each not in made[:k])
    assert len(made) == len(pair[0])


def test_better_parents_are_chosen_twice_as_often() -> None:
    ranks = np.array([rank_of(chance) for chance in (np.arange(1024) + 0.5) / 1024])
    assert np.bincount(ranks)[:5].tolist() == [512, 256, 128, 64, 32]
    assert (rank_of(0.5), rank_of(0.25), rank_of(np.nextafter(0.25, 0.0))) == (0, 1, 2)
