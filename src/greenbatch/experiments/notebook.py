"""`simulate` and `compare` for scripts and notebooks: names in, results that show themselves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from warnings import warn

from greenbatch.display import Shown, to_pandas, windows_fact
from greenbatch.engine.outcome import Outcome as PlainOutcome
from greenbatch.errors import InputError
from greenbatch.experiments.running.compare import Comparison as PlainComparison
from greenbatch.experiments.running.compare import choose_baseline, choose_windows
from greenbatch.experiments.running.compare import compare as run_all
from greenbatch.experiments.running.sweep import Sweep as PlainSweep
from greenbatch.notes import warnings_fact
from greenbatch.workers import Workers

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

    from greenbatch.experiments.reports.columns import Column
    from greenbatch.experiments.reports.means import Means
    from greenbatch.notes import Note
    from greenbatch.scenarios import Scenario
    from greenbatch.schedulers import Decider


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Outcome(PlainOutcome, Shown):
    """Schedule and power of one run. Arrays over jobs follow ``workload``'s rows, shape (n,)."""

    @classmethod
    def of(cls, plain: PlainOutcome) -> Outcome:
        """The outcome of the engine, with the methods below."""
        return cls(**_values(plain))

    def _facts(self) -> dict[str, str]:
        from greenbatch.metrics import METRICS, measure

        run = measure(self)
        makespan_s, wait_s, slowdown = (
            METRICS[name].function(run) for name in ("makespan_s", "avg_wait_s", "avg_bounded_slowdown")
        )
        return {
            "scheduler": self.scheduler,
            **warnings_fact(self.workload.notes, "workload.notes"),
            "jobs": f"{len(self.workload):,} of {self.workload.name}",
            "makespan": f"{makespan_s / 86_400:,.2f} d",
            "mean wait": f"{wait_s / 3600:,.2f} h",
            "mean bounded slowdown": f"{slowdown:,.4g}",
        } | ({"killed": f"{self.killed:,}"} if self.killed else {})

    def plot(self, kind: str) -> Figure:
        """Draw a plot of the report as a Matplotlib figure, which notebooks display.

        Args:
            kind: ``power`` (load and supply), ``queue``, or ``schedule`` (jobs by processor).

        Raises:
            InputError: no such plot exists, or data it requires is missing.
        """
        from greenbatch.experiments.reports.pictures import plot_outcome

        return plot_outcome(self, kind)

    def frame(self) -> polars.DataFrame:
        """The schedule as a polars data frame, one row per job.

        Columns: ``job_id``, ``submit_s``, ``start_s``, ``end_s`` and ``wait_s`` [s], ``processors``, ``power_w``, the
        power of the running job above idle [W], and ``energy_j``, its energy with its part of the static power of its
        nodes [J]; powers and energies are NaN if unknown. Where the capacity follows the power also ``state``,
        ``suspensions``, ``value`` and ``spans``; then starts and ends are NaN where a job did not start or end.
        """
        import polars

        from greenbatch.experiments.reports.outputs import stays_columns
        from greenbatch.metrics.jobs import energy_j

        jobs = self.workload
        found = polars.DataFrame(
            {
                "job_id": jobs.job_id, "submit_s": jobs.submit_s, "start_s": self.start_s, "end_s": self.end_s,
                "wait_s": self.start_s - jobs.submit_s, "processors": jobs.processors, "power_w": jobs.power_w,
                "energy_j": energy_j(self),
            }
        )  # fmt: skip
        return found if self.stays is None else found.with_columns(**stays_columns(self))

    def nodes(self) -> polars.DataFrame:
        """The nodes as a polars data frame, one row each; a pool is one node.

        Columns: ``node``, ``group``, ``jobs``, ``busy_processor_h`` [h], and ``idle_kwh``, ``static_kwh`` and
        ``dynamic_kwh`` from the first start to the last end, null where the power of a job is unknown [kWh].
        """
        from greenbatch.experiments.reports.outputs import nodes_table
        from greenbatch.metrics.energy_use import energy_use

        return nodes_table(energy_use(self))

    def to_pandas(self) -> pandas.DataFrame:
        """The schedule as a pandas data frame.

        Raises:
            InputError: pandas is not installed.
        """
        return to_pandas(self.frame())


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Comparison(PlainComparison, Shown):
    """All metrics of all schedulers on all windows, and the outcomes of one example window."""

    example: Mapping[str, Outcome]
    """Outcomes of the first window."""

    @classmethod
    def of(cls, plain: PlainComparison) -> Comparison:
        """The comparison, with the methods below."""
        example = {name: Outcome.of(outcome) for name, outcome in plain.example.items()}
        return cls(**{**_values(plain), "example": example})

    def _facts(self) -> dict[str, str]:
        return {
            "scenario": self.scenario.name,
            **warnings_fact(self.warnings),
            "windows": windows_fact(len(self.starts), self.jobs),
            "baseline": self.baseline,
            "schedulers": ", ".join(self.schedulers),
        }

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is to be known before the figures are used, by consequence: on the data, windows, models and figures."""
        from greenbatch.experiments.reports.notes import notes_of

        return notes_of(self)

    def table(self) -> Means:
        """Table of means over the windows with 95% intervals; its ``frame()`` returns the numbers."""
        from greenbatch.experiments.reports.means import means

        return means(self)

    def plot(self, kind: str, of: str | None = None) -> Figure:
        """A picture of the report as a Matplotlib figure, displayed by notebooks.

        Args:
            kind: ``tradeoff`` (what is gained against the mean wait), ``radar`` (several metrics at once), ``spread``
                (a metric over the windows), ``queue``, ``power`` (against supply) or ``schedule`` (which processors ran
                what); the last three show the first window.
            of: the metric of ``spread``, the scheduler of ``power`` or ``schedule``; the first one if not given.

        Raises:
            InputError: the picture does not exist or cannot be drawn for this comparison.
        """
        from greenbatch.experiments.reports.pictures import plot_comparison

        return plot_comparison(self, kind, of)

    def report(self, path: str | Path) -> Path:
        """Write the report of ``greenbatch compare`` as one HTML file, replacing an earlier one.

        Args:
            path: the file, or a folder for ``report.html``.

        Returns:
            Path of the file.

        Raises:
            InputError: the file cannot be written.
        """
        from greenbatch.experiments.reports.report import report_comparison
        from greenbatch.provenance import provenance
        from greenbatch.scenarios.sources import sources
        from greenbatch.schedulers import input_files

        file = Path(path) / "report.html" if Path(path).is_dir() else Path(path)
        record = provenance(
            **sources(self.scenario, input_files(self.deciders.values())),
            settings={
                "schedulers": list(self.schedulers), "rules": dict(self.rules), "baseline": self.baseline,
                "starts": list(self.starts), "jobs": self.jobs,
            },
        )  # fmt: skip
        report_comparison(file, self, command="in Python", provenance=record)
        return file

    def to_pandas(self) -> pandas.DataFrame:
        """The tidy frame (window, scheduler, metric, value) as a pandas data frame.

        Raises:
            InputError: pandas is not installed.
        """
        return to_pandas(self.frame)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Sweep(PlainSweep, Shown):
    """One comparison per value of a key of the scenario."""

    comparisons: Mapping[str, Comparison]
    """Text of each value -> the comparison."""

    @classmethod
    def of(cls, plain: PlainSweep) -> Sweep:
        """The sweep, with the methods below."""
        return cls(setting=plain.setting, comparisons={k: Comparison.of(v) for k, v in plain.comparisons.items()})

    def _facts(self) -> dict[str, str]:
        return {
            "key": self.setting.key,
            "values": ", ".join(self.comparisons),
            "windows": windows_fact(len(self.first.starts), self.first.jobs),
            "schedulers": ", ".join(self.schedulers),
        }

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes of all comparisons, with the values that they are about if these are not all."""
        from greenbatch.experiments.reports.notes import notes_of_sweep

        return notes_of_sweep(self)

    def _column(self, metric: str) -> Column:
        from greenbatch.experiments.reports.sweeps import sweep_columns

        known = {column.metric: column for column in sweep_columns(self)}
        if metric not in known:
            raise InputError(f"there is no figure of {metric!r}", field="metric", fix="use " + ", ".join(known))
        return known[metric]

    def table(self, metric: str = "renewable_utilization") -> Means:
        """Means of a metric with 95% intervals by scheduler and value.

        Its ``frame()`` has the columns scheduler, metric, value (the text), mean, low, high, windows.

        Raises:
            InputError: the metric is not one of the main table's, or has no value.
        """
        from greenbatch.experiments.reports.sweeps import sweep_means

        return sweep_means(self, self._column(metric))

    def plot(self, metric: str = "renewable_utilization") -> Figure:
        """A metric against the value, one line per scheduler, as a Matplotlib figure.

        Raises:
            InputError: the metric is not one of the main table's, or has no value.
        """
        from greenbatch.experiments.reports.sweeps import sweep_plot

        return sweep_plot(self, self._column(metric)).figure

    def to_pandas(self) -> pandas.DataFrame:
        """The tidy frame (the key, window, scheduler, metric, value) as a pandas data frame.

        Raises:
            InputError: pandas is not installed.
        """
        return to_pandas(self.frame)


def _values(made: Any) -> dict[str, Any]:
    """Field -> value of a dataclass."""
    return {field.name: getattr(made, field.name) for field in fields(made)}


def simulate(
    scenario: Scenario | str | Path, scheduler: Decider, *, start: int = 0, jobs: int | None = None
) -> Outcome:
    """Simulate a scheduler on a window of a scenario.

    Args:
        scenario: the scenario, or its name or file.
        scheduler: ``policy+backfill``, a rule function or policy of your own, or the result of
            `greenbatch.scheduler`, which adds a backfilling to one.
        start: 0-based index of the first job, after filtering, in order of job id.
        jobs: number of jobs, >= 1; by default all remaining ones.

    Raises:
        InputError: an unknown name, an object that is not a scheduler, a window beyond the trace, or another argument
            that cannot be used.
        SupplyExhausted: the simulation ran past the end of the power series, and the site does not repeat it.

    Warns:
        ModelWarning: the scheduler is a trained model, and its figures need a caveat.
    """
    from greenbatch.engine.simulate import simulate as run
    from greenbatch.experiments.running.model_warnings import ModelWarning, model_warnings
    from greenbatch.schedulers import allow_typed, scheduler_table

    question = _scenario(scenario)
    allow_typed([scheduler])
    deciders = scheduler_table([scheduler])
    (decider,), window = deciders.values(), question.window(start, jobs)
    outcome = Outcome.of(run(window, question.cluster, question.site, question.rules, decider))
    for note in model_warnings(deciders, question, [start], len(window)):
        warn(str(note), ModelWarning, stacklevel=2)
    return outcome


@overload
def compare(
    scenario: Scenario | str | Path,
    schedulers: Iterable[Decider] | Mapping[str, Decider] | Decider | None = None,
    *,
    starts: Iterable[int] | None = None,
    jobs: int | None = None,
    windows: int | None = None,
    seed: int | None = None,
    baseline: str | None = None,
    workers: Workers | None = None,
    outages: bool = False,
    sweep: None = None,
) -> Comparison: ...
@overload
def compare(
    scenario: Scenario | str | Path,
    schedulers: Iterable[Decider] | Mapping[str, Decider] | Decider | None = None,
    *,
    starts: Iterable[int] | None = None,
    jobs: int | None = None,
    windows: int | None = None,
    seed: int | None = None,
    baseline: str | None = None,
    workers: Workers | None = None,
    outages: bool = False,
    sweep: Mapping[str, Sequence[Any]],
) -> Sweep: ...
def compare(
    scenario: Scenario | str | Path,
    schedulers: Iterable[Decider] | Mapping[str, Decider] | Decider | None = None,
    *,
    starts: Iterable[int] | None = None,
    jobs: int | None = None,
    windows: int | None = None,
    seed: int | None = None,
    baseline: str | None = None,
    workers: Workers | None = None,
    outages: bool = False,
    sweep: Mapping[str, Sequence[Any]] | None = None,
) -> Comparison | Sweep:
    """Compare schedulers on the same windows. Defaults are taken from the scenario.

    Args:
        scenario: the scenario, or its name or file.
        schedulers: names, each ``policy+backfill``, and rule functions or policies of your own, which keep their names;
            a mapping gives other names. By default the scenario's.
        starts: 0-based index of the first job of each window; by default the scenario's windows.
        jobs: jobs per window, >= 1.
        windows: number of random windows, >= 1, instead of the scenario's own.
        seed: seed of random windows, >= 0.
        baseline: the scheduler that the others are compared with; by default the scenario's, or the first.
        workers: number of processes that simulate windows, >= 1; by default one per processor if the work is long. The
            results do not depend on it. Use 1 to see what a rule or policy prints or collects.
        outages: also simulate every scheduler with the outages that the record shows, as ``NAME with outages``.
        sweep: a key of the scenario and its values, such as ``{"forecast.sigma": [0, 0.4]}``: compare for each of them
            and return a `Sweep`. The scenario must be a name or a file; windows are those of the first value.

    Raises:
        InputError: an unknown name, no scheduler, two of one name, an object that is not a scheduler, a window beyond
            the trace, or another argument that cannot be used.
        SupplyExhausted: a simulation ran past the end of the power series, and the site does not repeat it.
        KeyboardInterrupt: interrupted with Ctrl-C; nothing is returned.
    """
    from greenbatch.schedulers import allow_typed, scheduler_table, with_outages
    from greenbatch.workload import outages as recorded_outages

    schedulers = list(schedulers) if isinstance(schedulers, Iterator) else schedulers
    allow_typed(schedulers)
    if sweep is not None:
        if outages:
            raise InputError("cannot be combined yet", field="sweep and outages", fix="give one or the other")
        given = {"starts": starts, "jobs": jobs, "windows": windows, "seed": seed}
        return _swept(scenario, schedulers, given, sweep, baseline, workers)
    question = _scenario(scenario)
    deciders = scheduler_table(question.evaluation.schedulers if schedulers is None else schedulers)
    first, length = choose_windows(question, starts=starts, windows=windows, jobs=jobs, seed=seed)
    chosen = choose_baseline(question, tuple(deciders), baseline)
    if outages:
        deciders = with_outages(deciders, tuple(recorded_outages(question.workload)))
    return Comparison.of(run_all(question, deciders, first, length, chosen, workers=workers))


def _swept(
    scenario: Scenario | str | Path, schedulers: Any, given: dict[str, Any], keys: Mapping[str, Sequence[Any]],
    baseline: str | None, workers: Workers | None,
) -> Sweep:  # fmt: skip
    from greenbatch.experiments.running.sweep import setting, sweep
    from greenbatch.scenarios import Scenario, load_scenario
    from greenbatch.schedulers import scheduler_table

    if isinstance(scenario, Scenario):
        raise InputError("is already loaded", field="scenario", fix="give its name or its file to sweep a key of it")
    if not isinstance(keys, Mapping) or len(keys) != 1:
        raise InputError(f"is {keys!r:.60}", field="sweep", fix='give one key, such as {"forecast.sigma": [0, 0.4]}')
    ((key, values),) = keys.items()
    chosen = setting(key, values)
    questions: dict[str, Scenario] = {}
    for text in chosen.values:
        like = next(iter(questions.values()), None)
        questions[text] = load_scenario(scenario, overrides=chosen.overrides(text), like=like)
    question = next(iter(questions.values()))
    deciders = scheduler_table(question.evaluation.schedulers if schedulers is None else schedulers)
    first, length = choose_windows(question, **given)
    base = choose_baseline(question, tuple(deciders), baseline)
    return Sweep.of(sweep(chosen, questions, deciders, first, length, base, workers=workers))


def _scenario(given: Scenario | str | Path) -> Scenario:
    from greenbatch.scenarios import Scenario, load_scenario

    return given if isinstance(given, Scenario) else load_scenario(given)
