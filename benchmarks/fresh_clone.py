"""Follow the README as a new user would: clone into an empty folder, with an empty home, and run both commands.

    python benchmarks/fresh_clone.py

Writes how long `make demo` and `make test` take from nothing, the installation and the compilation of the kernels
included, and how they ended.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "fresh_clone.json")
    parser.add_argument("--python", default="python3", help="the Python that make uses")
    args = parser.parse_args()
    facts: dict[str, Any] = {
        "command": "python benchmarks/fresh_clone.py",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "runs": {},
    }
    with tempfile.TemporaryDirectory() as name:
        home, clone = Path(name) / "home", Path(name) / "longtail"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        keep = ("PATH", "LANG", "TERM", "PIP_CONFIG_FILE", "PIP_INDEX_URL", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
        environment = {key: os.environ[key] for key in keep if key in os.environ} | {"HOME": str(home)}
        for target in ("demo", "test"):
            started = time.perf_counter()
            command = ["make", target, f"PYTHON={args.python}"]
            done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True)
            seconds = time.perf_counter() - started
            last = [line for line in done.stdout.splitlines() if line.strip()][-1:]
            facts["runs"][f"make {target}"] = {"exit_code": done.returncode, "seconds": round(seconds, 1), "last": last}
            print(f"make {target}: exit code {done.returncode}, {seconds:.0f} s, {last}", flush=True)
            if done.returncode:
                print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
    args.output.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
