"""A preset as the engine takes it: layout of observations and actions, and the program in which an agent decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from greenbatch.engine.codes import DELAY_FOR, DELAY_RELEASES, NO_DELAY
from greenbatch.engine.observe import features
from greenbatch.engine.observe.batch import Layout
from greenbatch.engine.observe.reward_terms import codes_of
from greenbatch.engine.program import BACKFILLS, Program, beside
from greenbatch.engine.records import Column as Normalized
from greenbatch.engine.records import Delay, dtype_of, with_attributes
from greenbatch.errors import InputError
from greenbatch.presets.preset import Column, Preset, kinds_of, queue_codes

_DELAYS = {"none": NO_DELAY, "releases": DELAY_RELEASES, "seconds": DELAY_FOR}


def layout_of(preset: Preset) -> Layout:
    """Layout of a preset's observations and actions.

    Raises:
        InputError: a normalizer still depends on a scenario; resolve the preset first.
    """
    seen, action = preset.observation, preset.action
    return Layout(
        queue=_columns(seen.queue.columns, queue_codes(per_node=seen.queue.per_node)),
        running=_columns(seen.running.columns, _codes(features.RUNNING_FEATURES)),
        supply=_columns(seen.supply.columns, _codes(features.SUPPLY_FEATURES)),
        state=_columns(seen.state.columns, _codes(features.STATE_FEATURES)),
        delays=_records([(_DELAYS[delay.kind], delay.amount) for delay in action.delays], dtype_of(Delay)),
        terms=codes_of(preset.reward.terms),
        queue_rows=seen.queue.rows,
        running_rows=seen.running.rows,
        supply_rows=seen.supply.rows,
        attributes=int(
            any(c.feature in features.FROM_ATTRIBUTES for c in (*seen.queue.columns, *seen.running.columns))
        ),
        suspend=int(action.suspend),
        wait=int(action.wait),
        only_fitting=int(action.only_fitting),
        per_node=int(seen.queue.per_node),
        image_ticks=seen.image.ticks,
        image_gpus=seen.image.gpus,
        longest_hold_s=action.longest_hold_s,
    )


def program_of(made: Preset, backfill: str | None) -> Program:
    """The engine program in which an agent decides; run times are predicted only if it sees predictions.

    Raises:
        InputError: the backfilling, or the placement behind it, is unknown.
    """
    chosen, placement = beside(made.backfill if backfill is None else backfill)
    if chosen not in BACKFILLS:
        known = ", ".join(BACKFILLS)
        raise InputError(f"is {chosen!r}", field="backfill", fix=f"give one of {known}")
    sees = any(column.feature in features.FROM_PREDICTIONS for column in made.observation.queue.columns)
    return Program(
        name=made.name, backfill=chosen, placement=placement or "first", settings=dict(made.settings),
        parts=tuple(kinds_of(made)), predictor=None if sees else "requested",
    )  # fmt: skip


def _records(rows: list[Any], dtype: np.dtype[Any]) -> Any:
    return with_attributes(np.array(rows, dtype))


def _codes(known: Mapping[str, Any]) -> dict[str, int]:
    return {name: code for code, name in enumerate(known)}


def _columns(columns: Iterable[Column], codes: Mapping[str, int]) -> Any:
    rows = []
    for column in columns:
        if isinstance(column.scale, str):
            fix = "resolve the preset for a scenario first"
            raise InputError(f"the scale {column.scale} is not a number yet", field=column.feature, fix=fix)
        rows.append((codes[column.feature], column.scale, column.floor, column.ceiling, int(column.log)))
    return _records(rows, dtype_of(Normalized))
