"""Run commands and servers of other programs, and keep what they said."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.harness.program import ROOT

LINES = 40  # of an output that are kept, its last
DATED = re.compile(r"^\S*\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s*")


class Transcript:
    """Commands that were run in a folder, with seconds and output; the folder is called WORK there."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder, self.steps = folder, list[dict[str, Any]]()
        self.variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | dict(variables)

    def run(self, *words: str | Path, stdin: str = "", may_fail: bool = False) -> str:
        """Run a command and return what it wrote to standard output."""
        told = self.told(" ".join(Path(words[0]).name if at == 0 else str(w) for at, w in enumerate(words)))
        print(f"  {told}", flush=True)
        begun = time.perf_counter()
        given: dict[str, Any] = {"cwd": self.folder, "env": self.environment(words), "input": stdin}
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **given)
        output = self.told(done.stdout + done.stderr).strip().splitlines()[-LINES:]
        seconds = round(time.perf_counter() - begun, 1)
        self.steps.append({"command": told, "seconds": seconds, "exit": done.returncode, "output": output})
        if done.returncode and not may_fail:
            raise RuntimeError(f"{told}: {' '.join(output[-3:])}")
        return done.stdout

    def environment(self, words: Sequence[str | Path]) -> dict[str, str]:
        """Return the variables of a command; our own programs are those of this repository."""
        own = {"PYTHONPATH": str(ROOT / "src")} if str(words[0]) == sys.executable else {}
        return self.variables | own

    def note(self, command: str, output: Any) -> None:
        """Keep a step that is no command, such as a request."""
        self.steps.append({"command": self.told(command), "output": output})

    def told(self, text: str) -> str:
        """Return a text without the folders of this machine, and without dates."""
        text = text.replace(str(self.folder), "WORK").replace(f"{ROOT}/", "").replace(str(Path.home()), "HOME")
        text = re.sub(r"/\S*/(site-packages|lib/python[\d.]+)/", "", text)
        return "\n".join(DATED.sub("", line) for line in text.splitlines())


class Background:
    """A server that runs while a block does, and is stopped by its end."""

    def __init__(self, transcript: Transcript, words: Sequence[str | Path], ready: str, seconds: float = 120) -> None:
        self.transcript, self.words, self.ready, self.seconds = transcript, words, ready, seconds
        self.log = transcript.folder / f"{Path(words[0]).name}.log"

    def __enter__(self) -> Self:
        told = self.transcript.told(" ".join(map(str, [Path(self.words[0]).name, *self.words[1:]])))
        print(f"  {told} &", flush=True)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                list(map(str, self.words)),
                cwd=self.transcript.folder,
                env=self.transcript.environment(self.words),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        begun = time.monotonic()
        while True:
            try:
                urllib.request.urlopen(self.ready, timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                if self.process.poll() is not None or time.monotonic() - begun > self.seconds:
                    self.process.kill()
                    raise RuntimeError(f"{told} did not start: {self.log.read_text()[-2000:]}") from None
                time.sleep(0.2)
        self.transcript.note(told + " &", f"ready after {time.monotonic() - begun:.1f} s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
