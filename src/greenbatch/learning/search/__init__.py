"""Evolutionary search for the weights of a planner or a ranking, without torch.

The main path, file by file::

    by_kind                which search
    loop                   generations of candidates, with the folder and guarantees of a training
      evolution              sampling and updating the distribution of candidates
    planner, ranking       objectives: the weights of the look-ahead planner, of a ranking
"""

from greenbatch.learning.search.by_kind import search

__all__ = ["search"]
