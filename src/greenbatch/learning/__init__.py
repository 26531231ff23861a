"""Trainers, networks, checkpoints and models.

The main path, file by file::

    settings, plan, windows     the training's keys, everything that determines the weights, which jobs
    runs, checkpoint, log       the folder it lives in, whole at any moment
    training                    the loop: draw windows, simulate, update, validate, save
      rollout, observations     simulations of windows; observations as tensors
      networks/, segments       actors and critics over packed rows, by name
      advantages, ppo           advantage estimates; the update
      state, counters, device   the state between two epochs; the machine
    search, evolution           the other loop: generations of candidates
      price_search,             objectives of the two searches: the weights of the look-ahead planner
      ranking_search            and of a ranking
    model                       weights and their record
    learned, priced             a model as a scheduler: a network behind the seam, weights for the engine's planner
      shapes, onnx_graph,       the network without torch
      onnx_builder

Only `training` and the modules indented below it require torch.
"""

import os

# Torch's threads wait for each other after every matrix product. By default GNU's OpenMP lets them spin for long, which
# made training on two threads of a shared machine five times slower. It reads this variable when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
