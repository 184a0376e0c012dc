"""Kill trainings of PRIME at random moments (SIGKILL), resume them, and compare the end with one that was left alone.

    python benchmarks/prime/killed.py [--runs 5] [--rows 1500]

On a CPU, in float32, with the bundled data set debtags and a small new encoder. Every run is killed several times; what
is compared are all arrays of the model, to the last bit.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import make_parser, start_facts, write_results

EPOCHS = 6


def main() -> None:
    parser = make_parser(__doc__, "prime_killed.json")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        train(args.rows, args.child)
        return
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as scratch:
        started = time.perf_counter()
        expected, _ = finished(args.rows, Path(scratch) / "alone")
        seconds = time.perf_counter() - started
        runs = [disturbed(args.rows, Path(scratch) / f"run-{number}", seconds, rng) for number in range(args.runs)]
    equal = [digest == expected for _, digest in runs]
    facts = start_facts(args, {}, "torch") | {
        "undisturbed_seconds": seconds,
        "kills": sum(len(steps) for steps, _ in runs),
        "same_weights": sum(equal),
        "runs": [{"killed_at_step": run[0], "same": same} for run, same in zip(runs, equal, strict=True)],
    }
    write_results(facts, args.output)
    print(f"{facts['kills']} kills in {args.runs} runs; {facts['same_weights']} ended with the same weights.")


def train(rows: int, folder: Path) -> None:
    """Train with a checkpoint nearly every step; write the step as it goes, and the digest of the model at the end."""
    import longtail as lt
    from longtail.data import load_bundled

    data = load_bundled("debtags", "train")

    def told(done: int, total: int) -> None:
        (folder / "step").write_text(str(done))

    model = lt.Prime(
        encoder={"width": 64, "layers": 2, "heads": 2},
        preset="prime-lite",
        epochs=EPOCHS,
        max_length=32,
        device="cpu",
        checkpoint=folder / "checkpoint",
        checkpoint_minutes=0.01,
        random_state=0,
        validation=0.1,
    )
    texts = list(data.texts or ())[:rows]
    model.fit(texts, data.Y[:rows], data.names(), progress=told)
    digest = hashlib.sha256()
    for name, array in sorted(model.to_part().arrays.items()):
        digest.update(name.encode() + array.tobytes())
    (folder / "digest").write_text(digest.hexdigest())


def start(rows: int, folder: Path) -> subprocess.Popen[bytes]:
    """Start a training in a process of its own."""
    return subprocess.Popen([sys.executable, __file__, "--rows", str(rows), "--child", str(folder)])


def finished(rows: int, folder: Path) -> tuple[str, int]:
    """Train to the end; return the digest of the model and the last step."""
    folder.mkdir(exist_ok=True)
    status = start(rows, folder).wait()
    if status:
        raise RuntimeError(f"the training ended with exit code {status}")
    return (folder / "digest").read_text(), int((folder / "step").read_text())


def disturbed(rows: int, folder: Path, seconds: float, rng: random.Random) -> tuple[list[int], str]:
    """Kill a training up to three times at random moments, then let it end; return the steps and the digest."""
    folder.mkdir()
    steps = []
    for _ in range(3):
        child = start(rows, folder)
        try:
            child.wait(rng.uniform(0.3, 1.0) * seconds)
            break  # it ended first
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        steps.append(int((folder / "step").read_text()) if (folder / "step").exists() else 0)
    digest, _ = finished(rows, folder)
    return steps, digest


if __name__ == "__main__":
    main()
