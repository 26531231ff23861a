"""Work distributed over processes of this machine or, with Ray, over several machines; results do not depend on it.

spread       the seam: items and a function -> each item with its result, as it completes
processes    processes of this machine
ray_cluster  machines of a Ray cluster
"""

from greenbatch.workers.ray_cluster import RayCluster
from greenbatch.workers.spread import WORTH_S, Workers, checked, choose, pool, several, spread, where

__all__ = ["WORTH_S", "RayCluster", "Workers", "checked", "choose", "pool", "several", "spread", "where"]
