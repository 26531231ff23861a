"""Machines: node groups, their processors, speed and power; readers of platforms; a catalog of node types."""

from greenbatch.cluster.machines import Cluster, MemoryContention, NodeCluster, NodeGroup

__all__ = ["Cluster", "MemoryContention", "NodeCluster", "NodeGroup"]
