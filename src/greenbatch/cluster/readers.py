"""Read the description of a cluster in any supported format but TOML, whose schema belongs to scenarios."""

from __future__ import annotations

from pathlib import Path

from greenbatch.cluster.cluster import Cluster
from greenbatch.cluster.irmasim import read_platform
from greenbatch.cluster.slurm_conf import looks_like_slurm_conf, read_slurm_conf
from greenbatch.errors import InputError
from greenbatch.files import read_bytes
from greenbatch.json_input import looks_like_json


def read_cluster(path: Path) -> Cluster:
    """A cluster from a platform of IRMaSim (JSON) or a ``slurm.conf``; detected from the content.

    Raises:
        InputError: the file cannot be read, is of no known kind, or its reader refuses it.
    """
    content, _ = read_bytes(path)
    if looks_like_json(content):
        return read_platform(path)
    if looks_like_slurm_conf(content):
        return read_slurm_conf(path)
    fix = "give a slurm.conf, a platform of IRMaSim (.json), or node groups in TOML (.toml)"
    raise InputError("is not a known description of a cluster", file=path, line=1, fix=fix)
