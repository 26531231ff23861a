"""Datasets of decisions: what schedulers, or the logs of a site, did, as an agent of a preset would have done it.

recording   which windows are played under which scheduler     -> Played
tables      observations as arrays of fixed shapes
schema      dataset.json, the description of a dataset
columns     the columns of its files
writing     writing a dataset
dataset     reading it                                         -> Dataset
"""

from greenbatch.datasets.dataset import Dataset, check_agent, check_fits, read
from greenbatch.datasets.recording import Played, Recording, play, recording
from greenbatch.datasets.writing import write

__all__ = ["Dataset", "Played", "Recording", "check_agent", "check_fits", "play", "read", "recording", "write"]
