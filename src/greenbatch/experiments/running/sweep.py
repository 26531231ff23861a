"""Compare the same schedulers on the same windows while one key of the scenario takes several values."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError, Interrupted
from greenbatch.experiments.running.cells import Cell, Figures, Progress, play, windows_of
from greenbatch.experiments.running.compare import Comparison, Keep, comparison_of, question_of, warnings_of
from greenbatch.notes import Note, ordered
from greenbatch.workers import Workers, checked

if TYPE_CHECKING:
    import polars

    from greenbatch.scenarios import Scenario
    from greenbatch.schedulers import Decider

SHORT = {"forecast": "site.forecast"}
"""First part of a key -> what it is short for."""
_OF_COMPARISON = ("name", "description", "evaluation")
_SWEPT_ANYWAY = ("evaluation.horizon", "evaluation.cut.")
MOST_VALUES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A key of a scenario and the values that it takes.

    Raises:
        InputError: there is no value, one is given twice, there are very many, or the key is one of the comparison
            rather than of what is compared.
    """

    key: str
    """The dotted key, in full."""
    values: Mapping[str, Any]
    """Text of each value, as in tables -> the value."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.values) <= MOST_VALUES:
            raise InputError(f"has {len(self.values)} values", field="sweep", fix=f"give 1 to {MOST_VALUES}")
        if self.key.partition(".")[0] in _OF_COMPARISON and not self.key.startswith(_SWEPT_ANYWAY):
            fix = "choose a key of [workload], [cluster], [site] or [rules]"
            raise InputError(f"{self.key} cannot be swept, it is the same for all values", field="sweep", fix=fix)
        first: dict[Any, str] = {}
        for text, value in self.values.items():
            kind = value if self.numeric else (type(value), value)
            if (known := first.setdefault(kind, text)) != text:
                raise InputError(f"names one value twice, {known} and {text}", field="sweep", fix="give each once")

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers."""
        return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in self.values.values())

    def shown(self, text: str) -> Any:
        """A value as in the column of the results: a number if all are, else its text."""
        return self.values[text] if self.numeric else text

    def overrides(self, text: str) -> dict[str, Any]:
        """What `scenarios.load_scenario` overrides for a value."""
        return {self.key: self.values[text]}


def setting(key: str, values: Sequence[Any]) -> Setting:
    """A key, in full or short, and values of Python.

    Raises:
        InputError: see `Setting`, or a value occurs twice.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError(f"has {values!r:.60} for {key}", field="sweep", fix="give a list of values, such as [0, 0.4]")
    first, dot, rest = key.strip().partition(".")
    texts = [value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
             for value in values]  # fmt: skip
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise InputError(f"names the value {twice[0]} twice", field="sweep", fix="give each value once")
    return Setting(key=SHORT.get(first, first) + dot + rest, values=dict(zip(texts, values, strict=True)))


def read_setting(text: str) -> Setting:
    """A setting as on the command line, ``KEY=VALUE,VALUE,...``; values as in a scenario file, quotes may be left out.

    Raises:
        InputError: it has another form, or see `setting`.
    """
    key, equals, rest = text.partition("=")
    parts = [part.strip() for part in rest.split(",")]
    if not (key.strip() and equals) or "" in parts:
        raise InputError(f"is {text!r:.60}", field="--sweep", fix="give KEY=VALUE,VALUE, such as forecast.sigma=0,0.4")
    if twice := [part for part in parts if parts.count(part) > 1]:
        raise InputError(f"names the value {twice[0]} twice", field="--sweep", fix="give each value once")
    try:
        made = setting(key, parts)
        return Setting(key=made.key, values={part: _value(part) for part in parts})
    except InputError as error:
        raise InputError(error.problem, field="--sweep", fix=error.fix) from None


def _value(text: str) -> Any:
    """A value of TOML; anything else, and a date, is text."""
    try:
        found = tomllib.loads(f"value = {text}")
    except ValueError:
        return text
    value = found.get("value")
    return value if len(found) == 1 and isinstance(value, (bool, int, float, str)) else text


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Sweep:
    """One comparison per value of a key."""

    setting: Setting
    """The key and its values."""
    comparisons: Mapping[str, Comparison]
    """Text of each value with finished windows -> the comparison; the first alone has an example, so that memory does
    not grow with the number of values."""

    @property
    def first(self) -> Comparison:
        """The comparison of the first value."""
        return next(iter(self.comparisons.values()))

    @property
    def schedulers(self) -> tuple[str, ...]:
        """Names of the schedulers."""
        return self.first.schedulers

    @property
    def warnings(self) -> tuple[Note, ...]:
        """The warnings of all comparisons, each once."""
        return ordered(note for each in self.comparisons.values() for note in each.warnings)

    @property
    def frame(self) -> polars.DataFrame:
        """Tidy: a column with the name of the key, then window, scheduler, metric, value."""
        import polars

        kind = polars.Float64 if self.setting.numeric else polars.String
        parts = [
            each.frame.select(
                polars.lit(self.setting.shown(text), kind).alias(self.setting.key),
                polars.all(),
            )
            for text, each in self.comparisons.items()
        ]
        return polars.concat(parts)


def sweep(
    chosen: Setting,
    scenarios: Mapping[str, Scenario],
    schedulers: Iterable[Decider] | Mapping[str, Decider],
    starts: Sequence[int],
    jobs: int,
    baseline: str,
    progress: Progress | None = None,
    *,
    keep_finished: bool = False,
    finished: Mapping[Cell, Figures] | None = None,
    workers: Workers | None = None,
    keep: Keep = lambda *_: None,
) -> Sweep:
    """Simulate every scheduler on every window for every value, at once over all values.

    Args:
        chosen: the key and its values.
        scenarios: text of each value -> the scenario with it, see `Setting.overrides`.
        schedulers: see `compare.compare`.
        starts: first job of each window.
        jobs: length of the windows.
        baseline: the scheduler that the others are compared with.
        progress: called as by `compare.compare`, over all values.
        keep_finished: if the user interrupts, return the finished windows, if the first is among them.
        finished: figures of windows that need no simulation, see `compare.compare`.
        workers: see `compare.compare`.
        keep: called with the figures of each window that was simulated.

    Raises:
        InputError: a window extends beyond the trace of a value, or see `compare.compare`.
        KeyboardInterrupt: interrupted; the first window is not finished, or ``keep_finished`` is false.
    """
    question = question_of(scenarios, schedulers, starts, jobs, baseline)
    told = warnings_of(question, starts)
    cells = [Cell(text, start) for text in scenarios for start in starts]

    def tell(what: str, run: int, runs: int) -> None:
        if progress is not None:
            progress(f"{chosen.key}: {what}", run, runs)

    played = play(question, cells, tell, finished=finished, workers=checked(workers), keep=keep)
    if (stopped := played.interruption) is not None:
        if not keep_finished:
            raise stopped
        if cells[0] not in played.figures:
            nothing = "no value is finished, nothing is kept; repeat the command"
            raise Interrupted("what was finished before is kept as it is" if finished else nothing) from None
    found: dict[str, Comparison] = {}
    for text in scenarios:
        if windows := windows_of(played.figures, text, starts):
            partial = len(windows) < len(starts)
            made = comparison_of(question, text, windows, told[text], interrupted=partial)
            found[text] = replace(made, example={} if found else played.example)
    return Sweep(setting=chosen, comparisons=found)
