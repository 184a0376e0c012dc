"""Install the wheel into fresh environments and run the tests against it, with the newest and the lowest versions.

    make dist PYTHONS="python3.11 python3.12"
    python benchmarks/project/version_matrix.py --pythons python3.11 python3.12 --resume

For each Python two environments are made, with what the wheel in `dist/` depends on: in one the newest versions, in the
other the lowest that `pyproject.toml` allows and that have a wheel for that Python (uv's `lowest-direct`; what these
depend on in turn is the newest that suits). All extras but `torch` and `docs` are there. The tests come from the source
archive in `dist/`, unpacked where no `src` is imported: longtail is the installed one. `--tests all` runs all tests,
`most` leaves out the slowest, `core` takes files, features, label trees, one-vs-all, metrics, model folders and the
commands (`SELECTIONS` below). With `most` and `all` the examples of all docstrings run as well.

What a cell found is written when it has ended; with `--resume` those that ran as much are kept and the others run, so
that another machine can add the cells of a Python that is only there. Seconds are those of the clock; on a machine with
other work `processor_seconds` says more.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import ROOT, Facts, make_parser, start_facts, write_results

EXTRAS = ("io", "skos", "stem", "language", "sign", "audit", "ann", "onnx", "serve", "ray", "dev")
RESOLUTIONS = {"newest": "highest", "lowest": "lowest-direct"}
SLOWEST = (  # pages in a browser, examples of docs, fuzzing, kills, long trainings
    *("--ignore-glob=tests/serve/test_page_*", "--ignore=tests/project/test_docs.py", "--ignore=tests/fuzz"),
    *("--ignore=tests/hybrid", "--ignore=tests/engine/test_ray.py", "--ignore=tests/cli/test_killed.py"),
    *("--ignore=tests/cli/test_impute.py", "--ignore=tests/cli/test_hybrid_commands.py"),
)
IN_SOURCE = "--ignore=tests/project/test_examples.py"  # imports longtail from `src`; the examples run for themselves
CORE = ("data", "text", "vocabulary", "validate", "storage", "metrics", "one_vs_all", "tree", "cli/test_commands.py")
SELECTIONS = {  # what pytest is told, least first
    "core": tuple(f"tests/{name}" for name in CORE),
    "most": ("tests", IN_SOURCE, *SLOWEST),
    "all": ("tests", IN_SOURCE),
}
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|xfailed|errors?)")
KEPT = ("PATH", "LANG", "HOME", "TERM", "SSL_CERT_FILE", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


class Cell:
    """One environment: a Python, and the newest or the lowest versions.

    Parameters
    ----------
    resolution : {"newest", "lowest"}
        Which versions of dependencies.
    interpreter : str
        The Python it is made with.
    work : Path
        An empty folder for the environment.
    """

    def __init__(self, resolution: str, interpreter: str, work: Path) -> None:
        asked = "import platform; print(platform.python_version())"
        self.resolution, self.interpreter = resolution, interpreter
        self.version = subprocess.check_output([interpreter, "-c", asked], text=True).strip()
        self.minor = ".".join(self.version.split(".")[:2])
        self.name = f"{resolution}-{self.minor}"
        self.env, self.python = work / self.name, work / self.name / "bin" / "python"
        self.variables = {key: os.environ[key] for key in KEPT if key in os.environ}
        self.variables["NUMBA_CACHE_DIR"] = str(work / f"{self.name}-kernels")

    def install(self, uv: Path, dist: Path) -> Facts:
        """Install the wheel that fits best; return it and the versions that came."""
        tagged = sorted(dist.glob(f"longtail-*-cp{self.minor.replace('.', '')}-*.whl"))
        wheel = (tagged or sorted(dist.glob("longtail-*-py3-none-any.whl")))[-1]
        shutil.rmtree(self.env, ignore_errors=True)
        subprocess.run([uv, "venv", "--quiet", "--python", self.interpreter, self.env], check=True, env=self.variables)
        options = ["--quiet", "--only-binary", ":all:", "--resolution", RESOLUTIONS[self.resolution]]
        # what the wheel asks for is asked for here too: uv takes the lowest versions only of what is named to it
        wanted = [f"{wheel}[{','.join(EXTRAS)}]", *requirements()]
        command: list[str | Path] = [uv, "pip", "install", *options, "--python", self.python, *wanted]
        subprocess.run(command, check=True, env=self.variables)
        listed: list[str | Path] = [uv, "pip", "list", "--format", "json", "--python", self.python]
        found = json.loads(subprocess.check_output(listed, text=True, env=self.variables))
        all_versions = {entry["name"]: entry["version"] for entry in found}
        return {"wheel": wheel.name, "versions": {name: all_versions[name] for name in named() if name in all_versions}}

    def test(self, words: Sequence[str], source: Path, log: Path) -> Facts:
        """Run pytest in the source folder against the installed package."""
        asked = "import longtail; print(longtail.__file__)"
        home = subprocess.check_output([self.python, "-c", asked], text=True, cwd=source, env=self.variables).strip()
        if not home.startswith(str(self.env)):
            raise SystemExit(f"the tests would not run against the installed package but against {home}")
        started, worked = time.perf_counter(), processor_seconds()
        with log.open("w") as told:
            command: list[str | Path] = [self.python, "-m", "pytest", "-rfE", "--durations=30", *words]
            done = subprocess.run(command, cwd=source, stdout=told, stderr=subprocess.STDOUT, env=self.variables)
        took = {"seconds": time.perf_counter() - started, "processor_seconds": processor_seconds() - worked}
        lines = log.read_text("utf-8", "replace").splitlines()
        counts = {word.rstrip("s") if word != "passed" else word: int(n) for n, word in COUNTS.findall(lines[-1])}
        failures = [line.split(" - ")[0] for line in lines if line.startswith(("FAILED ", "ERROR "))]
        return {
            "exit_code": done.returncode,
            **counts,
            "failures": failures,
            **{name: round(s, 1) for name, s in took.items()},
        }


def processor_seconds() -> float:
    """Return the processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def requirements() -> list[str]:
    """Return the packages that pyproject.toml names, with their versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    return [*project["dependencies"], *extras]


def named() -> list[str]:
    """Return the names of these packages."""
    return [re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0].lower() for line in requirements()]


def main() -> None:
    parser = make_parser(__doc__, "version_matrix.json", resume=True)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="what `make dist` wrote")
    parser.add_argument("--pythons", nargs="+", default=[sys.executable])
    parser.add_argument("--resolutions", nargs="+", choices=RESOLUTIONS, default=list(RESOLUTIONS))
    parser.add_argument("--tests", choices=SELECTIONS, default="all")
    parser.add_argument("--work", type=Path, help="where environments and logs are kept")
    args = parser.parse_args()
    order = list(SELECTIONS)
    told = {"extras": EXTRAS, "selections": SELECTIONS}
    facts = start_facts(args, {"cells": {}}) | told
    with tempfile.TemporaryDirectory() as folder:
        work = Path(args.work or folder).resolve()
        work.mkdir(parents=True, exist_ok=True)
        uv = tool(work)
        facts["versions"]["uv"] = subprocess.check_output([uv, "--version"], text=True).split()[1]
        for interpreter in args.pythons:
            for resolution in args.resolutions:
                cell = Cell(resolution, interpreter, work)
                before = facts["cells"].get(cell.name)
                if before and order.index(before["selection"]) >= order.index(args.tests):
                    continue
                print(cell.name, flush=True)
                source = unpacked(args.dist, work / f"{cell.name}-source")
                found = {"python": cell.version, **cell.install(uv, args.dist), "selection": args.tests}
                found["tests"] = cell.test(SELECTIONS[args.tests], source, work / f"{cell.name}.log")
                if args.tests != "core":
                    words = ["-p", "conftest", "--pyargs", "longtail", "--doctest-ignore-import-errors"]
                    found["examples"] = cell.test(words, source, work / f"{cell.name}-examples.log")
                facts["cells"][cell.name] = found
                write_results(facts, args.output)
                print(json.dumps(found["tests"]), json.dumps(found.get("examples")), flush=True)


def tool(work: Path) -> Path:
    """Install uv into a folder of its own."""
    if not (work / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", work / "uv"], check=True)
        subprocess.run([work / "uv/bin/python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    return work / "uv/bin/uv"


def unpacked(dist: Path, folder: Path) -> Path:
    """Unpack the source archive; return its folder."""
    with tarfile.open(next(dist.glob("longtail-*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.iterdir())


if __name__ == "__main__":
    main()
