"""Kill `longtail predict` again and again, and check that --resume ends at the same bytes, in constant memory.

    python benchmarks/project/predict_resume.py

The rows are short: the first words of package descriptions (debtags, bundled), drawn again and again. A model of every
16th description predicts half of the rows and then all of them, undisturbed, which gives the peak of memory at n and at
2n rows and the bytes to arrive at. Then the same command is killed with SIGKILL several times, at moments spread over
the run, each time continued with --resume. What a kill costs is processor time beyond that of the undisturbed run: the
rows after the last record, starting Python and the model again, and passing over the rows that are done.
"""

from __future__ import annotations

import filecmp
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from longtail.data import ReadingPosition, iter_texts, load_bundled, write

WORDS = 6
CHILD = """
import atexit, pathlib, sys
from longtail.cli import main

def tell():
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    pathlib.Path(sys.argv[1]).write_text(str(1024 * peak))

atexit.register(tell)
main(sys.argv[2:])
"""


class Run:
    """One run of `longtail predict` in a process of its own."""

    def __init__(self, folder: Path, rows: str, output: str, *more: str) -> None:
        self.memory = folder / "memory"
        command = ["predict", str(folder / "model"), str(folder / rows), "-o", str(folder / output), "-k", "3", *more]
        self.started = time.perf_counter()
        arguments = [sys.executable, "-c", CHILD, str(self.memory), *command]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self) -> Facts:
        """Wait for its end and return what it took."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return {
            "exit": self.process.returncode,
            "wall_seconds": time.perf_counter() - self.started,
            "cpu_seconds": used.ru_utime + used.ru_stime,
        }


def undisturbed(folder: Path, rows: str, output: str) -> Facts:
    """Return what a run that nobody kills takes."""
    run = Run(folder, rows, output)
    facts = run.end()
    if facts["exit"] != 0:
        sys.exit("predict failed")
    return {**facts, "peak_bytes": int(run.memory.read_text())}


def write_rows(folder: Path, name: str, count: int) -> None:
    """Write short rows as JSONL."""
    texts = [" ".join(text.split()[:WORDS]) for text in load_bundled("debtags").texts or ()]
    rng = random.Random(0)
    with (folder / name).open("w", encoding="utf-8") as file:
        for row in range(count):
            file.write(json.dumps({"id": f"r{row}", "text": rng.choice(texts)}, ensure_ascii=False) + "\n")


def rows_recorded(folder: Path) -> int:
    """Return how many rows the record of the run that was killed tells of."""
    record = folder / "tags.jsonl.partial.json"
    return json.loads(record.read_text("utf-8"))["done"]["rows"] if record.exists() else 0


def kill_often(folder: Path, kills: int, rows: int) -> list[Facts]:
    """Kill the run each time it has recorded a further share of the rows and gone on for a moment."""
    rng, moments = random.Random(1), []
    for number in range(kills):
        run = Run(folder, "rows.jsonl", "tags.jsonl", "--resume")
        before, goal = rows_recorded(folder), (number + 1) * rows // (kills + 1)
        while rows_recorded(folder) < goal and run.process.poll() is None:
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 1))
        run.process.send_signal(signal.SIGKILL)
        facts = run.end()
        partial = folder / "tags.jsonl.partial"
        written = sum(1 for _ in partial.open("rb")) if partial.exists() else 0
        kept = rows_recorded(folder)
        moments.append({**facts, "rows_before": before, "rows_kept": kept, "rows_after_the_record": written - kept})
        print(moments[-1])
    moments.append(Run(folder, "rows.jsonl", "tags.jsonl", "--resume").end())
    return moments


def seconds_to_pass_over(folder: Path) -> float:
    """Return how long it takes to pass over all rows that are done, at the end of the file."""
    position = ReadingPosition()
    for _ in iter_texts(folder / "rows.jsonl", 1000, position=position):
        pass
    started = time.process_time()
    for _ in iter_texts(folder / "rows.jsonl", 1000, position=ReadingPosition(position.block - 1, 0)):
        pass
    return time.process_time() - started


def main() -> None:
    parser = make_parser(__doc__, "predict_resume.json")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=5)
    args = parser.parse_args()
    facts = start_facts(args, {"rows": args.rows, "words_per_row": WORDS, "kills": args.kills})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(load_bundled("debtags").take(slice(None, None, 16)), folder / "train.jsonl")
        train = [sys.executable, "-m", "longtail", "train", str(folder / "train.jsonl"), "-o", str(folder / "model")]
        subprocess.run(train, check=True)
        write_rows(folder, "half.jsonl", args.rows // 2)
        write_rows(folder, "rows.jsonl", args.rows)
        facts["half"] = undisturbed(folder, "half.jsonl", "half-tags.jsonl")
        facts["all"] = undisturbed(folder, "rows.jsonl", "whole.jsonl")
        write_results(facts, args.output)
        moments = kill_often(folder, args.kills, args.rows)
        whole, tags = folder / "whole.jsonl", folder / "tags.jsonl"
        facts["identical"] = filecmp.cmp(whole, tags, shallow=False)
        facts["left_over"] = sorted(file.name for file in folder.glob("tags.jsonl.*"))
        facts["output_bytes"], facts["input_bytes"] = tags.stat().st_size, (folder / "rows.jsonl").stat().st_size
        facts["pass_over_cpu_seconds"] = seconds_to_pass_over(folder)
    lost = sum(moment["cpu_seconds"] for moment in moments) - facts["all"]["cpu_seconds"]
    facts["lost_cpu_seconds_per_kill"] = lost / args.kills
    facts["most_rows_done_again"] = max(moment["rows_after_the_record"] for moment in moments[:-1])
    facts["peak_ratio"] = facts["all"]["peak_bytes"] / facts["half"]["peak_bytes"]
    facts["runs"] = moments
    print(json.dumps({key: value for key, value in facts.items() if key != "runs"}, indent=1))
    write_results(facts, args.output)
    if not facts["identical"] or facts["left_over"]:
        sys.exit("the result differs, or something was left over")


if __name__ == "__main__":
    main()
