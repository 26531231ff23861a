"""Machines: node groups, their processors, speed and power."""

from greenbatch.cluster.machines import Cluster, NodeGroup

__all__ = ["Cluster", "NodeGroup"]
