"""`python -m longtail.serve.worker FOLDER SLOT SOCKET`: one of several processes of a server; started by `run`."""

from __future__ import annotations

import sys
from pathlib import Path

from longtail.serve.run import run_worker

if __name__ == "__main__":
    sys.exit(run_worker(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
