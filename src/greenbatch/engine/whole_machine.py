"""What the engine asks of a machine that needs the whole state for it: to follow the power, and to suspend jobs.

The rest is in `machine.protocol`, on which the state depends. By default, nothing happens.
"""

from __future__ import annotations

from greenbatch.engine.machine.protocol import Machine
from greenbatch.engine.state import State
from greenbatch.engine.variants import variant


@variant(default=True, inlined=False)
def follow(machine: Machine, s: State) -> None:
    """Bring the machine up to date after the events of an instant: power, suspended jobs; ``s`` is the state."""
    return


@variant(default=True, inlined=False)
def make_room(machine: Machine, s: State, position: int) -> bool:
    """Suspend a running job of less value for the job at a queue position, if that lets it start; whether it did."""
    return False


@variant(default=True, inlined=False)
def suspend_by_choice(machine: Machine, s: State) -> bool:
    """Suspend a running job because the policy says so; whether there is one that it may suspend."""
    return False


@variant(default=True, inlined=False)
def may_suspend(machine: Machine, s: State) -> bool:
    """Whether a policy may suspend a running job now; ``s`` is the state."""
    return False
