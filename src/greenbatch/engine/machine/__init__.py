"""Machines: what can run now, and what it takes. One file per kind; `protocol` says what the engine asks of each."""
