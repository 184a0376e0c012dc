"""The command line: every command with sound files, and options and arguments drawn from odd values."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Self

import click
import numpy as np

from fuzz.archives import Member, npy_bytes, zip_bytes
from fuzz.case import Case, Target, Wrong
from fuzz.mutations import change_text
from fuzz.targets.models import sound
from fuzz.values import string

FILES: dict[str, bytes] = {
    "rows.jsonl": b"".join(
        b'{"id": "%d", "text": "%s", "labels": ["%s"], "group": "g%d"}\n' % (i, *pair, i % 3)
        for i, pair in enumerate(
            [(b"a red apple", b"fruit"), (b"an old car", b"vehicle"), (b"blue bus", b"colour")] * 6
        )
    ),
    "rows.csv": b"text,labels\na red apple,fruit;colour\nan old car,vehicle\na bus,vehicle\n" * 1,
    "rows.svm": b"".join(b"%d %d:1 %d:0.5\n" % (i % 3, i % 3, 3 + i % 2) for i in range(20)),
    "rows.xmc": b"4 3 2\n0 0:1\n1 1:1\n0 0:1 2:1\n1 1:2\n",
    "groups.csv": b"group,labels\ng0,fruit\ng1,vehicle\ng2,colour;fruit\n",
    "labels.jsonl": b'{"id": "fruit"}\n{"id": "vehicle"}\n{"id": "colour"}\n{"id": "old"}\n',
    "filter.txt": b"0 1\n2 0\n",
    "new.txt": b"an apple\na car\n",
    "layer.npz": zip_bytes([Member("weight.npy", npy_bytes(np.array([[1.0, 0], [0, 1], [-1, -1]])))]),
}
ARGUMENTS: dict[str, tuple[str, ...]] = {  # sound ones, in their order
    "train": ("rows.jsonl", "-o", "new-model"),
    "plan": ("rows.jsonl",),
    "check-labels": ("rows.jsonl", "--folds", "2"),
    "predict": ("m", "new.txt"),
    "evaluate": ("m", "rows.jsonl", "--resamples", "5"),
    "monitor": ("m", "rows.jsonl"),
    "compare": ("m", "m", "rows.jsonl", "--resamples", "5"),
    "audit": ("m", "rows.jsonl"),
    "explain": ("m", "--text", "a red apple"),
    "convert": ("rows.jsonl", "out.csv"),
    "inspect": ("m",),
    "verify": ("m",),
    "impute": ("rows.jsonl", "--groups", "groups.csv", "-o", "out.jsonl"),
    "add-labels": ("m", "labels.jsonl", "-o", "new-model"),
    "demo": ("--data", "nothing"),
}
WEIGHTS = {"train": 3, "predict": 3, "audit": 2, "convert": 3, "demo": 1, "verify": 1}
PATHS = (*FILES, "m", "m/manifest.json", "missing.jsonl", "no/such/folder.jsonl", ".", "", "-", "/dev/null",
         "a\x1b[31mb.csv", "out.npz", "out.parquet", "out.jsonl.gz", "out.xz", "out", "x" * 300,
         "bundled:none", "bundled:")  # fmt: skip
WHOLE = ("0", "1", "2", "3", "-1", "5", "7", "1.5", "x", "", "nan", "١")
HUGE = ("2147483647", "2147483648", "4294967301", "9223372036854775807", "9223372036854775808", "1" + "0" * 400)
REAL = ("0", "1", "0.5", "-1", "-0.0", "nan", "inf", "-inf", "1e300", "1e-300", "1e400", "x", "", "0,5", "2")
WORK = re.compile(r"epoch|iter|round|resample|trees|hidden|width|minute|patience|warm|limit|samples|accumulate|batch")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
CODES = {0, 1, 2, 3, 4, 5, 6, 7, 8}
VERDICTS = (0, 6, 7, 8)  # codes that are no errors


@cache
def options_of(command: str) -> tuple[click.Option, ...]:
    """Return the options of a command, those of models too."""
    from longtail.cli.app import app

    context = click.Context(app.commands[command])
    return tuple(p for p in app.commands[command].get_params(context) if isinstance(p, click.Option))


def make(rng: Random) -> Case:
    """Return a command line, with sound files, one of them changed at times."""
    names = list(ARGUMENTS)
    command = rng.choices(names, [WEIGHTS.get(name, 2) for name in names])[0]
    args = [command, *ARGUMENTS[command]]
    change = "options"
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        args += _draw_option(rng, rng.choice(options_of(command)))
    if rng.random() < 0.25:
        change = "arguments"
        at = rng.randrange(1, len(args))
        args[at : at + 1] = rng.choice(([], [rng.choice(PATHS)], [_word(rng)], [args[at]] * 2))
    if command == "train" and rng.random() < 0.3:
        args += ["--method", rng.choice(("ova", "ova", "dft", "x"))]
    if "dft" in args and "--epochs" not in args:
        args += ["--epochs", "1"]
    files = dict(FILES)
    if rng.random() < 0.2:
        change = "files"
        name = rng.choice([name for name in FILES if name != "layer.npz"])
        files[name] = change_text(rng, files[name])[1]
    files |= {f"m/{name}": raw for name, raw in sound("ova").files().items()}
    return Case(change, files, ".", {"args": args})


def _draw_option(rng: Random, option: click.Option) -> list[str]:
    """Return an option with a value that suits its type, or does not."""
    name = rng.choice((*option.opts, *option.secondary_opts))
    if option.is_flag:
        return [name]
    kind = getattr(option.type, "name", "")
    if rng.random() < 0.1:
        value = _word(rng)
    elif isinstance(option.type, click.Choice):
        value = rng.choice((*map(str, option.type.choices), "x"))
    elif kind in ("integer", "number", "n|auto", "integer,..."):
        huge = () if WORK.search(option.name or "") else HUGE
        value = rng.choice((*WHOLE, *WHOLE, *huge))
    elif kind in ("float", "float,..."):
        value = rng.choice(REAL)
    elif kind in ("path", "file"):
        value = rng.choice(PATHS)
    else:
        value = rng.choice(
            ("auto", "text", "labels", "none", "jsonl", "csv", "npz", "hinge", "1,3", "fruit", _word(rng))
        )
    return [name, value] if rng.random() < 0.8 or len(name) == 2 else [f"{name}={value}"]


def _word(rng: Random) -> str:
    """Return a word as a command line can hold it: any bytes but NUL."""
    raw = string(rng).encode("utf-8", "surrogatepass") if rng.random() < 0.95 else b"\xff\xfe"
    return raw.replace(b"\x00", b"").decode("utf-8", "surrogateescape")


def run(case: Case, folder: Path) -> str:
    """Run a command in the folder, check its exit code and what it says on stderr, and say how it ended."""
    from longtail.cli import main

    os.chdir(folder)
    code: Any = None
    with _Screen() as screen:
        try:
            main([str(arg) for arg in case.options["args"]])
        except SystemExit as end:
            code = end.code
    os.chdir(folder.parent / "work")
    said = screen.text()
    if code not in CODES:
        raise Wrong(f"exit code {code!r}: {said[-300:]}")
    if "Traceback" in said or (code not in VERDICTS and not any(s.startswith("error: ") for s in said.splitlines())):
        raise Wrong(f"exit code {code} and stderr {said[-400:]!r}")
    if code not in VERDICTS and len([line for line in said.splitlines() if "error: " in line]) != 1:
        raise Wrong(f"not one sentence: {said[-400:]!r}")
    if "out of memory" in said and case.change in ("files", "corpus"):
        raise Wrong("out of memory, which nobody asked for")
    odd = CONTROL.search(said)
    if odd:
        raise Wrong(f"the control character {odd[0]!r} goes to the terminal: {said[-300:]!r}")
    return "read" if code == 0 else "refused"


class _Screen:
    """Takes what is written to stderr as a terminal does, and sends stdout nowhere."""

    def __enter__(self) -> Self:
        self.kept = [os.dup(number) for number in (1, 2)]
        self.ours, theirs = os.openpty()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(theirs, 2)
        os.close(nowhere)
        os.close(theirs)
        self.heard: list[bytes] = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        return self

    def __exit__(self, *error: object) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, was in zip((1, 2), self.kept, strict=True):
            os.dup2(was, number)
            os.close(was)
        self.reader.join()
        os.close(self.ours)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(self.ours, 1 << 16):
                self.heard.append(piece)

    def text(self) -> str:
        """Return all that was written."""
        return b"".join(self.heard).decode("utf-8", "replace").replace("\r\n", "\n")


def warm_up(folder: Path) -> None:
    """Run every command once, so that packages are loaded and kernels compiled."""
    with contextlib.suppress(ImportError):
        import cryptography.hazmat.primitives.serialization  # noqa: F401 (of signatures, where it is installed)
    os.environ["TERM"] = "dumb"  # a screen without colours and bars, whose escapes would be our own
    case = Case("none", {**FILES, **{f"m/{name}": raw for name, raw in sound("ova").files().items()}}, ".")
    case.write(folder)
    more = [("train", "rows.svm", "-o", "a"), ("train", "rows.jsonl", "-o", "b", "--method", "ova"),
            ("train", "rows.jsonl", "-o", "c", "--overlap", "2", "--trees", "2"), ("evaluate", "m", "rows.csv"),
            ("inspect", "m", "--json"), ("audit", "--weights", "layer.npz"),
            ("audit", "m", "rows.jsonl", "--report", "a.html"), ("evaluate", "m", "rows.csv", "--report", "e.html"),
            ("evaluate", "m", "rows.csv", "--details"), ("audit", "m", "rows.jsonl", "--details"),
            ("compare", "m", "m", "rows.csv", "--report", "c.html"),
            ("monitor", "m", "rows.csv", "--report", "o.html"),
            ("train", "rows.jsonl", "-o", "e", "--loss", "logistic")]  # fmt: skip
    if _has_torch():
        more.append(("train", "rows.jsonl", "-o", "d", "--method", "dft", "--epochs", "1"))
    for args in [*((name, *words) for name, words in ARGUMENTS.items()), *more]:
        run(Case("none", {}, ".", {"args": args}), folder)


def _has_torch() -> bool:
    from importlib.util import find_spec

    return find_spec("torch") is not None


def targets() -> list[Target]:
    """Return the target."""
    return [Target("commands", "commands", make, run, warm_up, 20, 512 << 20)]
