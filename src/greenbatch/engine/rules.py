"""The choices of the simulated batch system that change results, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Commitment = Literal["sticky", "reconsider"]
EventRule = Literal["per_event", "per_instant"]
Overrun = Literal["kill", "extend"]
Ties = Literal["arrival_first", "completion_first"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the batch system reacts; defaults are for users, papers' scenarios set their own."""

    commitment: Commitment = "reconsider"
    """``sticky``: once picked, a job holds the head of the line until it starts (SchedGym, GAS-MARL);
    ``reconsider``: the queue is ranked anew at every event."""
    event_rule: EventRule = "per_event"
    """A scheduling pass after each single event, or after all events of one instant."""
    ties: Ties = "arrival_first"
    """What comes first when a job arrives in the instant in which another ends."""
    overrun: Overrun = "kill"
    """A job that exceeds its requested time is killed there, or runs on."""
    tick_s: float = 0.0
    """Extra scheduling passes every so many seconds while jobs wait; 0 for none. [s]"""
