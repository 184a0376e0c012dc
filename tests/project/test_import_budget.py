"""Importing the package is cheap, and the command line answers at once."""

import subprocess
import sys
import time

HEAVY = ("torch", "numba", "scipy", "sklearn", "pyarrow", "rich", "sentence_transformers", "pandas")


def loaded_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in out.stdout.split("\n")[-2].split()}


def test_import_longtail_loads_nothing_heavy():
    assert not set(HEAVY) & loaded_after("import longtail")
    assert "numpy" not in loaded_after("import longtail")


def test_help_loads_nothing_heavy():
    code = "from longtail.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    assert not set(HEAVY) & loaded_after(code)


def test_no_model_loads_torch():
    code = "import longtail as lt\nlt.Tagger, lt.OneVsAllClassifier, lt.TfidfFeatures, lt.EncoderFeatures, lt.load"
    assert "torch" not in loaded_after(code)


def test_help_answers_within_its_budget():
    command = [sys.executable, "-m", "longtail", "--help"]
    subprocess.run(command, capture_output=True, check=True)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.3, times
