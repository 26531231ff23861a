"""Machines: node groups, their processors, speed and power; readers of platforms; a catalog of node types."""

from greenbatch.cluster.machines import Cluster, DvfsLevel, MemoryContention, NodeCluster, NodeGroup
from greenbatch.cluster.powered import Capacity, PoweredCluster

__all__ = ["Capacity", "Cluster", "DvfsLevel", "MemoryContention", "NodeCluster", "NodeGroup", "PoweredCluster"]
