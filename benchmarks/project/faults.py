"""Failing machines: kills, signals, full disks, second writers and threads, with counts of how each case ended.

    python benchmarks/project/faults.py

Each case runs in a fork of this process, which has everything loaded and compiled. A job replaces what an earlier run
wrote by something else (another seed, another order); after every fault its target must be the old result or the new
one, whole, and the next undisturbed run must leave nothing beside it. Jobs: `train`, `update`, `add-labels`, `impute`
and `convert` as commands, `save` of a loaded model.

Kills at random: the median time of three undisturbed runs is taken first, every kill comes at a moment within it, and
kills go on until the wanted number has landed while the job ran; those that came after its end are counted apart. Each
job does so on two targets of its own at a time. `old_result` and `new_result` say what stood there after the kill,
`neither` must be 0; every few kills, and at the end, an undisturbed run must clean up what kills have left.
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

import errno
import hashlib
import json
import random
import resource
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp

import longtail as lt
from benchmarks.harness.program import make_parser, start_facts, write_results
from longtail.cli import main as command
from longtail.data import write
from longtail.data.synthetic.generate import make_topics
from longtail.errors import LongtailError

MOST_ATTEMPTS = 6  # for each kill that is to land
CLEANED_EVERY = 5  # kills that land: what they leave is looked at, and cleaned by an undisturbed run
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass
class Job:
    """Work that replaces a target by its first or its second result; `results` are the digests of both."""

    name: str
    target: Path
    work: Callable[..., None]  # (version, target=...)
    results: list[str] = field(default_factory=list)
    seconds: float = 0.0  # of an undisturbed run, the median of three
    steps: int = 0

    def at(self, target: Path) -> Job:
        """Return the same job on another target."""
        return replace(self, target=target, work=partial(self.work, target=target))

    def state(self) -> str:
        """Return which result the target is, or what is wrong with it; leftovers do not count."""
        if not self.target.exists() or (self.target.is_dir() and not (self.target / "manifest.json").exists()):
            return "none"  # a first save that was killed: no model yet, and `load` says so
        try:
            digest = digest_of(self.target)
        except Exception as error:
            return f"broken: {error}"
        return str(self.results.index(digest)) if digest in self.results else "broken: neither result"

    def left_over(self) -> list[str]:
        """Return the names of files beside the result."""
        if self.target.is_dir():
            file, named = self.target / "manifest.json", set()
            if file.exists():
                named = {"manifest.json", *json.loads(file.read_text("utf-8"))["files"]}
            return sorted({p.name for p in self.target.iterdir()} - named)
        return sorted(p.name for p in self.target.parent.iterdir() if p.name != self.target.name)


def digest_of(target: Path) -> str:
    """Return the digest of a file, or of a model folder whose files all match their own digests."""
    if target.is_dir():
        lt.load(target)  # raises if a file does not match its digest, or the model is inconsistent
        target = target / "manifest.json"
    return hashlib.sha256(target.read_bytes()).hexdigest()


def run_command(*args: object) -> None:
    """Run a command in this process; SystemExit tells how it ended."""
    try:
        command([str(a) for a in args])
    except SystemExit as end:
        if end.code:
            raise


# --- cases ------------------------------------------------------------------------------------------------------------


def in_fork(work: Callable[[], None], prepare: Callable[[], None] | None = None) -> int:
    """Start work in a fork without output, and return its process; 0, 99 (a raw exception) or a command's exit code."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nowhere, number)
        if prepare is not None:
            prepare()
        work()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0) if isinstance(end.code, int | None) else 98
    except LongtailError as error:
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a process; returns its exit code, or minus its signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_step(number: int, act: Callable[[], None], counted: list[int]) -> Callable[[], None]:
    """Return what arms a fork: `act` is called at the given change of the file system, which are counted."""

    def prepare() -> None:
        def look(event: str, args: tuple[Any, ...]) -> None:
            writes = event == "open" and isinstance(args[2], int) and args[2] & WRITING and str(args[0]) != os.devnull
            if writes or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod"):
                counted[0] += 1
                if counted[0] == number:
                    act()

        sys.addaudithook(look)

    return prepare


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def disk_is_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def check(job: Job, before: str, ends: Counter[str], problems: list[str], what: str) -> None:
    """Count how a case ended: with the old result, with the new one, or with a problem."""
    after = job.state()
    if after.startswith("broken") or (after == "none" and before != "none"):
        problems.append(f"{job.name}, {what}: {after} (was {before})")
    ends["no result yet" if after == "none" else "old result" if after == before else "new result"] += 1


def kills_at_random(job: Job, kills: int, seed: int) -> dict[str, Any]:
    """Kill a job at random moments until so many kills have landed while it ran, on two targets at a time."""
    folder = Path(tempfile.mkdtemp(dir=job.target.parent.parent))
    halves = [(kills + 1) // 2, kills // 2]
    children, pipes = [], []
    for number, wanted in enumerate(halves):
        (folder / str(number)).mkdir()
        twin = job.at(folder / str(number) / job.target.name)
        read, wrote = os.pipe()

        def work(twin: Job = twin, wanted: int = wanted, number: int = number, wrote: int = wrote) -> None:
            counts = kill_one_target(twin, wanted, random.Random(f"{seed} {job.name} {number}"))
            os.write(wrote, json.dumps(counts).encode("ascii"))

        children.append(in_fork(work))
        os.close(wrote)
        pipes.append(read)
    found = []
    for child, pipe in zip(children, pipes, strict=True):
        with os.fdopen(pipe, "rb") as told:
            found.append(json.loads(told.read() or b"{}"))
        ended(child)
    shutil.rmtree(folder)
    out: dict[str, Any] = {"problems": []}
    for counts in found:
        if not counts:
            out["problems"].append(f"{job.name}: the process that kills has failed")
        out["problems"] += counts.pop("problems", [])
        out |= {name: out.get(name, 0) + count for name, count in counts.items()}
    if out.get("landed", 0) < kills:
        out["problems"].append(f"{job.name}: {out.get('landed', 0)} of {kills} kills have landed")
    return {"cases": out.get("landed", 0), **out}


def kill_one_target(job: Job, wanted: int, rng: random.Random) -> dict[str, Any]:
    """Kill a job until so many kills have landed; every tenth run starts without a result."""
    names = ("attempts", "landed", "ended_first", "old_result", "new_result", "no_result_yet", "neither")
    out: dict[str, Any] = dict.fromkeys((*names, "with_leftovers", "leftovers_cleaned", "leftovers_kept"), 0)
    out["problems"] = []
    job.work(0)
    while out["landed"] < wanted and out["attempts"] < MOST_ATTEMPTS * wanted:
        out["attempts"] += 1
        if out["attempts"] % 10 == 9:
            remove(job)
        before = job.state()
        new = 1 if before == "0" else 0
        child = in_fork(lambda new=new: job.work(new))  # type: ignore[misc]
        time.sleep(rng.uniform(0, job.seconds))
        os.kill(child, signal.SIGKILL)
        code = ended(child)
        if code != -signal.SIGKILL:
            out["ended_first"] += 1
            if code != 0:
                out["problems"].append(f"{job.name} ended with {code} before it was killed")
            continue
        out["landed"] += 1
        after = job.state()
        lost = after == "none" and before != "none"
        if lost or after.startswith("broken"):
            out["neither"] += 1
            out["problems"].append(f"{job.name}, killed: {after} (was {before})")
        else:
            out["no_result_yet" if after == "none" else "old_result" if after == before else "new_result"] += 1
        if out["landed"] % CLEANED_EVERY == 0 or out["landed"] == wanted:
            count_leftovers(job, out)
    return out


def count_leftovers(job: Job, out: dict[str, Any]) -> None:
    """Look whether kills have left files beside the result, and whether the next run removes them."""
    if job.left_over():
        out["with_leftovers"] += 1
        left = cleaned(job)
        out["leftovers_kept" if left else "leftovers_cleaned"] += 1
        out["problems"] += left


def signals_at_random(job: Job, signals: int, rng: random.Random, number: int) -> dict[str, Any]:
    """Send SIGINT or SIGTERM at random moments of a job; every tenth starts without a result."""
    ends: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    problems: list[str] = []
    for turn in range(signals):
        if turn % 10 == 9:
            remove(job)
        before = job.state()
        child = in_fork(lambda turn=turn: job.work((turn + 1) % 2))  # type: ignore[misc]
        time.sleep(rng.uniform(0, job.seconds))
        os.kill(child, number)
        code = ended(child)
        codes[str(code)] += 1
        if code not in (0, 128 + number, -number):
            problems.append(f"{job.name} ended with {code} after signal {number}")
        check(job, before, ends, problems, f"signal {int(number)}")
    return {"cases": signals, "exit_codes": dict(codes), "ends": dict(ends), "problems": problems}


def at_every_step(job: Job, act: Callable[[], None], allowed: set[int]) -> dict[str, Any]:
    """Let every change of the file system that a job makes fail in turn."""
    ends: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    problems: list[str] = []
    for number in range(1, job.steps + 1):
        before = job.state()
        new = 1 if before == "0" else 0
        code = ended(in_fork(lambda new=new: job.work(new), at_step(number, act, [0])))  # type: ignore[misc]
        codes[str(code)] += 1
        if code not in allowed:
            problems.append(f"{job.name} step {number} ended with {code}")
        check(job, before, ends, problems, f"step {number}")
    return {"cases": job.steps, "exit_codes": dict(codes), "ends": dict(ends), "problems": problems}


def sizes_refused(job: Job, points: int) -> dict[str, Any]:
    """Let the system refuse files above a size (`ulimit -f`), from nothing to more than the job writes."""
    files = [job.target] if job.target.is_file() else list(job.target.iterdir())
    largest = max(file.stat().st_size for file in files)
    ends: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    problems: list[str] = []
    for number in range(points):
        limit = largest * number // (points - 1) + (number == points - 1)
        before = job.state()
        new = 1 if before == "0" else 0

        def prepare(limit: int = limit) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        code = ended(in_fork(lambda new=new: job.work(new), prepare))  # type: ignore[misc]
        codes[str(code)] += 1
        if code not in (0, 1, 3, 4):
            problems.append(f"{job.name} with files of {limit} bytes ended with {code}")
        check(job, before, ends, problems, f"files of {limit} bytes")
    return {"cases": points, "exit_codes": dict(codes), "ends": dict(ends), "problems": problems}


def remove(job: Job) -> None:
    """Remove the target of a job."""
    if job.target.is_dir():
        shutil.rmtree(job.target)
    else:
        job.target.unlink(missing_ok=True)


def cleaned(job: Job) -> list[str]:
    """Run a job undisturbed; returns what was left beside its result then."""
    if ended(in_fork(lambda: job.work(0))) != 0:
        return [f"{job.name} failed after the faults"]
    return [f"{job.name} left {name}" for name in job.left_over()]


def two_writers(job: Job, trials: int, rng: random.Random) -> dict[str, Any]:
    """Let two processes write to one target at the same time."""
    codes: Counter[str] = Counter()
    problems: list[str] = []
    for _ in range(trials):
        children = []
        for version in (0, 1):
            children.append(in_fork(lambda version=version: job.work(version)))  # type: ignore[misc]
            time.sleep(rng.uniform(0, 0.3 * job.seconds))
        pair = sorted(ended(child) for child in children)
        codes[f"{pair[0]} and {pair[1]}"] += 1
        if pair not in ([0, 0], [0, 4]) or job.state() not in ("0", "1"):
            problems.append(f"{job.name}: two writers ended with {pair}, {job.state()}")
    return {"cases": trials, "exit_codes": dict(codes), "problems": problems}


# --- threads ----------------------------------------------------------------------------------------------------------


def stress(folder: Path, threads: int, forks: int, rounds: int) -> dict[str, Any]:
    """Predict on one loaded model from many threads, and from many forks with threads: all results must be equal."""
    data = make_topics(400, 60, random_state=3)[0]
    tagger = lt.Tagger(calibrate=0, random_state=0, n_jobs=1).fit_dataset(data)
    X, Y = tagger.dataset_rows(data), data.Y
    saved: dict[str, Any] = {
        "tagger": tagger,
        "tree": lt.LabelTreeClassifier(random_state=0, n_jobs=1, max_leaf=8).fit(X, Y),
        "one-vs-all": lt.OneVsAllClassifier(random_state=0, n_jobs=1).fit(X, Y),
    }
    out: dict[str, Any] = {}
    sys.setswitchinterval(1e-5)
    for name, model in saved.items():
        model.save(folder / name)
        rows = list(data.texts or ()) if name == "tagger" else X
        calls = [(k, slice(at, at + n)) for k in (1, 3, 5, 20) for at, n in ((0, 1), (7, 1), (0, 40), (100, 200))]
        expected = [answer(model, rows, *call) for call in calls]
        for where in ("threads", "forks"):
            loaded = lt.load(folder / name)  # what is made at first use is not made yet
            if where == "threads":
                wrong = in_threads(loaded, rows, calls, expected, threads, rounds)
                done = threads * rounds * len(calls)
            else:
                work = lambda: sys.exit(min(in_threads(loaded, rows, calls, expected, 2, rounds), 90))  # noqa: B023, E731
                wrong = sum(code != 0 for code in [ended(child) for child in [in_fork(work) for _ in range(forks)]])
                done = forks * 2 * rounds * len(calls)
            out[f"{name}, {where}"] = {"predictions": done, "wrong": wrong}
    sys.setswitchinterval(0.005)
    return out


def answer(model: Any, rows: Any, k: int, at: slice) -> tuple[bytes, bytes]:
    """Return what a model predicts, as bytes."""
    top = model.predict_topk(rows[at], k=k)
    return np.asarray(top.ids).tobytes(), np.asarray(top.scores).tobytes()


def in_threads(model: Any, rows: Any, calls: list[Any], expected: list[Any], threads: int, rounds: int) -> int:
    """Ask a model from many threads at once, each in an order of its own; returns how many answers differ."""
    wrong = [0] * threads
    ready = threading.Barrier(threads)

    def ask(thread: int) -> None:
        rng = random.Random(thread)
        ready.wait()
        for _ in range(rounds):
            for number in rng.sample(range(len(calls)), len(calls)):
                wrong[thread] += answer(model, rows, *calls[number]) != expected[number]

    workers = [threading.Thread(target=ask, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(wrong)


# --- jobs -------------------------------------------------------------------------------------------------------------


def on_target(work: Callable[[int, Path], None], version: int, target: Path) -> None:
    """Do the work of a job, whose target is the last to be known."""
    work(version, target)


def make_jobs(folder: Path) -> list[Job]:
    """Write the data and return the jobs, each run once with either result."""
    data = make_topics(40, 4, random_state=0)[0]
    names = data.names()
    for version, order in enumerate((slice(None), slice(None, None, -1))):
        rows = np.arange(40)[order]
        write(data.take(rows), folder / f"rows{version}.jsonl")
        with (folder / f"grouped{version}.jsonl").open("w") as file:
            file.writelines(json.dumps({"text": data.texts[i], "group": f"g{i // 2}"}) + "\n" for i in rows)  # type: ignore[index]
    labels = [[names[j] for i in (2 * g, 2 * g + 1) for j in sp.csr_array(data.Y[[i]]).indices] for g in range(20)]
    with (folder / "groups.jsonl").open("w") as file:
        file.writelines(json.dumps({"group": f"g{g}", "labels": labels[g]}) + "\n" for g in range(20))
    (folder / "new0.jsonl").write_text('{"id": "n0", "text": "word"}\n')
    (folder / "new1.jsonl").write_text('{"id": "n1", "text": "word"}\n')
    targets = {}
    files = {"train": "m", "save": "m", "update": "m", "add-labels": "m", "impute": "i.jsonl", "convert": "r.csv.gz"}
    for name, result in files.items():
        (folder / name).mkdir()
        targets[name] = folder / name / result
    fast = ("--calibrate", 0, "--jobs", 1)
    models = [lt.Tagger(calibrate=0, n_jobs=1, random_state=seed).fit_dataset(data) for seed in (0, 1)]
    models[0].save(folder / "base")
    prime = ("--method", "prime", "--encoder", "none", "--epochs", 1, "--device", "cpu", "--max-length", 8)
    run_command("train", folder / "rows0.jsonl", "-o", folder / "prime", *prime, "--jobs", 1)
    given: dict[str, Callable[[int, Path], None]] = {
        "train": lambda v, to: run_command("train", folder / "rows0.jsonl", "-o", to, "--seed", v, *fast),
        "save": lambda v, to: (models[v].save(to), None)[1],
        "update": lambda v, to: run_command(
            "update", folder / "base", folder / f"rows{v}.jsonl", "-o", to, "--jobs", 1
        ),
        "add-labels": lambda v, to: run_command("add-labels", folder / "prime", folder / f"new{v}.jsonl", "-o", to),
        "impute": lambda v, to: run_command(
            "impute", folder / f"grouped{v}.jsonl", "--groups", folder / "groups.jsonl", "-o", to
        ),
        "convert": lambda v, to: run_command("convert", folder / f"rows{v}.jsonl", to),
    }
    jobs = [Job(name, targets[name], partial(on_target, work, target=targets[name])) for name, work in given.items()]
    for job in jobs:
        job.work(0)  # here: forks find everything loaded and compiled
        times = []
        for version in (0, 1, 0):
            started = time.perf_counter()
            if ended(in_fork(lambda job=job, version=version: job.work(version))) != 0:  # type: ignore[misc]
                sys.exit(f"{job.name} fails undisturbed")
            times.append(time.perf_counter() - started)
            if version == len(job.results):
                job.results.append(digest_of(job.target))
        job.seconds = statistics.median(times)
        counted = [0]
        read, wrote = os.pipe()

        def count(job: Job = job, counted: list[int] = counted, wrote: int = wrote) -> None:
            job.work(1)
            os.write(wrote, str(counted[0]).encode("ascii"))

        if ended(in_fork(count, at_step(0, die, counted))) != 0:
            sys.exit(f"{job.name} fails undisturbed")
        job.steps = int(os.read(read, 20))
        os.close(read)
        os.close(wrote)
    return jobs


def main() -> None:
    parser = make_parser(__doc__, "faults.json")
    parser.add_argument("--kills", type=int, default=1000, help="SIGKILLs that land while a job runs, over all jobs")
    parser.add_argument("--signals", type=int, default=200, help="SIGINTs and SIGTERMs, over all jobs")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    facts = start_facts(args, {})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = make_jobs(folder)
        facts["jobs"] = {job.name: {"seconds": round(job.seconds, 3), "file_changes": job.steps} for job in jobs}
        cases: dict[str, Any] = {}
        for job in jobs:
            each = {
                "killed_at_random": kills_at_random(job, -(-args.kills // len(jobs)), args.seed),
                "killed_at_every_file_change": at_every_step(job, die, {0, -signal.SIGKILL}),
                "disk_full_at_every_file_change": at_every_step(job, disk_is_full, {0, 1, 3, 4}),
                "file_sizes_refused": sizes_refused(job, 20),
                "SIGINT": signals_at_random(job, args.signals // 2 // len(jobs), rng, signal.SIGINT),
                "SIGTERM": signals_at_random(job, args.signals // 2 // len(jobs), rng, signal.SIGTERM),
                "two_writers": two_writers(job, 10, rng),
            }
            cases[job.name] = {**each, "left_after_the_next_run": cleaned(job)}
            print(job.name, json.dumps(each["killed_at_random"]), flush=True)
            print(job.name, json.dumps({kind: counts["cases"] for kind, counts in each.items()}), flush=True)
        facts["cases"] = cases
        facts["threads"] = stress(folder, threads=16, forks=8, rounds=3)
    per_kind: Counter[str] = Counter()
    for each in cases.values():
        per_kind.update({kind: counts["cases"] for kind, counts in each.items() if isinstance(counts, dict)})
    facts["counts"] = dict(per_kind)
    problems = [
        p for each in cases.values() for c in each.values() for p in (c["problems"] if isinstance(c, dict) else c)
    ]
    wrong = sum(stressed["wrong"] for stressed in facts["threads"].values())
    facts["problems"], facts["wrong_predictions"] = len(problems), wrong
    facts["predictions"] = sum(stressed["predictions"] for stressed in facts["threads"].values())
    print(json.dumps(facts["counts"]), json.dumps(facts["threads"]), *problems[:20], sep="\n")
    write_results(facts, args.output)
    if problems or wrong:
        sys.exit("something broke")


if __name__ == "__main__":
    main()
