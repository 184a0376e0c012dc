"""Models that an earlier version saved load and predict the same: one small folder of every released format."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import longtail as lt

SAVED = Path(__file__).parent / "saved"
EXPECTED = json.loads((SAVED / "expected.json").read_text("utf-8"))
NEED_ONE_OF = {
    "dft": ("torch",),
    "prime-with-tree": ("torch", "onnxruntime"),
    "tree-on-prime-features": ("torch", "onnxruntime"),
}


def skip_without_extra(name):
    needed = NEED_ONE_OF.get(name, ())
    if needed and not any(importlib.util.find_spec(package) for package in needed):
        pytest.skip(f"needs one of the packages {needed}")


@pytest.mark.parametrize("name", sorted(EXPECTED["predictions"]))
def test_it_loads_and_predicts_the_same(name):
    skip_without_extra(name)
    expected = EXPECTED["predictions"][name]
    tagger = lt.load(SAVED / name)
    top = tagger.predict_topk(EXPECTED["texts"], k=3)
    assert top.ids.tolist() == expected["ids"]
    assert np.allclose(top.scores, expected["scores"], atol=1e-5)  # another machine may round otherwise
    assert [list(labels) for labels in tagger.predict(EXPECTED["texts"])] == expected["sets"]


def test_every_saved_folder_is_looked_at():
    assert {folder.name for folder in SAVED.iterdir() if folder.is_dir()} == set(EXPECTED["predictions"])


@pytest.mark.parametrize("name", sorted(EXPECTED["predictions"]))
def test_it_tells_the_settings_that_were_in_effect(name):
    skip_without_extra(name)
    model = lt.load(SAVED / name).model_
    given, used = model.saved_params(), model.effective_params()
    assert json.loads(json.dumps(used, allow_nan=False)) and set(used) <= set(given)
    assert "auto" not in used.values() and None not in used.values()
    for param, value in given.items():  # what was given is what was used
        if value is not None and param in used and (type(model).__name__, param) != ("BottleneckClassifier", "k"):
            assert used[param] == value or value == "auto"
