"""A scenario with other jobs from its generator is the one that these seeds would give, and keeps the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from greenbatch.errors import InputError
from greenbatch.scenarios import load_scenario
from greenbatch.scenarios.regenerate import regenerated


def test_other_seeds_and_gaps_are_those_of_the_scenario_file() -> None:
    small = {"workload.generator.jobs": 80}
    question = load_scenario("default", overrides=small)
    resolved = question.resolved["workload"]
    overrides = small | {
        "workload.generator.seed": resolved["generator"]["seed"] + 7, "workload.generator.gap_factor": 0.5,
        "workload.power.seed": resolved["power"]["seed"] + 7,
    }  # fmt: skip
    made, expected = (
        regenerated(question, 7, 0.5 / resolved["generator"]["gap_factor"]),
        load_scenario("default", overrides=overrides),
    )
    assert made.resolved == expected.resolved
    for column in ("submit_s", "run_time_s", "processors", "power_w"):
        np.testing.assert_array_equal(getattr(made.workload, column), getattr(expected.workload, column))
    assert made.site is question.site
    again = regenerated(question, 0)
    np.testing.assert_array_equal(again.workload.power_w, question.workload.power_w)
    assert (made.workload.run_time_s != question.workload.run_time_s).any()


def test_jobs_that_no_generator_draws_are_refused(greenbatch_data: Callable[[str], Path]) -> None:
    greenbatch_data("swf/lublin_256.swf.gz")
    with pytest.raises(InputError, match="gas-marl/lublin-256 has no generator with a seed"):
        regenerated(load_scenario("gas-marl/lublin-256"), 1)


@pytest.mark.parametrize("name", ["lublin-256", "cirne", "jann"])
def test_fresh_scenarios_share_nothing_with_those_of_the_paper(
    name: str, greenbatch_data: Callable[[str], Path]
) -> None:  # fmt: skip
    """Other jobs and years; the same machine, rules and kind of supply."""
    greenbatch_data("swf/lublin_256.swf.gz")
    fresh, published = load_scenario(f"gas-marl/fresh-{name}"), load_scenario(f"gas-marl/{name}")
    ours, theirs = fresh.resolved, published.resolved
    assert "generator" in ours["workload"]
    assert not set(fresh.inputs) & set(published.workload.sources)
    assert (ours["cluster"], ours["rules"]) == (theirs["cluster"], theirs["rules"])
    for mine, other in zip(ours["site"]["sources"], theirs["site"]["sources"], strict=True):
        assert not set(mine.pop("columns")) & set(other.pop("columns"))
        assert mine == other
    watts = fresh.workload.power_w / fresh.workload.processors
    assert (watts.min(), watts.max()) == (5.0, 50.0)
    assert np.abs(watts.mean() - 27.5) < 1.0
