"""A trained Prime serves where torch is not installed: tags, explanations, new labels, saving; torch trained it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra [onnx]")
pytest.importorskip("tokenizers", reason="needs the extra [onnx]")

import longtail as lt
from longtail.errors import ModelError, ParameterError

SAVED = Path(__file__).parents[1] / "storage" / "saved"
EXPECTED = json.loads((SAVED / "expected.json").read_text("utf-8"))
HIDDEN = """
import importlib.util, json, sys
HIDDEN = ("torch", "transformers", "sentence_transformers")
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name.split(".")[0] in HIDDEN else find_spec(name, *a)
import numpy as np
import longtail as lt
from longtail.errors import LongtailError
"""


def run_hidden(code, *args):
    """Run a program from which torch and transformers are hidden; return what it printed last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN + code, *map(str, args)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


SERVE = """
tagger, texts = lt.load(sys.argv[1]), json.loads(sys.argv[2])
top = tagger.predict_topk(texts, k=3)
model = tagger.model_
words = model.explain_words(texts[0], [0])[0]
weights = model.output_weights()[0]
model.add_labels(["entirely new"])
found = model.predict_topk(["entirely new"], k=7)
tagger.model_.save(sys.argv[3])
errors = []
for change in (lambda: model.add_labels(["more"], centroid="text"), lambda: model.fit(["a"], [[1]], ["a"])):
    try:
        change()
    except LongtailError as error:
        errors.append(str(error))
print(json.dumps({"ids": top.ids.tolist(), "scores": top.scores.tolist(), "words": len(words), "n": model.n_labels_,
    "shape": weights.shape, "new": 6 in found.ids[0].tolist(), "errors": errors, "torch": "torch" in sys.modules}))
"""


def test_a_saved_model_does_everything_but_train(tmp_path):
    found = run_hidden(SERVE, SAVED / "prime-with-tree", json.dumps(EXPECTED["texts"]), tmp_path / "again")
    expected = EXPECTED["predictions"]["prime-with-tree"]
    assert found["ids"] == expected["ids"]
    np.testing.assert_allclose(found["scores"], expected["scores"], atol=1e-4)
    assert found["words"] and found["n"] == 7 and found["shape"] == [6, 16] and found["new"] and not found["torch"]
    assert "centroid='text' needs the package 'torch'" in found["errors"][0]
    assert "Prime needs the package 'torch'" in found["errors"][1]
    again = run_hidden("m = lt.load(sys.argv[1]); print(json.dumps([m.n_labels_, m.runs_by()]))", tmp_path / "again")
    assert again == [7, "onnx"]


def test_features_of_a_saved_prime_serve_too():
    code = "t = lt.load(sys.argv[1]); print(json.dumps(t.predict_topk(json.loads(sys.argv[2]), k=3).ids.tolist()))"
    found = run_hidden(code, SAVED / "tree-on-prime-features", json.dumps(EXPECTED["texts"]))
    assert found == EXPECTED["predictions"]["tree-on-prime-features"]["ids"]


def test_torch_is_not_loaded_to_serve(tmp_path):
    code = "import longtail as lt, sys, json\n" + (
        "t = lt.load(sys.argv[1]); t.tag(['a']); print(json.dumps(['torch' in sys.modules, t.model_.runs_by()]))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(SAVED / "prime-with-tree")], capture_output=True, text=True, check=True
    )
    from longtail.encoder.runtime import has_gpu

    assert json.loads(out.stdout) == ([True, "torch"] if has_gpu() else [False, "onnx"])


def test_int8_and_the_number_of_threads_take_effect_after_loading():
    texts = EXPECTED["texts"]
    model = lt.load(SAVED / "prime-with-tree").model_.set_params(runtime="onnx", n_jobs=1)
    exact = model.encode(texts)
    model.set_params(n_jobs=2)
    np.testing.assert_array_equal(model.encode(texts), exact)
    rounded = model.set_params(encoder_precision="int8").encode(texts)
    assert 0 < np.abs(rounded - exact).max() < 0.05
    np.testing.assert_allclose(np.linalg.norm(rounded, axis=1), 1, atol=1e-5)
    with pytest.raises(ParameterError, match="encoder_precision must be one of"):
        model.set_params(encoder_precision="int2").encode(texts)
    with pytest.raises(ParameterError, match="device must be None or 'cpu' with runtime='onnx'"):
        model.set_params(encoder_precision="float32", device="cuda").encode(texts)


def test_a_damaged_encoder_gets_one_sentence():
    part = lt.load(SAVED / "prime-with-tree").model_.to_part()
    name = "encoder.weights.embeddings.word_embeddings.weight"
    broken = type(part)(part.kind, part.params, {**part.arrays, name: part.arrays[name][:-1]})
    model = lt.Prime.from_part(broken).set_params(runtime="onnx")
    with pytest.raises(ModelError, match=r"word_embeddings.weight' must have the shape"):
        model.build()
