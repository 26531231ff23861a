"""The clock: queue, running set, backfilling, power. The only compiled code of the package."""
