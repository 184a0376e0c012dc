"""Importing the package is cheap, and the command line answers at once."""

import subprocess
import sys

import pytest

import longtail as lt

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


@pytest.mark.parametrize("features", [None, lt.BeginningFeatures(beginning=1)])
def test_predicting_does_not_load_scikit_learn(features, tmp_path):
    tagger = lt.Tagger(features=features, calibrate=0)
    tagger.fit(["red apple", "blue car"] * 5, [["a"], ["b"]] * 5).save(tmp_path / "m")
    code = f"import longtail as lt\nassert lt.load({str(tmp_path / 'm')!r}).tag(['an apple'])[0][0].label == 'a'"
    assert not {"sklearn", "torch", "pyarrow"} & loaded_after(code)


def test_loading_a_model_imports_no_other_methods(tmp_path):
    model = lt.Tagger("hybrid", model=lt.Hybrid(experts=("tree", "names")), calibrate=0)
    texts, labels = ["red apple", "blue car"] * 20, [["apple"], ["car"]] * 20
    model.fit(texts, labels, label_texts=["apple", "car"]).save(tmp_path / "m")
    code = f"import longtail as lt\nlt.load({str(tmp_path / 'm')!r}).tag(['an apple'])"
    program = f"import sys\n{code}\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    folders = {name.split(".")[1] for name in out.split() if name.startswith("longtail.")}
    assert "hybrid" in folders and not {"bottleneck", "groups"} & folders
    assert not {"scipy.special", "scipy.optimize", "sklearn", "torch"} & set(out.split())


def test_help_answers_within_its_budget():
    resource = pytest.importorskip("resource")

    def processor_seconds():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    command = [sys.executable, "-m", "longtail", "--help"]
    subprocess.run(command, capture_output=True, check=True)
    times = []
    for _ in range(5):  # processor time: what other programs do on the machine does not count
        started = processor_seconds()
        subprocess.run(command, capture_output=True, check=True)
        times.append(processor_seconds() - started)
    assert min(times) < 0.3, times
