"""Trainers, networks, checkpoints and models."""
