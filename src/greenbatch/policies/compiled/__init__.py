"""Compiled policies that consider every waiting job: each is a `CompiledPolicy` written with the engine's functions."""
