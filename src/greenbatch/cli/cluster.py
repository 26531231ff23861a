"""``greenbatch cluster``: list node types, and show the cluster that a file describes."""

from __future__ import annotations

from pathlib import Path

import cyclopts

from greenbatch.cli.listing import print_entry, say

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
    for note in described.notes:
        say(f"note: {note}", indent=2)
