"""Compare the estimates of `longtail plan` with what `longtail train` then takes.

    python benchmarks/project/plan.py --data FOLDER

FOLDER holds `eurlex-4k`, `pubmed-mesh` and `yso-titles`; LONGTAIL_DATA is its default. Bundled data needs no folder.
Both commands run in processes of their own: the plan first, then the training, whose time (with reading), peak of
memory (of the whole process) and model size (of the folder) are compared with the plan. A ratio is estimate / real.
Time is wall time on the machine as it is: another program that starts or ends in between shows in the ratio.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.data_sets import data_file
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table

CASES = (
    ("debtags", "tree"),
    ("debtags", "ova"),
    ("debian-relations", "tree"),
    ("eurlex-4k", "tree"),
    ("eurlex-4k", "ova"),
    ("pubmed-mesh", "tree"),
    ("pubmed-mesh", "ova"),
    ("yso-titles", "tree"),
)
MEASURES = (("train_seconds", "s", 1.0), ("peak_bytes", "MB", 1e-6), ("model_bytes", "MB", 1e-6))


def source(name: str, folder: Path | None) -> str | None:
    """Return DATA for the command line: the file in the folder, or the bundled data; None if there is neither."""
    if name in ("debtags", "debian-relations"):
        return f"bundled:{name}"
    file = data_file(folder / name, "train") if folder else None
    return str(file) if file else None


def run(*arguments: str) -> tuple[Facts, int, float]:
    """Run longtail; return the facts it prints, its peak of memory in bytes and its CPU seconds."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([sys.executable, "-m", "longtail", *arguments, "--json"], stdout=out)
        _, status, used = os.wait4(process.pid, 0)  # the peak starts at this small program's own size
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"longtail {' '.join(arguments)} ended with exit code {process.returncode}")
        out.seek(0)
        facts = json.loads(out.read())
    return facts, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024), used.ru_utime + used.ru_stime


def compare(data: str, method: str) -> Facts:
    """Plan, then train; return estimates, real values and their ratios."""
    plan, _, _ = run("plan", data, "--method", method)
    with tempfile.TemporaryDirectory() as folder:
        trained, peak, cpu = run("train", data, "-o", str(Path(folder) / "model"), "--method", method)
    estimate = {
        "train_seconds": plan["train_seconds"],
        "peak_bytes": plan["memory"]["peak_bytes"],
        "model_bytes": plan["model_bytes"],
    }
    real = {"train_seconds": trained["seconds"], "peak_bytes": peak, "model_bytes": trained["bytes"]}
    return {
        "method": method,
        "rows": plan["rows"],
        "labels": plan["labels_used"],
        "nonzeros": plan["nonzeros"],
        "threads": plan["threads"],
        "sample": plan["sample"],
        "estimate": estimate,
        "real": real,
        "real_cpu_seconds": cpu,
        "features": {"estimate": plan["features"], "real": trained["features"]},
        "ratios": {name: round(estimate[name] / real[name], 2) for name in estimate},
    }


def show(results: Facts) -> None:
    """Print estimate / real value = ratio of every case."""
    rows = [
        [name]
        + [
            f"{case['estimate'][key] * unit:.4g} / {case['real'][key] * unit:.4g} {what} = {case['ratios'][key]:.2f}"
            for key, what, unit in MEASURES
        ]
        for name, case in results.items()
    ]
    show_table("estimate / real value = ratio", ["", "time", "peak of memory", "size of the model"], rows)


def main() -> None:
    parser = make_parser(__doc__, "plan.json", data="optional", resume=True)
    parser.add_argument("--only", nargs="+", help="names of the data to use")
    parser.add_argument("--methods", nargs="+", default=["tree", "ova"])
    args = parser.parse_args()
    facts = start_facts(args, {"results": {}})
    for name, method in CASES:
        case, data = f"{name}, {method}", source(name, args.data)
        wanted = method in args.methods and (not args.only or name in args.only)
        if data is not None and wanted and case not in facts["results"]:
            facts["results"][case] = compare(data, method)
            ratios = [ratio for result in facts["results"].values() for ratio in result["ratios"].values()]
            facts["ratios"] = {"least": min(ratios), "most": max(ratios)}
            write_results(facts, args.output)
            show({case: facts["results"][case]})
    show(facts["results"])


if __name__ == "__main__":
    main()
