"""Machines: node groups, their processors, speed and power; readers of platforms; a catalog of node types."""

from greenbatch.cluster.machines import Cluster, DvfsLevel, MemoryContention, NodeCluster, NodeGroup

__all__ = ["Cluster", "DvfsLevel", "MemoryContention", "NodeCluster", "NodeGroup"]
