"""``python -m greenbatch``: the command line."""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[0] == os.getcwd():
        del sys.path[0]  # the current folder, whose files are not code
    from greenbatch.cli import main

    raise SystemExit(main())
