"""Environments for reinforcement learning over the engine: batched, and gymnasium's."""
