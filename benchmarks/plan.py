"""How right `longtail plan` is: its estimates beside what `longtail train` then takes.

    python benchmarks/plan.py --data FOLDER

FOLDER holds `eurlex-4k`, `pubmed-mesh` and `yso-titles`; LONGTAIL_DATA is its default. Bundled data needs no folder.
Both commands run in processes of their own: the plan first, then the training, whose time (with reading), peak of
memory (of the whole process) and model size (of the folder) are compared with the plan. A ratio is estimate / real.
Time is wall time on the machine as it is: another program that starts or ends in between shows in the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

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
FILES = ("train.txt.xz", "train.jsonl.xz")
MEASURES = (("train_seconds", "s", 1.0), ("peak_bytes", "MB", 1e-6), ("model_bytes", "MB", 1e-6))


def source(name: str, folder: Path | None) -> str | None:
    """Return DATA for the command line: the file in the folder, or the bundled data; None if there is neither."""
    if name in ("debtags", "debian-relations"):
        return f"bundled:{name}"
    found = [folder / name / file for file in FILES if (folder / name / file).exists()] if folder else []
    return str(found[0]) if found else None


def run(*arguments: str) -> tuple[dict[str, Any], int, float]:
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


def compare(data: str, method: str) -> dict[str, Any]:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("LONGTAIL_DATA"), help="folder (LONGTAIL_DATA)")
    parser.add_argument("--only", nargs="*", help="names of the data to use")
    parser.add_argument("--methods", nargs="*", default=["tree", "ova"])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "plan.json")
    options = parser.parse_args()
    facts: dict[str, Any] = {
        "command": "python benchmarks/plan.py --data FOLDER",
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "processor": platform.machine()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("longtail", "numpy", "scipy", "scikit-learn", "numba")},
        },
        "results": {},
    }
    for name, method in CASES:
        data = source(name, options.data)
        if data is None or method not in options.methods or (options.only and name not in options.only):
            continue
        facts["results"][f"{name}, {method}"] = found = compare(data, method)
        shown = "   ".join(
            f"{key.partition('_')[0]} {found['estimate'][key] * unit:.4g} / {found['real'][key] * unit:.4g} {what} "
            f"= {found['ratios'][key]:.2f}"
            for key, what, unit in MEASURES
        )
        print(f"{name:<18}{method:<6}{shown}", flush=True)
        ratios = [ratio for result in facts["results"].values() for ratio in result["ratios"].values()]
        facts["ratios"] = {"least": min(ratios), "most": max(ratios)}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
