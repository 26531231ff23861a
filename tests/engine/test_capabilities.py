"""The table of what works with what is true: each yes runs, each no is refused in one line."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import workload
from digests import CLUSTER, SITE, random_jobs
from kinds import MACHINES, PRICE, SUPPLIES

sys.path.append(str(Path(__file__).parents[1] / "rare"))

from cases_rare import rare

from greenbatch.bounds import fluid_bound, oracle_bound
from greenbatch.cluster import Capacity
from greenbatch.energy import Site
from greenbatch.engine.accounts import books
from greenbatch.engine.capabilities import asked, capabilities, first_no, parts_of
from greenbatch.engine.prediction.known import PREDICTOR_OF
from greenbatch.engine.prepare import prepare
from greenbatch.engine.program import CompiledPolicy, Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.state import work_s
from greenbatch.engine.views.interface import Decision, Start, View, Wait
from greenbatch.envs.simulations import Simulations
from greenbatch.errors import InputError
from greenbatch.experiments.running.compare import question_of
from greenbatch.metrics import measure
from greenbatch.presets.preset import Column, Preset, kinds_of, preset, resolve
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import entries, scheduler
from greenbatch.schedulers.during_outages import DuringOutages
from greenbatch.workload import Outage

NAMES = {
    "rule": "fcfs", "conservative": "fcfs+conservative", "lookahead": "gas-marl-plus@lublin-256",
    "ga": "ga:evaluations=60+easy", "aco": "aco:evaluations=60+easy", "ga-published": "ga-published+none",
    "cheapest-start": "cheapest-start:horizon=60:tick=7", "foresee": "foresee:horizon=60:tick=7",
    "green-threshold": "green-threshold:tick=7:limit=60", "rolling": "rolling:futures=1:horizon=3600",
}  # fmt: skip
"""Row of a policy -> a scheduler of it, if its name is another one."""
OF_READY_JOBS = {"packer", "random-action"}
"""Policies for the ready jobs of a machine whose capacity follows the power, and for no other."""
OUTAGE = Outage(begin_s=30.0, end_s=40.0)


def question(feature: str) -> tuple[Any, Any, Any, Rules]:
    """A small simulation that has a feature: jobs, machine, supply, rules."""
    jobs, cluster, site, rules = workload(random_jobs(1, 8)), CLUSTER, SITE, Rules()
    if feature in ("nodes", "boots"):
        cluster = MACHINES["nodes" if feature == "nodes" else "booting nodes"]
    elif feature in ("capacity", "gpus"):
        where = rare(ticks=12, level=0.7 if feature == "capacity" else 1.0)
        jobs, cluster, rules = where.workload, where.cluster, where.rules
    elif feature == "power_cap":
        rules = Rules(power_cap_w=1e6)
    elif feature == "overhead":
        site = replace(SITE, pue=1.2)
    elif feature == "storage":
        site = SUPPLIES["storage"]
    elif feature == "speed":
        cluster = replace(CLUSTER, groups=tuple(replace(each, speed=2.0) for each in CLUSTER.groups))
    elif feature == "follow":
        before = np.where(np.arange(len(jobs)) == 1, jobs.job_id[0], 0)
        jobs, rules = jobs.with_columns(preceding_job=before), Rules(dependencies="obey")
    elif feature == "no_supply":
        site = None
    elif feature == "unmeasured":
        jobs = jobs.with_columns(power_w=np.full(len(jobs), np.nan))
    elif feature == "import_limit":
        site = replace(SITE, grid=replace(PRICE, import_limit_w=1e6, over_limit="hold"))
    return jobs.with_columns(recorded_wait_s=np.arange(float(len(jobs)))), cluster, site, rules


def run(name: str, feature: str, beside: str = "") -> Any:
    jobs, cluster, site, rules = question(feature)
    if beside:
        cluster = question(beside)[1]
    if name in OF_READY_JOBS and cluster.on_nodes and feature != "fixed":
        cluster = replace(cluster, powered=Capacity.constant(cluster.processors, cluster.gpus))
    elif name in OF_READY_JOBS and feature not in ("fixed", "unmeasured"):
        before, (jobs, cluster, _, with_pools) = jobs.preceding_job[:2], question("capacity")
        jobs = jobs.with_columns(preceding_job=np.append(before, np.zeros(len(jobs) - 2, np.int64)))
        rules = replace(with_pools, power_cap_w=rules.power_cap_w, dependencies=rules.dependencies)
    how: Any = scheduler(Next, backfill="easy") if name == "agent" else scheduler(name)
    if feature == "outages":
        how = DuringOutages(name, how, (OUTAGE,))
    return simulate(jobs, cluster, site, rules, how)


class Next:
    """The first waiting job is next."""

    def decide(self, view: View) -> Decision:
        return Start(0) if len(view.job_id) else Wait()


WALKED = (
    "nodes", "boots", "capacity", "gpus", "power_cap", "import_limit", "overhead", "storage", "follow", "pool",
    "fixed", "no_supply", "unmeasured", "outages",
)  # fmt: skip
PAIRS = [
    (kind, name, feature) for kind in ("policy", "backfilling") for name in capabilities().parts[kind]
    for feature in WALKED if not (name in OF_READY_JOBS and feature == "boots")  # nor does their machine
]  # fmt: skip


def ask_bound(jobs: Any, cluster: Any, site: Any, rules: Rules) -> None:
    """A bound, which the energy of a simulation must keep."""
    run = measure(simulate(jobs, cluster, site, rules, scheduler("fcfs+easy")))
    bound = oracle_bound(jobs, cluster, site, rules, latest_end_s=run.last_end_s)
    books = run.books_over(bound.first_submit_s, bound.latest_end_s)
    assert books is not None
    assert books.grid_j >= bound.brown_j * (1 - 1e-9)


def ask_fluid(jobs: Any, cluster: Any, site: Any, rules: Rules) -> None:
    """A bound of another kind, for pools that reject no job."""
    if rules.pools is not None:
        rules = replace(
            rules, pools=replace(rules.pools, waiting=0, largest_request=0, longest_request_s=0.0, end_s=0.0)
        )
    outcome = simulate(jobs, cluster, site, rules, scheduler("fcfs+easy"))
    within_s = max(0.0, float((outcome.end_s - jobs.submit_s - work_s(jobs, cluster, rules)).max()))
    bound = fluid_bound(jobs, cluster, site, rules, within_s=within_s)
    assert books(outcome, bound.first_s, bound.last_s).grid_j >= bound.brown_kwh * 3.6e6


def ask_environment(jobs: Any, cluster: Any, site: Any, rules: Rules) -> None:
    """Windows of an environment."""
    where = replace(load_scenario("default"), workload=jobs, cluster=cluster, site=site, rules=rules)
    made = Simulations(where, scheduler("fcfs").program(jobs), 1, len(jobs), ())
    made.load(np.array([0]))


REFUSED = {
    ask_bound: {
        "nodes", "boots", "capacity", "gpus", "overhead", "storage", "follow", "no_supply", "unmeasured",
    },
    ask_fluid: {"follow", "no_supply", "unmeasured"},
    ask_environment: {"unmeasured"},
}  # fmt: skip
"""What refuses which features, by hand: a row that is lost would be a bound that does not hold."""


@pytest.mark.parametrize("feature", [*WALKED[:-1], "overhead", "storage", "follow", "speed"])
@pytest.mark.parametrize("ask", REFUSED)
def test_bounds_and_environments(ask: Any, feature: str) -> None:
    if feature not in REFUSED[ask]:
        ask(*question(feature))
        return
    with pytest.raises(InputError, match=r"\((bounds are for|use|set) "):
        ask(*question(feature))


def test_what_a_policy_says_it_knows_counts_wherever_it_is_asked() -> None:
    program = Program(name="mine", decider=CompiledPolicy(name="mine", begin=lambda *_: (), knows=("import_limit",)))
    assert first_no(parts_of(program), {"import_limit": True}, program.knows) is None
    assert first_no(parts_of(program), {"import_limit": True}) is not None


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published genetic algorithm, whose generations cannot be chosen by its name, has few of them."""
    monkeypatch.setattr("greenbatch.policies.published_genetic.GENERATIONS", 2)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("kind", "name", "feature"), PAIRS)
def test_each_yes_runs_and_each_no_is_refused(kind: str, name: str, feature: str) -> None:
    spelled = NAMES.get(name, name) if kind == "policy" else f"fcfs+{name}"
    no = capabilities().no("feature", "supply", feature) or capabilities().no(kind, name, feature)
    if no is not None:
        with pytest.raises(InputError, match=r"use |leave|set "):
            run(spelled, feature, no.beside)
        return
    outcome = run(spelled, feature)
    assert np.isfinite(outcome.start_s).any()


@pytest.mark.parametrize("name", sorted(name for name, entry in entries().items() if entry.built_in))
@pytest.mark.parametrize("part", ["easy", "conservative", "best-fit"])
def test_names_ask_for_no_more_than_a_policy_does(name: str, part: str) -> None:
    """A backfilling or a placement behind the name of a policy that has its own is refused before there are jobs."""
    feature = "placement" if part == "best-fit" else "backfilling"
    entry = entries()[name]
    noes = [capabilities().no("policy", entry.row, each) for each in (feature, part)]
    spelled = f"{name}+none+{part}" if feature == "placement" else f"{name}+{part}"
    if noes != [None, None]:
        with pytest.raises(InputError, match=r"use easy|use none|leave out"):
            scheduler(spelled)
    else:
        assert scheduler(spelled).name == spelled


def test_a_comparison_is_refused_before_any_scheduler_runs() -> None:
    jobs, cluster, site, rules = question("")
    where = replace(load_scenario("default"), workload=jobs, cluster=cluster, site=site, rules=rules)
    for names in (["fcfs+easy", "packer"], ["fcfs+easy", "fcfs+easy+charge"]):
        with pytest.raises(InputError, match=r"ready jobs|commands storage"):
            question_of({"": where}, names, (0,), 5, "fcfs+easy")


@pytest.mark.parametrize("policy", ["slurm-multifactor", "ga", "cheapest-start", "random", "nosuch", None])
def test_models_of_policies_take_neither_backfilling_nor_placement(policy: str | None) -> None:
    """Although the policy may, for its parameters were found without; an unknown one is refused where it is read."""
    made = preset("rare-plus").model_copy(update={"network": {"kind": "policy", "policy": policy}})
    for more in (asked("easy"), asked("none", "pack")):
        assert first_no(kinds_of(made), more) is not None
    assert first_no(kinds_of(made), asked("none")) is None
    row = dict(kinds_of(made)[:1])["policy"]
    assert row == {"random": "rule", "nosuch": "agent", None: "agent"}.get(policy, policy)


def test_a_scheduler_that_is_changed_is_asked_again() -> None:
    for name, backfilling in (("lptpn", "easy"), ("ga-published", "easy"), ("ga", "conservative")):
        with pytest.raises(InputError, match="backfilling"):
            replace(scheduler(name), backfill=backfilling)
    with pytest.raises(InputError, match="does not know easy backfilling"):
        prepare(*question(""), replace(scheduler("ga-published").program(question("")[0]), backfill="easy"))


def test_a_bound_knows_no_supply_of_ones_own() -> None:
    class Own(Site):
        """One that could have another power."""

    jobs, cluster, site, rules = question("")
    own = Own(**{each.name: getattr(site, each.name) for each in fields(site) if each.init})
    with pytest.raises(InputError, match="power supply of one's own"):
        oracle_bound(jobs, cluster, own, rules, latest_end_s=1e6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contention": "irmasim-v1"}, "contention: is irmasim-v1, which counts operations"),
    ],
)
def test_what_nodes_with_a_varying_capacity_do_not_know_yet(changes: dict[str, Any], message: str) -> None:
    """What is not simulated is refused, not left out."""
    jobs, nodes, site, rules = question("nodes")
    both = replace(nodes, powered=Capacity.constant(nodes.processors - 1, 0), **changes)
    with pytest.raises(InputError, match=message):
        simulate(jobs, both, site, rules, scheduler("fcfs"))


PRESETS = {"jobs": "gas-marl", "pairs": "ineps-plus", "ticks": "gas-marl", "image": "rare"}
"""Row of a preset -> a shipped one that shows that to its agent, or that can be made to."""


def agent(kind: str) -> Preset:
    made = preset(PRESETS[kind])
    if kind != "ticks":
        return made
    ahead = made.observation.supply.model_copy(update={"columns": (Column(feature="free_processors"),)})
    return made.model_copy(update={"observation": made.observation.model_copy(update={"supply": ahead})})


@pytest.mark.parametrize("kind", PRESETS)
@pytest.mark.parametrize("feature", ["pool", "nodes", "boots", "capacity", "gpus"])
def test_presets(kind: str, feature: str) -> None:
    jobs, cluster, site, rules = question("" if feature == "pool" else feature)
    where = replace(load_scenario("default"), workload=jobs, cluster=cluster, site=site or SITE, rules=rules)
    made = agent(kind)
    assert ("preset", kind) in kinds_of(made)
    given = {feature, *(() if feature in ("nodes", "boots") else ("pool",))}
    given |= {"fixed"} if cluster.powered is None else set()
    noes = [capabilities().no(*part, name) for part in kinds_of(made) for name in given]
    no = next((each for each in noes if each is not None), None)
    if no is None:
        assert resolve(made, where).name == made.name
        return
    with pytest.raises(InputError, match=r"chooses|sees what is powered"):
        resolve(made, where)


def test_every_predictor_has_a_row() -> None:
    assert set(capabilities().parts["predictor"]) == set(PREDICTOR_OF)


def test_every_policy_has_a_row() -> None:
    known, jobs = capabilities().parts["policy"], question("")[0]
    for name, entry in entries().items():
        if entry.built_in:
            program = scheduler(name).program(jobs)
            assert (program.row or (program.decider.name if program.decider else "rule")) in known, name
