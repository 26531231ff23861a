"""greenbatch."""
