"""Measure the first `longtail predict` on a new machine, with compiled kernels in the wheel and without.

    make dist
    python benchmarks/project/first_predict.py

Two wheels in `dist/` are installed into fresh environments: the one for every Python, and the one for this Python that
brings compiled kernels. A tagger is trained on the bundled `debtags` by this Python. Then one text is tagged in the
environment with an empty home and no compiled kernels but those that came with the wheel, and again with what the first
run kept. Both are repeated, each time with another empty home and what was kept removed. Files of Python and its
packages are in the memory of the system by then, as they are after an installation.

Wall seconds and processor seconds of the process, and the load of the machine. With `--first` the measured processes
run before all others (SCHED_FIFO, which takes privileges), so that other work on the machine does not delay them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import ROOT, Facts, make_parser, start_facts, write_results
from benchmarks.project.cold_start import TEXT, Run, run

GOAL = 4.0  # seconds


def main() -> None:
    parser = make_parser(__doc__, "first_predict.json")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="what `make dist` wrote")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", action="store_true", help="measured processes run before all others")
    args = parser.parse_args()
    tag = "cp{}{}".format(*sys.version_info)
    wheels = {
        "without kernels": next(args.dist.glob("longtail-*-py3-none-any.whl")),
        "with kernels": next(args.dist.glob(f"longtail-*-{tag}-none-*.whl")),
    }
    facts = start_facts(args, {"goal_seconds": GOAL, "runs_before_all_others": args.first, "wheels": {}})
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "one.jsonl").write_text(json.dumps(TEXT) + "\n")
        run(["train", "bundled:debtags", "-o", str(work / "model")], os.environ)
        for name, wheel in wheels.items():
            env = work / name.replace(" ", "-")
            subprocess.run([sys.executable, "-m", "venv", env], check=True)
            subprocess.run([env / "bin" / "pip", "install", "--quiet", wheel], check=True)
            facts["wheels"][name] = {"file": wheel.name, **measure(env, work, args.repeats, args.first)}
            write_results(facts, args.output)
            print(name, json.dumps(facts["wheels"][name]), flush=True)


def measure(env: Path, work: Path, repeats: int, first: bool) -> Facts:
    """Return what the first and the second prediction of an environment took, each time as if it were new."""
    firsts: list[Run] = []
    seconds: list[Run] = []
    load = os.getloadavg()[0]
    for _ in range(repeats):
        for kept in env.rglob("__pycache__/*.nb[ic]"):
            kept.unlink()
        with tempfile.TemporaryDirectory(dir=work) as home:
            variables = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home}
            words = ["predict", str(work / "model"), str(work / "one.jsonl")]
            for runs in (firsts, seconds):
                runs.append(run(words, variables, env / "bin" / "python", first))
    return {
        "first": summary(firsts),
        "second": summary(seconds),
        "says_that_it_compiles": any("compil" in done.said for done in firsts),
        "same_output": len({done.printed for done in (*firsts, *seconds)}) == 1,
        "load_of_the_machine": round(load, 1),
    }


def summary(runs: list[Run]) -> Facts:
    """Return the seconds of some runs, and their median."""
    return {
        "median_seconds": statistics.median(done.seconds for done in runs),
        "median_processor_seconds": statistics.median(done.processor_seconds for done in runs),
        "seconds": [done.seconds for done in runs],
        "processor_seconds": [done.processor_seconds for done in runs],
    }


if __name__ == "__main__":
    main()
