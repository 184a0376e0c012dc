"""Run cases in child processes: a child forked per batch, watched for signals and hangs, its findings gathered.

A child runs many cases, so that one costs about a millisecond. When it dies, the case it was at is run alone in another
child, to see whether it kills by itself, and the cases before it are run again.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import signal
import struct
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from fuzz.case import Case, Source, Target
from fuzz.watch import Verdict, Watch

HANG = 30.0  # seconds without progress after which a child is killed
BATCH = 1000
EXAMPLES = 3  # cases kept of each finding


@dataclass
class Tally:
    """Counts over cases: how they ended, by kind of change, what was found, and the extremes."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    slowest: tuple[float, str] = (0.0, "")  # seconds, case
    largest: tuple[float, int, int, str] = (0.0, 0, 0, "")  # times the allowed memory, growth, bytes of files, case

    def add(self, label: str, target: Target, case: Case, verdict: Verdict) -> None:
        """Count a case."""
        self.cases += 1
        self.outcomes[verdict.outcome] += 1
        self.changes[case.change] += 1
        self.cpu_seconds += verdict.seconds
        self.slowest = max(self.slowest, (round(verdict.seconds, 4), label))
        share = verdict.growth / (target.base + 20 * case.size)
        self.largest = max(self.largest, (round(share, 4), verdict.growth, case.size, label))
        if verdict.is_finding:
            self.note(f"{target.name}: {verdict.outcome} {verdict.place}".strip(), label, verdict.sentence)

    def note(self, key: str, label: str, sentence: str, count: int = 1) -> None:
        """Keep a finding; the same at the same place is counted."""
        known = self.findings.setdefault(key, {"count": 0, "sentence": sentence, "cases": []})
        known["count"] += count
        if len(known["cases"]) < EXAMPLES and label:
            known["cases"].append(label)

    def merge(self, other: dict[str, Any]) -> None:
        """Add the counts of a child, or of an earlier run."""
        self.cases += other["cases"]
        self.outcomes.update(other["outcomes"])
        self.changes.update(other["changes"])
        self.cpu_seconds += other["cpu_seconds"]
        self.slowest = max(self.slowest, tuple(other["slowest"]))
        self.largest = max(self.largest, tuple(other["largest"]))
        for key, finding in other["findings"].items():
            self.note(key, "", finding["sentence"], finding["count"])
            kept = self.findings[key]["cases"]
            kept += [label for label in finding["cases"] if label not in kept][: EXAMPLES - len(kept)]

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON-able values."""
        return {**self.__dict__, "outcomes": dict(self.outcomes), "changes": dict(self.changes)}


class Runner:
    """Runs cases of targets below a folder, best one in memory."""

    def __init__(self, sandbox: Path) -> None:
        self.sandbox = sandbox
        self.shared = mmap.mmap(-1, 16)  # the number of the case a child is at, and how many it has begun
        self.warm: set[str] = set()

    def run(self, source: Source, first: int, last: int) -> Tally:
        """Run the cases `first` to `last - 1` of a source."""
        self.warm_up(source.target)
        tally = Tally()
        todo = [(low, min(low + BATCH, last)) for low in range(first, last, BATCH)]
        while todo:
            low, high = todo.pop(0)
            counted, ended, at = self._child(source, low, high)
            if counted is not None:
                tally.merge(counted)
                continue
            alone, _, _ = self._child(source, at, at + 1)
            where = self.trace() if alone is None else f"not alone: only after the cases from {low} on"
            tally.cases += 1
            tally.changes[source.case(at).change] += 1
            tally.outcomes[ended] += 1
            tally.note(f"{source.target.name}: {ended}", source.label(at), where[:1500])
            if at > low:
                todo.insert(0, (low, at))
            if at + 1 < high:
                todo.insert(0, (at + 1, high))
        return tally

    def warm_up(self, target: Target) -> None:
        """Let a target read sound files here, so that its children have all packages loaded and kernels compiled."""
        if target.name in self.warm or target.warm_up is None:
            return
        self.warm.add(target.name)
        before = Path.cwd()
        with warnings.catch_warnings(), tempfile.TemporaryDirectory(dir=self.sandbox) as name:
            warnings.simplefilter("ignore")
            (Path(name) / "work").mkdir()
            target.warm_up(Path(name) / "work")
            os.chdir(before)

    def _child(self, source: Source, low: int, high: int) -> tuple[dict[str, Any] | None, str, int]:
        """Run cases in a child; return its counts, or None with how it died and at which case."""
        report = self.sandbox / "report.json"
        report.unlink(missing_ok=True)
        self.shared[:16] = struct.pack("<qq", low, 0)
        child = os.fork()
        if child == 0:
            _work(source, range(low, high), self.sandbox, self.shared)
        begun, since, pause = -1, time.monotonic(), 0.002
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            at, now = struct.unpack("<qq", self.shared[:16])
            if ended:
                break
            if now != begun:
                begun, since = now, time.monotonic()
            elif time.monotonic() - since > HANG:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return None, "hang", at
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
        if status == 0 and report.exists():
            return json.loads(report.read_text("utf-8")), "", 0
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
        return None, f"signal {name}" if os.WIFSIGNALED(status) else name, at

    def trace(self) -> str:
        """Return what the last child that died by a signal was doing."""
        file = self.sandbox / "trace.txt"
        return file.read_text("utf-8", "replace") if file.exists() else ""


def _work(source: Source, numbers: range, sandbox: Path, shared: mmap.mmap) -> NoReturn:
    """Run cases in this child process, write the counts and end it."""
    try:
        with (sandbox / "trace.txt").open("w") as trace:
            faulthandler.enable(trace)
            silence()
            watch = Watch(sandbox / "child")
            watch.limit_memory(source.target.base)
            tally = Tally()
            for begun, index in enumerate(numbers):
                shared[:16] = struct.pack("<qq", index, begun)
                case = source.case(index)
                tally.add(source.label(index), source.target, case, watch.judge(source.target, case))
            text = json.dumps(tally.as_dict())
        (sandbox / "report.json").write_text(text, "utf-8")
    except BaseException:
        with (sandbox / "trace.txt").open("w") as trace:
            traceback.print_exc(file=trace)
        os._exit(70)
    os._exit(0)


def silence() -> None:
    """Send what libraries print nowhere, and leave out waiting: no other process changes the files of a case."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    time.sleep = lambda seconds: None
