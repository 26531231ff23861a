"""Schedulers by name: a rule, a planner or a trained model, with a backfilling and parameters."""

from greenbatch.schedulers.allowed import allow, allow_typed
from greenbatch.schedulers.build import (
    CHARGE_PARAMETERS,
    Decider,
    backfill_parameters,
    input_files,
    placement_parameters,
    scheduler,
    scheduler_table,
    source_texts,
)
from greenbatch.schedulers.during_outages import with_outages
from greenbatch.schedulers.registered import entries, names
from greenbatch.schedulers.syntax import split_schedulers

__all__ = [
    "CHARGE_PARAMETERS",
    "Decider",
    "allow",
    "allow_typed",
    "backfill_parameters",
    "entries",
    "input_files",
    "names",
    "placement_parameters",
    "scheduler",
    "scheduler_table",
    "source_texts",
    "split_schedulers",
    "with_outages",
]
