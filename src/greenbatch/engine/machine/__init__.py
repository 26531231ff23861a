"""Machines: what can run now, and what it takes. One file per kind; `resources` says what the engine asks of each."""
