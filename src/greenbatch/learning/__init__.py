"""Trainers, networks, checkpoints and models.

The main path, file by file::

    settings, plan, windows     what is trained: a preset's table, all that decides the weights, which jobs
    runs, checkpoint, log       the folder it lives in, whole at any moment
    training                    the loop: draw windows, play, learn, validate, save
      rollout, observations     windows are played; what was seen, as tensors
      networks/, segments       actors and critics over packed rows, by name
      advantages, ppo           how much better than expected; the update
      state, counters, device   where it stands; the machine
    search, evolution           the other loop: generations of candidates
      price_search,             what is searched for and how candidates are tried: prices of a planner,
      ranking_search            weights of a ranking
    model                       weights and their record
    learned, priced             a model as a scheduler: a network behind the seam, prices for the engine's planner
      shapes, onnx_graph,       the network without torch
      onnx_builder

Only `training` and what is indented below it needs torch.
"""

import os

# The threads of torch wait for each other after every product. GNU's OpenMP lets them spin for long first: on a machine
# that others use too, a training on two threads then took five times as long. It reads this when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
