"""Trainers, networks, checkpoints and models."""

import os

# The threads of torch wait for each other after every product. GNU's OpenMP lets them spin for long first: on a machine
# that others use too, a training on two threads then took five times as long. It reads this when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
