"""Arguments, results file and description of the machine: what every benchmark program begins and ends with.

A program asks `make_parser` for the common options, starts its facts with `start_facts`, and calls `write_results`
after every measurement. A file of results is replaced as a whole, so that a killed program leaves the last good one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import socket
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]  # of the repository
RESULTS = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs"
PACKAGES = ("longtail", "numpy", "scipy", "scikit-learn", "numba")
OWN_OPTIONS = ("--output", "--figure", "--work", "--keep", "--plot")  # where files lie: no part of what was measured
FOLDERS = (
    *("--data", "--translations", "--cleanlab", "--fashion", "--features", "--weights", "--source"),
    *(
        "--annif",
        "--project",
        "--schemathesis",
        "--annif-tests",
        "--label-studio",
        "--interpreter",
        "--encoder",
        "--dist",
    ),
)


def make_parser(
    doc: str | None,
    results: str,
    *,
    data: str | None = None,
    seeds: Sequence[int] | None = None,
    resume: bool = False,
) -> argparse.ArgumentParser:
    """Return a parser with the common options.

    Parameters
    ----------
    doc : str
        The program's docstring, shown by --help.
    results : str
        Name of the file under `benchmarks/results`, the default of --output.
    data : {"required", "optional"}, default=None
        Whether there is an option --data, whose default is the variable LONGTAIL_DATA.
    seeds : sequence of int, default=None
        Default of --seeds; None leaves the option out.
    resume : bool, default=False
        Whether there is an option --resume.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if data is not None:
        default = os.environ.get("LONGTAIL_DATA")
        required = data == "required" and not default
        folder = Path(default) if default else None
        about = "folder of the data sets (default: the variable LONGTAIL_DATA)"
        parser.add_argument("--data", type=Path, default=folder, required=required, metavar="FOLDER", help=about)
    if seeds is not None:
        parser.add_argument("--seeds", nargs="+", type=int, default=list(seeds))
    if resume:
        parser.add_argument("--resume", action="store_true", help="keep what the output file holds, measure the rest")
    parser.add_argument("--output", type=Path, default=RESULTS / results, help=f"default benchmarks/results/{results}")
    return parser


def command() -> str:
    """Return the command that is running, without the folders of this machine."""
    program = Path(sys.argv[0]).resolve()
    words = ["python", str(program.relative_to(ROOT)) if program.is_relative_to(ROOT) else program.name]
    option = ""
    for word in sys.argv[1:]:
        option = word if word.startswith("--") else option
        if option not in OWN_OPTIONS:
            words.append("FOLDER" if word != option and option in FOLDERS else shlex.quote(word))
    return " ".join(words)


def machine() -> Facts:
    """Return what is worth knowing about the machine."""
    return {
        "cores": os.cpu_count(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": processor(),
    }


def processor() -> str:
    """Return the name of the processor, as far as the system tells it."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)$", info.read_text(), re.M) if info.exists() else []
    return names[0].strip() if names else platform.processor()


def versions(*more: str) -> dict[str, str]:
    """Return the versions of Python, of longtail, of what it builds on, and of further packages."""
    return {"python": platform.python_version(), **{name: version(name) for name in (*PACKAGES, *more)}}


def start_facts(args: argparse.Namespace, empty: Facts, *packages: str) -> Facts:
    """Return the facts before the first measurement: with --resume those of the output file, else `empty`.

    The command, the machine and the versions are always those of now.
    """
    kept: Facts = read_results(args.output) if getattr(args, "resume", False) and args.output.exists() else {}
    return {
        "command": command(),
        "machine": machine(),
        "versions": {**kept.get("versions", {}), **versions(*packages)},
        **{name: value for name, value in {**empty, **kept}.items() if name not in ("command", "machine", "versions")},
    }


def read_results(file: Path) -> Facts:
    """Return the facts of a file of results."""
    return json.loads(file.read_text("utf-8"))


def write_results(facts: Facts, output: Path) -> None:
    """Write all facts, or leave the file as it was."""
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_suffix(".part")
    part.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    part.replace(output)


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Deadline:
    """The moment after which a program begins nothing new; `minutes` is None for never."""

    def __init__(self, minutes: float | None) -> None:
        self.end = time.monotonic() + 60 * minutes if minutes else float("inf")

    def passed(self) -> bool:
        """Say whether the time is up, and tell the user once it is."""
        if time.monotonic() <= self.end:
            return False
        print("time is up; --resume goes on from here")
        return True
