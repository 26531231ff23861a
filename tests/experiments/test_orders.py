"""InEPS: trained on one workload, tested on orders of others beside every fixed rule."""

# ruff: noqa: RUF001 - tables have typographic dashes.

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from greenbatch.cli import main, reproduce_orders
from greenbatch.cli.reproduce_trained import TrainingFlags
from greenbatch.engine.machine.placement import PLACEMENTS
from greenbatch.errors import InputError
from greenbatch.experiments.papers import order_results
from greenbatch.experiments.papers.fixed_rules import SEEDS, fixed_rules
from greenbatch.experiments.papers.ineps_tables import all_tables, answers, reduction, table_7, trial_table
from greenbatch.experiments.papers.order_results import UNTRAINED, Contender, TrialResult
from greenbatch.experiments.papers.order_studies import ORDER_STUDIES, OrderStudy, order_cells
from greenbatch.experiments.papers.orders import ORDERS, in_order, play
from greenbatch.experiments.papers.protocols import PROTOCOLS
from greenbatch.experiments.papers.studies import Budget, plan_of
from greenbatch.metrics import evaluate
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler

INEPS = ORDER_STUDIES["ineps"]
FEW_RULES = {name: (name,) for name in ("fcfs+first-fit+low-energy", "min-min")}
TRIAL = next(trial for trial in INEPS.trials if trial.name == "Memory-intensive as worded")
PAPER_RULES = ("first-high_gflops", "first-high_cores", "first-high_mem_bw")
ENERGY = next(variant for variant in INEPS.variants if variant.agent.preset == "ineps-plus")


# ---------------------------------------------------------------- orders and rules


def test_orders_are_permutations_over_the_same_submissions() -> None:
    jobs = load_scenario("ineps/adaptability-memory").workload
    orders = [in_order(jobs, seed) for seed in ORDERS]
    for order in orders:
        np.testing.assert_array_equal(order.submit_s, jobs.submit_s)
        np.testing.assert_array_equal(order.job_id, jobs.job_id)
        for kind in np.unique(jobs.executable):
            ours, theirs = order.take(order.executable == kind), jobs.take(jobs.executable == kind)
            assert len(ours) == len(theirs)
            for column in ("run_time_s", "processors", "memory_volume_mb", "requested_time_s"):
                assert set(getattr(ours, column)) == set(getattr(theirs, column)), column
    assert len({order.executable.tobytes() for order in [jobs, *orders]}) == len(ORDERS) + 1
    assert all((in_order(jobs, s).executable == o.executable).all() for s, o in zip(ORDERS, orders, strict=True))


def test_an_order_is_not_that_of_a_scenario_s_shuffle_of_the_same_seed() -> None:
    jobs = load_scenario("ineps/adaptability-memory").workload
    shuffled = jobs.executable.copy()
    np.random.default_rng(1000).shuffle(shuffled)
    permuted = jobs.executable[np.random.default_rng(1000).permutation(len(jobs))]
    order = in_order(jobs, 1000).executable
    assert (order != shuffled).any()
    assert (order != permuted).any()


def test_the_fixed_rules_are_all_combinations() -> None:
    rules = fixed_rules()
    specs = [spec for several in rules.values() for spec in several]
    assert len(rules) == (8 * 3 + 1) * len(PLACEMENTS) + 12 + 2
    assert len(set(specs)) == len(specs)
    for name in ("fcfs+none+high-gflops", "low-mem-ops+easy+pack", "fcfs+easy-irmasim+low-edp", "max-min",
                 "eq1:metric=timetasks:jobs=highest:nodes=lowest", "random+first-fit+random"):  # fmt: skip
        assert name in rules
    assert rules["random+easy+first"] == tuple(f"random:seed={k}+easy+first" for k in range(SEEDS))
    assert rules["sjf+none+random"] == tuple(f"sjf+none+random:seed={k}" for k in range(SEEDS))
    assert len({scheduler(spec).name for spec in specs}) == len(specs)  # all are known


def test_figures_are_the_metrics_of_each_order() -> None:
    from greenbatch.engine.simulate import simulate

    scenario, names = TRIAL.load(), ("fcfs+first-fit+high-cores", "min-min")
    found = play(scenario, {name: scheduler(name) for name in names}, (1000, 1001), workers=1)
    for name, figures in found.items():
        for seed, (energy_kwh, edp_js) in zip((1000, 1001), figures, strict=True):
            jobs = in_order(scenario.workload, seed)
            ran = evaluate(simulate(jobs, scenario.cluster, scenario.site, scenario.rules, scheduler(name)))
            assert energy_kwh == ran["energy_kwh"]
            assert edp_js == ran["edp_js"]
    assert not np.array_equal(found["min-min"][0], found["min-min"][1])


# ---------------------------------------------------------------- study


def test_cells_have_folders_of_their_own_and_the_paper_s_rewards() -> None:
    cells = order_cells(INEPS)
    assert len({cell.folder for cell in cells}) == len(cells) == 4 * 4 * 5
    paper = {cell.goal.name: plan_of(cell, load_scenario(INEPS.traces[cell.trace]), Budget()) for cell in cells
             if cell.agent.preset == "ineps" and cell.trace == "Adaptability"}  # fmt: skip
    assert dict(paper["edp"].preset.reward.terms) == {"energy_kwh": 0.0, "edp_steps_js": -1.0}
    assert paper["energy"].preset.reward.terms["energy_kwh"] == -1.0
    for plan in paper.values():
        assert (plan.settings.windows, plan.settings.jobs, plan.settings.minibatch) == (3, 50, 25)
    lengths = {cell.agent.preset: plan_of(cell, load_scenario(INEPS.traces[cell.trace]), Budget()).settings.jobs
               for cell in cells if cell.trace == "Convergence"}  # fmt: skip
    assert lengths == {"ineps": 90, "ineps-plus": 100, "ineps-plus-edp": 100}


def test_the_training_workload_has_many_orders_of_the_same_jobs() -> None:
    test, train = (load_scenario(f"ineps/{name}") for name in ("convergence", "convergence-mixed"))
    assert len(train.workload) == 10 * len(test.workload)
    assert [int((train.workload.executable == k).sum()) for k in range(3)] == [600] * 3
    assert train.cluster == test.cluster
    windows = {train.window(start, 180).executable.tobytes() for start in range(180, 1600)}
    assert len(windows) == 1420


def test_platforms_of_tests_have_the_nodes_that_their_names_say() -> None:
    nodes = {trial.name: [(g.name, g.count) for g in trial.load().cluster.groups] for trial in INEPS.trials}  # type: ignore[union-attr]
    assert nodes["Memory-intensive as worded"] == [("type0", 10), ("type3", 2)]
    assert nodes["Mixed, twice the nodes"] == [("type0", 20), ("type3", 4)]
    assert nodes["Mixed, other nodes"] == [("type1", 5), ("type2", 3)]
    assert {trial.rules or trial.name for trial in INEPS.trials} <= set(PROTOCOLS["ineps"].traces)


# ---------------------------------------------------------------- tables


@pytest.fixture
def made_up() -> TrialResult:
    """Two rules of 2 and 3 kWh on average, an untrained agent as the worse one, and one of half the better one."""
    rule = np.array([[[1.0, 4e6], [3.0, 4e6]]])
    other = np.array([[[3.0, 2e6], [3.0, 2e6]]])
    agent = np.concatenate([rule * 0.5, rule * 0.52])
    figures = {"a": rule, "b": other, UNTRAINED: other, ENERGY.column: agent,
               **dict.fromkeys(PAPER_RULES, 2 * rule)}  # fmt: skip
    return TrialResult(
        study=INEPS, trial=TRIAL, orders=(0, 1), paper_rules=PAPER_RULES, fixed=("a", "b"), figures=figures,
        agents=(Contender(name=UNTRAINED, seeds=(0,)),
                Contender(name=ENERGY.column, variant=ENERGY, seeds=(0, 1), missing=(2,)),
                Contender(name="EDP InEPS plus", variant=INEPS.variants[-1], missing=(0,))),
    )  # fmt: skip


def test_ratios_are_to_the_best_rule_order_by_order(made_up: TrialResult) -> None:
    assert made_up.best_rule("energy_kwh") == "a"
    assert made_up.best_rule("edp_js") == "b"
    assert made_up.ratio(ENERGY.column, "energy_kwh").mean == pytest.approx(0.51)
    assert made_up.ratio(UNTRAINED, "energy_kwh").mean == pytest.approx((3 + 1) / 2)  # not 3 / 2, the ratio of means
    rows = dict(trial_table(made_up).rows)
    energy, ratio, *_ = rows[ENERGY.column]
    assert energy.text == "1.0200"
    assert (ratio.text, ratio.remark, ratio.mark) == ("0.510", "below 1", "best")
    assert rows["best fixed rule (Energy): a"][1].text == "1"
    assert rows["best fixed rule (EDP): b"][3].text == "1"
    assert rows[UNTRAINED][1].remark == rows[UNTRAINED][1].mark == ""
    assert [cell.text for cell in rows["EDP InEPS plus"]] == ["not trained", "–", "–", "–", "0 of 1"]
    assert rows[ENERGY.column][-1].text == "2 of 3"


def test_reductions_are_the_paper_s(made_up: TrialResult) -> None:
    assert reduction(made_up, ENERGY.column, "energy_kwh", "first-high_cores").mean == pytest.approx(74.5)
    table = table_7([made_up])
    assert table is not None
    cells = dict(table.rows)[f"{TRIAL.name}: {ENERGY.column}"]
    assert [cell.text for cell in cells[:3]] == ["75.0", "74.5", "74.0"]  # least energy, mean, most


def test_an_interval_that_reaches_1_is_not_below_it(made_up: TrialResult) -> None:
    near = {**made_up.figures, ENERGY.column: made_up.figures["a"] * np.array([0.9, 1.05])[:, None, None]}
    result = replace(made_up, figures=near)
    assert result.ratio(ENERGY.column, "energy_kwh").mean < 1.0
    assert dict(trial_table(result).rows)[ENERGY.column][1].mark == ""
    assert "within noise of the best fixed rule" in answers([result])[0]
    assert "less than the best fixed rule" in answers([made_up])[0]


def test_every_table_says_what_was_trained_tuned_and_tested(made_up: TrialResult) -> None:
    notes = trial_table(made_up).notes
    assert "Trained on windows of ineps/adaptability-mixed" in notes[0]
    assert "Tested on 2 random orders of the jobs of ineps/adaptability-memory" in notes[0]
    assert "in hindsight" in notes[1]
    assert [table.title for table in all_tables([made_up])] == [
        TRIAL.name, "InEPS plus: models for energy and for EDP",
        "Fig. 8, Memory-intensive: energy, reduction from first-high_gflops",
        "Table 7: energy, reduction from three rules",
    ]  # fmt: skip


# ---------------------------------------------------------------- end to end


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> OrderStudy:
    """Two tests of 30 jobs beside two fixed rules."""
    monkeypatch.setattr(order_results, "fixed_rules", lambda: FEW_RULES)
    kept, few = ("Computation-intensive as worded", "Mixed, other nodes"), {"workload.generator.jobs": 30}
    trials = (trial for trial in INEPS.trials if trial.name in kept)
    return replace(INEPS, trials=tuple(replace(trial, overrides={**trial.overrides, **few}) for trial in trials))


@pytest.mark.usefixtures("undrawn")
def test_training_tests_and_files(
    small: OrderStudy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    flags = TrainingFlags(
        traces="adaptability", presets="ineps-plus", seeds="0", epochs=1,
        overrides=["training.windows=2", "training.search.population=4"],
    )  # fmt: skip
    out = tmp_path / "out"
    given = {"json": False, "force": False, "orders": (1000, 1001)}
    reproduce_orders.reproduce_orders(small, flags, out=out, trained=None, **given)
    said = capsys.readouterr()
    assert said.err.count("trained adaptability/ineps-plus_none/published/seed-0") == 1
    assert "Mixed, other nodes" in said.out
    assert "as-published" not in said.out
    results = out / "results"
    assert {file.name for file in results.iterdir()} == {
        "rows.json", "results.parquet", "table.md", "report.html", "provenance.json",
    }  # fmt: skip
    rows = json.loads((results / "rows.json").read_text())
    agent = next(row for row in rows if row["scheduler"] == "Energy InEPS plus")
    assert agent["seeds"] == [0]
    assert np.shape(agent["figures"]["energy_kwh"]["values"]) == (1, 2)
    assert any(row["scheduler"] == UNTRAINED and row["figures"] for row in rows)
    frame = pl.read_parquet(results / "results.parquet")
    assert set(FEW_RULES) | {UNTRAINED, "Energy InEPS plus"} <= set(frame["scheduler"])
    page = (results / "report.html").read_text()
    assert "Trained on windows of ineps/adaptability-mixed" in page
    assert "Decisions of Energy InEPS plus, seed 0, on an order of Computation-intensive as worded" in page

    model = out / "adaptability/ineps-plus_none/published/seed-0/model/model.json"
    before = model.stat().st_mtime_ns, (results / "rows.json").read_bytes()
    reproduce_orders.reproduce_orders(small, flags, out=out, trained=None, **given)
    assert "trained " not in capsys.readouterr().err
    assert (model.stat().st_mtime_ns, (results / "rows.json").read_bytes()) == before

    again = TrainingFlags(seeds="0")
    reproduce_orders.reproduce_orders(small, again, out=None, trained=out, **{**given, "json": True})
    assert json.loads(capsys.readouterr().out) == rows


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--traces", "Lublin-1"), "--traces: 'Lublin-1' is not known"),
        (("--presets", "gas-marl"), "--presets: 'gas-marl' is not known"),
        (("--windows", "held-out"), "--windows: does not apply to ineps"),
        (("--goals", "energy"), "--goals: does not apply to ineps"),
        (("--seeds", "a"), "--seeds"),
    ],
)  # fmt: skip
def test_bad_flags_get_one_line(
    flags: tuple[str, ...], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "ineps", "--train", "--out", str(tmp_path / "out"), *flags]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert problem in lines[0]
    assert not (tmp_path / "out").exists()


def test_no_folder_of_trainings_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        reproduce_orders.reproduce_orders(
            INEPS, TrainingFlags(), out=None, trained=tmp_path / "none", json=False, force=False
        )
