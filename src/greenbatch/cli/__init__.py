"""The face: ``greenbatch VERB``. One app, one thin file per verb, each loaded when it is used."""

from greenbatch.cli.process import main

__all__ = ["main"]
