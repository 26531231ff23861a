"""``greenbatch cluster``: list node types, and show the cluster that a file describes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import cyclopts

from greenbatch.cli.listing import print_entry, say
from greenbatch.notes import ordered

if TYPE_CHECKING:
    from greenbatch.cluster.priority import Priority

INDENT = 26
cluster = cyclopts.App(name="cluster", help="List node types, and show the cluster that a file describes.")


@cluster.command(name="list")
def list_() -> None:
    """Print the node types of the catalog: cores, idle and full power, and the record of the measurement."""
    from greenbatch.cluster.catalog import node_types

    for name, kind in node_types().items():
        figures = f"{kind.processors} cores, {kind.idle_w:g} W idle, {kind.full_w:g} W full"
        print_entry(name, f"{kind.description}: {figures} ({kind.record})", column=INDENT)


@cluster.command
def show(file: Path) -> None:
    """Print the nodes that a file describes, group by group, and what is unknown about them.

    Parameters
    ----------
    file
        A slurm.conf, a platform JSON or node groups in TOML.
    """
    from greenbatch.scenarios.build_nodes import read_nodes

    described = read_nodes(file)
    nodes = sum(group.count for group in described.groups)
    print(f"{nodes:,} nodes, {described.processors:,} processors, {described.idle_power_w:,.0f} W idle")
    for group in described.groups:
        facts = [f"{group.count:,} x {group.processors} processors"]
        facts += [f"{group.gpus} GPUs"] * (group.gpus > 0)
        facts += [f"{group.memory_gb:g} GB"] * (group.memory_gb < float("inf"))
        facts += [f"speed {group.speed:.4g}", f"{group.idle_power_w:g} W idle, {group.static_power_w:g} W on"]
        facts += [f"{group.power_per_processor_w:g} W per busy processor"]
        facts += [f"partitions {', '.join(group.partitions)}"] * bool(group.partitions)
        print_entry(f"  {group.name}", "; ".join(facts), column=INDENT)
    for number, level in enumerate(described.dvfs, start=1):
        print_entry(f"  DVFS level {number}", f"{level.speed:.4g} x speed, {level.power:.4g} x power", column=INDENT)
    if described.priority is not None:
        print_entry("  priority", _weights(described.priority), column=INDENT)
    for note in ordered(described.notes):
        say(f"note: {note}", indent=2)


def _weights(priority: Priority) -> str:
    """What ``slurm-multifactor`` takes from a ``slurm.conf``, by the names of its parameters."""
    weights = priority.weights
    named = {"age": weights.age, "fairshare": weights.fair_share, "size": weights.job_size,
             "partition": weights.partition}  # fmt: skip
    found = " ".join(f"{name}={value}" for name, value in named.items() if value) or "no weights"
    tiers = [f"{each.name} {each.tier}" for each in priority.partitions if each.tier != 1]
    told = f"{found} (what slurm-multifactor takes by default)"
    told += f"; tiers: {', '.join(tiers)}, others 1" * bool(tiers)
    return told + "; the weight of QOS is not considered" * bool(weights.qos)
