"""Slurm node lists."""

from __future__ import annotations

import pytest

from greenbatch.errors import InputError
from greenbatch.node_lists import node_list


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cn1", ["cn1"]),
        ("cn[1-3]", ["cn1", "cn2", "cn3"]),
        ("node[001-003,130]", ["node001", "node002", "node003", "node130"]),
        ("node[8-11]", ["node8", "node9", "node10", "node11"]),
        ("a1,b[2,4],c", ["a1", "b2", "b4", "c"]),
        ("r[1-2]n[09-10]-ib", ["r1n09-ib", "r1n10-ib", "r2n09-ib", "r2n10-ib"]),
        (" gpu-[1 , 2] ", ["gpu-1", "gpu-2"]),
    ],
)
def test_names(text, names):
    assert list(node_list(text)) == names


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has a blank name"),
        ("a,,b", "has a blank name"),
        ("a[1", "a bracket that is not closed"),
        ("a]1[", "a bracket that is not closed"),
        ("a[[1]]", "a bracket that is not closed"),
        ("a[]", "'' is not a number or a range"),
        ("a[x-y]", "'x-y' is not a number or a range"),
        ("a[1-2-3]", "is not a number or a range"),
        ("a[\u0661]", "is not a number or a range"),
        ("a[9-1]", "the range 9-1 runs backward"),
        ("a[1-9999999]", "names more than 1,000,000 nodes"),
        ("a[1-2000]b[1-2000]", "names more than 1,000,000 nodes"),
        ("a1,a[1-2]", "'a1' occurs twice"),
        ("a b", "'a b' is not the name of a node"),
    ],
)
def test_broken_lists_are_refused(text, problem):
    with pytest.raises(InputError, match="nodes") as refused:
        node_list(text, "nodes")
    assert problem in str(refused.value)
    assert refused.value.fix
