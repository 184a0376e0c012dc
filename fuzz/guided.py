"""Fuzz the parsers with coverage guidance: atheris (libFuzzer) keeps the inputs that reach new branches.

    pip install atheris
    python -m fuzz.guided jsonl xmc --seconds 120 --output guided.json

Each parser runs in a process of its own. Its Python code is instrumented as it is imported; compiled kernels run as
plain Python, so that their branches count too. Inputs are judged by the same watch as random cases, changed by
libFuzzer's own mutations and, every other time, by ours.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

FILES: dict[str, tuple[str, ...]] = {  # of each parser: the names under which its input is read
    "jsonl": ("rows.jsonl",),
    "csv": ("rows.csv",),
    "tsv": ("rows.tsv",),
    "fasttext": ("rows.ft",),
    "lines": ("rows.text", "rows"),
    "xmc": ("rows.xmc",),
    "libsvm": ("rows.svm",),
    "npz": ("rows.npz",),
    "xmc-raw": ("raw/trn.json", "raw/lbl.json"),
    "xmc-splits": ("splits/x_trn_split.txt", "splits/x_data.txt"),
    "labels": ("labels.jsonl", "labels.txt"),
    "groups": ("groups.jsonl", "groups.csv"),
    "filter": ("filter.txt",),
    "weights": ("layer.safetensors", "layer.npy", "layer.npz"),
}
BESIDE: dict[str, dict[str, bytes]] = {  # sound files that some need beside their input
    "xmc-raw": {
        "raw/trn.json": b'{"uid": "1", "title": "a", "content": "b", "target_ind": [0]}\n',
        "raw/lbl.json": b'{"uid": "x", "title": "y"}\n',
    },
    "xmc-splits": {
        "splits/x_data.txt": b"2 3 2\n0 1:1\n1 2:1\n",
        "splits/x_trn_split.txt": b"1\n2\n",
        "splits/x_tst_split.txt": b"1\n",
    },
    "groups": {"rows.jsonl": b'{"text": "a", "group": "g1"}\n'},
}
INSTRUMENTED = ["longtail.data", "longtail.storage", "longtail.validate", "longtail.audit.read_weights"]
STATE = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
EXECUTED = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
SEEDS = 60  # random cases that a run starts from


def main() -> None:
    """Run parsers one after the other, or be the process of one of them."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.guided", description=__doc__)
    parser.add_argument("parsers", nargs="*", default=[], help=f"all, or some of {', '.join(FILES)}")
    parser.add_argument("--seconds", type=int, default=60, help="of each parser")
    parser.add_argument("--output", type=Path, help="a JSON file that keeps the counts, added to what it holds")
    parser.add_argument("--process", nargs=3, metavar=("PARSER", "FOLDER", "SECONDS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.process:
        fuzz_here(args.process[0], Path(args.process[1]), int(args.process[2]))
    facts: dict[str, Any] = json.loads(args.output.read_text()) if args.output and args.output.exists() else {}
    for name in list(FILES) if "all" in args.parsers else args.parsers:
        facts[name] = run_parser(name, args.seconds)
        print(name, json.dumps(facts[name]), flush=True)
        if args.output:
            args.output.write_text(json.dumps(facts, indent=1) + "\n")


def run_parser(name: str, seconds: int) -> dict[str, Any]:
    """Fuzz a parser in a process of its own, and return the counts."""
    memory = Path("/dev/shm")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None, prefix="guided-") as folder:
        command = [sys.executable, "-m", "fuzz.guided", "--process", name, folder, str(seconds)]
        variables = {**os.environ, "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"}
        ended = subprocess.run(command, env=variables, stderr=subprocess.PIPE, text=True, errors="replace")
        states = STATE.findall(ended.stderr)
        executed = EXECUTED.search(ended.stderr)
        if not states or not executed:
            raise SystemExit(f"{name} did not run: {ended.stderr[-2000:]}")
        found = Path(folder) / "findings.jsonl"
        findings = [json.loads(line) for line in found.read_text().splitlines()] if found.exists() else []
    return {
        "inputs": int(executed[1]),
        "seconds": round(time.monotonic() - started, 1),
        "branches_at_first": int(states[0][0]),
        "branches": int(states[-1][0]),
        "kept_inputs": int(states[-1][2]),
        "exit_code": ended.returncode,
        "findings": findings,
    }


def fuzz_here(name: str, folder: Path, seconds: int) -> None:
    """Fuzz a parser in this process, which ends with it."""
    import atheris

    folder_of_warm_up = folder / "warm" / "work"
    folder_of_warm_up.mkdir(parents=True)
    with atheris.instrument_imports(include=INSTRUMENTED):
        from fuzz.targets import all_targets

        target, names = all_targets()[name], FILES[name]
        if target.warm_up is not None:
            target.warm_up(folder_of_warm_up)

    from fuzz.case import Case
    from fuzz.mutations import change_text
    from fuzz.watch import Watch

    corpus = folder / "corpus"
    corpus.mkdir()
    for number in range(SEEDS):
        drawn = target.make(Random(number))
        for at, wanted in enumerate(names):
            if wanted in drawn.files:
                (corpus / f"{number}-{at}").write_bytes(bytes([at]) + drawn.files[wanted])
    watch = Watch(folder / "sandbox")
    seen: set[str] = set()

    def test(data: bytes) -> None:
        way = data[0] if data else 0
        main = names[(way & 15) % len(names)]
        options: dict[str, Any] = {"way": "rows"} if way & 16 else {}
        files = {**BESIDE.get(name, {}), main: data[1:]}
        case = Case("guided", files, main.split("/")[0] if "/" in main else main, options)
        verdict = watch.judge(target, case)
        key = f"{verdict.outcome} {verdict.place}"
        if verdict.is_finding and key not in seen:
            seen.add(key)
            with (folder / "findings.jsonl").open("a") as file:
                file.write(json.dumps({"kind": key, "sentence": verdict.sentence, "input": data[:4000].hex()}) + "\n")

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        if seed % 2:
            return atheris.Mutate(data, most)
        changed = change_text(Random(seed), data[1:])[1]
        return (data[:1] + changed)[:most]

    words = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], str(corpus), *words], test, custom_mutator=mutate)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder / "sandbox", ignore_errors=True)


if __name__ == "__main__":
    main()
