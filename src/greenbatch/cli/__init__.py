"""The face: ``greenbatch VERB``. One app, one thin file a verb, each loaded when it is used."""

from greenbatch.cli.app import main

__all__ = ["main"]
