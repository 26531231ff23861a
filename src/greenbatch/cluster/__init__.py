"""Machines: node groups, their processors, speed and power; readers of platforms; a catalog of node types."""

from greenbatch.cluster.capacity import Capacity
from greenbatch.cluster.cluster import Cluster
from greenbatch.cluster.node_group import DvfsLevel, MemoryContention, NodeGroup

__all__ = ["Capacity", "Cluster", "DvfsLevel", "MemoryContention", "NodeGroup"]
