"""Training of models: by policy gradients, off-policy or by search.

The main path, room by room::

    several                several trainings, some at a time, each in its folder
    trainers               the choice of the trainer for a plan
    training/, search/     the two loops: epochs of PPO, which requires torch; generations of candidates
    offpolicy/             a third: an actor-critic with a replay buffer, which requires torch
    evaluation/            what records say about a policy that did not make them
    discounts, adam        of decisions, or over time; the optimizer
    networks/              actors and critics over packed rows, in torch
    runs/                  what both loops have: a plan, windows, and a folder to resume from
"""

import os

# Torch's threads wait for each other after every matrix product. By default GNU's OpenMP lets them spin for long, which
# made training on two threads of a shared machine five times slower. It reads this variable when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
