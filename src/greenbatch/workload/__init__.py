"""Jobs in: readers, synthetic models and assignment of what a trace lacks. Everything returns a `Workload`."""

from greenbatch.workload.swf import SWF_RULES, SwfRules, read_swf, write_swf
from greenbatch.workload.table import Note, Workload

__all__ = ["SWF_RULES", "Note", "SwfRules", "Workload", "read_swf", "write_swf"]
