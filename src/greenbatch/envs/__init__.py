"""Environments for reinforcement learning: a batched one, and a gymnasium environment."""
