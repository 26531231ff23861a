"""``python -m greenbatch``: the command line."""

from greenbatch.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
