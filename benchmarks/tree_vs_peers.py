"""Compare the label tree with its peers: the program is benchmarks/tree/vs_peers.py, and takes the same options."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tree.vs_peers import main

if __name__ == "__main__":
    main()
