"""The simulation engine: clock, queue, running jobs, backfilling and power. The only compiled code of the package."""
