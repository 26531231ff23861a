"""``python -m greenbatch``: the command line."""

import os
import sys
from contextlib import suppress

if __name__ == "__main__":
    with suppress(OSError):  # the folder is gone
        if not sys.flags.safe_path and sys.path[0] == os.getcwd():
            del sys.path[0]  # the current folder, whose files are not code
    from greenbatch.cli import main

    raise SystemExit(main())
