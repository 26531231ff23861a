"""Machines: node groups, their processors, speed and power."""

from greenbatch.cluster.machines import Cluster, MemoryContention, NodeCluster, NodeGroup

__all__ = ["Cluster", "MemoryContention", "NodeCluster", "NodeGroup"]
