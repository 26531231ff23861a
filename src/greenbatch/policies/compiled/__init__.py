"""Compiled policies that consider every waiting job: each is a `Pass` written with the engine's functions."""
