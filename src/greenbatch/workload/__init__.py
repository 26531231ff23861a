"""Workloads: trace readers, synthetic models, and job power for traces without it. Everything returns a `Workload`."""

from greenbatch.notes import Note
from greenbatch.workload.assignment import per_processor_power, per_unit_power, power_list
from greenbatch.workload.fdata import read_fdata
from greenbatch.workload.irmasim import REFERENCE_GFLOPS
from greenbatch.workload.measured_power import measured_power
from greenbatch.workload.outages import Outage, outages
from greenbatch.workload.pm100 import read_pm100
from greenbatch.workload.profiles import JobProfile, profile_jobs
from greenbatch.workload.readers import read_workload
from greenbatch.workload.reshape import scale_gaps, shift_to_origin, tile
from greenbatch.workload.sacct import read_sacct
from greenbatch.workload.swf import SWF_RULES, SwfRules, read_swf, write_swf
from greenbatch.workload.synthetic import LUBLIN_TYPES, LublinType, for_machine, lublin
from greenbatch.workload.synthetic_fitted import cirne, jann
from greenbatch.workload.table import Workload
from greenbatch.workload.tabular import read_table
from greenbatch.workload.valued import on_pool, rare

__all__ = [
    "LUBLIN_TYPES",
    "REFERENCE_GFLOPS",
    "SWF_RULES",
    "JobProfile",
    "LublinType",
    "Note",
    "Outage",
    "SwfRules",
    "Workload",
    "cirne",
    "for_machine",
    "jann",
    "lublin",
    "measured_power",
    "on_pool",
    "outages",
    "per_processor_power",
    "per_unit_power",
    "power_list",
    "profile_jobs",
    "rare",
    "read_fdata",
    "read_pm100",
    "read_sacct",
    "read_swf",
    "read_table",
    "read_workload",
    "scale_gaps",
    "shift_to_origin",
    "tile",
    "write_swf",
]
