"""Follow the README as a new user would: clone into an empty folder, with an empty home, and run both commands.

    python benchmarks/project/fresh_clone.py [--extras torch]

Writes how long the installation takes from nothing, then `make demo`, the compilation of the kernels included, and
`make test`, each by the clock and in processor time, and how they ended. `--targets` runs fewer of them. With
`--resume` the other runs in the file of results are kept.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import ROOT, Facts, make_parser, start_facts, write_results

KEPT = ("PATH", "LANG", "TERM", "PIP_CONFIG_FILE", "PIP_INDEX_URL", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def make(target: str, words: list[str], clone: Path, home: Path) -> Facts:
    """Run make in the clone, with nothing of this environment but how to reach the package index."""
    environment = {key: os.environ[key] for key in KEPT if key in os.environ} | {"HOME": str(home)}
    started, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["make", target, *words], cwd=clone, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    last = [line for line in done.stdout.splitlines() if line.strip()][-1:]
    print(f"make {target}: exit code {done.returncode}, {seconds:.0f} s, {last}", flush=True)
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
    return {
        "exit_code": done.returncode,
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "processes_waiting": round(os.getloadavg()[0], 1),
        "last": last,
    }


def main() -> None:
    parser = make_parser(__doc__, "fresh_clone.json", resume=True)
    parser.add_argument("--python", default="python3", help="the Python that make uses")
    parser.add_argument("--extras", default="", help="given to make as EXTRAS, such as torch")
    parser.add_argument("--targets", nargs="+", choices=("demo", "test"), default=["demo", "test"])
    args = parser.parse_args()
    facts = start_facts(args, {"runs": {}})
    words = [f"PYTHON={args.python}"] + ([f"EXTRAS={args.extras}"] if args.extras else [])
    with tempfile.TemporaryDirectory() as name:
        home, clone = Path(name) / "home", Path(name) / "longtail"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        installed = ".venv/installed-torch" if "torch" in args.extras else ".venv/installed"
        for target in (installed, *args.targets):
            title = f"make {target}" + (f" EXTRAS={args.extras}" if args.extras else "")
            facts["runs"][title] = make(target, words, clone, home)
            write_results(facts, args.output)


if __name__ == "__main__":
    main()
