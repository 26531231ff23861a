"""Jobs in: readers, synthetic models and assignment of what a trace lacks. Everything returns a `Workload`."""

from greenbatch.workload.table import Note, Workload

__all__ = ["Note", "Workload"]
