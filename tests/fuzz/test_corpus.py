"""The fuzzers: past findings stay mended, new cases find nothing, and the watch sees what it is there to see."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the watch reads /proc")


def run_python(*words):
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ended = subprocess.run([sys.executable, *words], cwd=ROOT, env=variables, capture_output=True, text=True)
    return ended.returncode, ended.stdout + ended.stderr


def test_past_findings_stay_mended():
    code, said = run_python("-m", "fuzz", "corpus")
    assert code == 0, said


@pytest.mark.parametrize(
    ("group", "cases"), [("readers", 200), ("sides", 200), ("models", 40), ("commands", 40)], ids=lambda v: str(v)
)
def test_new_cases_find_nothing(group, cases):
    code, said = run_python("-m", "fuzz", group, "--cases", str(cases))
    assert code == 0, said


def test_every_format_and_every_kind_of_model_has_a_target():
    from fuzz.targets import all_targets
    from fuzz.targets.models import KEPT, TRAINED, sound

    from longtail.data import REGISTRY
    from longtail.pipeline import FEATURES, MODELS

    assert set(REGISTRY) <= {*all_targets(), *({"parquet"} if importlib.util.find_spec("pyarrow") is None else ())}
    if importlib.util.find_spec("torch") is not None:
        kinds = {part["kind"] for name in (*TRAINED, *KEPT) for part in sound(name).manifest["parts"].values()}
        assert {*MODELS, *FEATURES, "calibration.v1", "tagger.v1"} <= kinds


ODD = """
import ctypes, os, socket, subprocess, sys, tempfile, time
from pathlib import Path
from fuzz.case import Case, Listed, Target, Wrong
from fuzz.runner import Runner
from longtail.errors import DataError

class Wordy(DataError):
    def __str__(self): return "two\\nlines"
def refuse(sentence): raise DataError(sentence)

ENDS = {
    "read": lambda folder: None,
    "refused": lambda folder: refuse("one sentence."),
    "sentence": lambda folder: (_ for _ in ()).throw(Wordy("two")),
    "exception": lambda folder: {}["x"],
    "wrong": lambda folder: (_ for _ in ()).throw(Wrong("x")),
    "memory": lambda folder: bytearray(100 << 20),
    "write": lambda folder: (folder / "left").write_text("x"),
    "connection": lambda folder: socket.create_connection(("127.0.0.1", 9)),
    "process": lambda folder: subprocess.run(["true"]),
    "slow": lambda folder: any(False for _ in iter(int, 1)),
    "signal SIGSEGV": lambda folder: ctypes.string_at(1),
    "import": lambda folder: __import__("antigravity_that_is_not_there"),
}
def run(case, folder): ENDS[case.main](folder)
runner = Runner(Path(tempfile.mkdtemp()))
for end in ENDS:
    target = Target("odd", "readers", lambda rng: None, run)
    tally = runner.run(Listed(target, [("a", Case("x", {}, "read")), ("b", Case("x", {}, end))]), 0, 2)
    wanted = {"read": 2} if end == "read" else {"read": 1, end: 1}
    assert dict(tally.outcomes) == wanted, (end, tally)
    assert bool(tally.findings) == (end not in ("read", "refused"))
"""


def test_the_watch_sees_what_must_not_happen():
    code, said = run_python("-c", ODD)
    assert code == 0, said


def test_a_case_is_the_same_when_it_is_drawn_again():
    from fuzz.case import draw_case
    from fuzz.targets import all_targets

    for name in ("jsonl", "npz-scipy", "certificates", "model-saved-tree", "commands"):
        target = all_targets()[name]
        assert draw_case(target, 1, 17) == draw_case(target, 1, 17)
        assert draw_case(target, 1, 17) != draw_case(target, 1, 18)
