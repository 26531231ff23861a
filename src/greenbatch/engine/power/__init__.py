"""Power supplies: what is there now and ahead, and where energy comes from. One file per kind, see `protocol`."""
