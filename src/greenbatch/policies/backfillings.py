"""All kinds of backfilling by name: those around one blocked job, which the engine knows, and conservative."""

from __future__ import annotations

from greenbatch.engine.program import BACKFILL_MEANINGS

BACKFILLINGS: dict[str, str] = {
    **BACKFILL_MEANINGS,
    "conservative": "Every job gets a reservation at submission, and no reservation is moved later (Mu'alem & "
    "Feitelson 2001).",
}
"""Backfilling -> what may start ahead of a job that does not fit, with its source."""
