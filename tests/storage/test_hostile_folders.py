"""Every array and parameter of every kind of part is changed in many ways: refused in one sentence, or harmless."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.storage.hostile import hostile_parts

import longtail as lt
from longtail.errors import LongtailError, ModelError
from longtail.pipeline import FEATURES, MODELS, folder_schemas, part_schemas
from longtail.storage import Part, check_part, load_folder

SAVED = Path(__file__).parent / "saved"
FOLDERS, SCHEMAS = folder_schemas(), part_schemas()
FOLDER_NAMES = (
    "one-vs-all",
    "overlapping-tree",
    "tree",
    "dft",
    "prime-with-tree",
    "tree-on-prime-features",
    "tree-with-vocabulary",
    "tree-beginnings",
    "hybrid-beginnings",
    "hybrid-boosted",
)
NEED_TORCH = ("dft", "prime-with-tree", "tree-on-prime-features")
TEXTS = ["a red apple", "one fast old car", ""]
EVERY = {
    "prime-with-tree": 29,
    "tree-on-prime-features": 29,
    "dft": 3,
}  # of the accepted changes that are tried: torch is slow
HAS_TORCH = importlib.util.find_spec("torch") is not None


def parts_of(name):
    folder = load_folder(SAVED / name, FOLDERS)
    return {which: Part(part.kind, part.params, part.arrays) for which, part in folder.parts.items()}


def accepted(name):
    """Yield (part, change, changed part) for the changes that the gate lets through."""
    for which, part in parts_of(name).items():
        for change, changed, _ in hostile_parts(part, SCHEMAS[part.kind]):
            try:
                check_part(changed, SCHEMAS[part.kind])
            except ValueError:
                continue
            yield which, change, changed


@pytest.mark.parametrize("name", FOLDER_NAMES)
def test_the_gate_refuses_in_one_sentence_or_lets_through(name):
    seen = refused = 0
    for which, part in parts_of(name).items():
        for change, changed, must_refuse in hostile_parts(part, SCHEMAS[part.kind]):
            seen += 1
            try:
                check_part(changed, SCHEMAS[part.kind])
            except ValueError as problem:
                assert type(problem).__name__ == "PartProblem", f"{which}: {change}: {problem!r}"
                assert "\n" not in str(problem) and len(str(problem)) < 500
                refused += 1
            else:
                assert not must_refuse, f"{which}: {change} was let through"
    assert seen > 500 and refused > seen / 2


def ask_vocabulary(part):
    """Ask a vocabulary for everything that it holds."""
    vocabulary = lt.Vocabulary.from_part(Part(part.kind, part.params, part.arrays, checked=True))
    try:
        vocabulary.ancestors([*vocabulary.ids, "x"])
        [vocabulary.name(concept.id) for concept in vocabulary]
        vocabulary.candidates("Fruit")
    except LongtailError:
        pass


def try_accepted(name):
    """Load and ask the model with every change that was let through; print what came out wrong. Runs in a child."""
    folder = load_folder(SAVED / name, FOLDERS)
    tried = 0
    for number, (which, change, changed) in enumerate(accepted(name)):
        if number % EVERY.get(name, 1):
            continue
        print(f"{which}: {change}", flush=True)
        tried += 1
        if which == "vocabulary":
            ask_vocabulary(changed)
        known = FEATURES if which == "features" else MODELS
        if changed.kind not in known:
            continue
        try:
            made = known[changed.kind].from_part(Part(changed.kind, changed.params, changed.arrays, checked=True))
            if which == "features":
                made.transform(TEXTS)
            elif made.reads_texts:
                made.predict_topk(TEXTS, k=3)
            else:
                rows = np.ones((3, min(made.n_features_in_, 1 << 16)), np.float32)
                made.predict_topk(rows, k=3)
                made.predict_topk(rows[:1], k=3)
        except LongtailError:
            pass
    print("tried", tried, "of", folder.path.name)


@pytest.mark.parametrize("name", FOLDER_NAMES)
def test_what_is_let_through_predicts_or_is_refused(name):
    if name in NEED_TORCH and not HAS_TORCH:
        pytest.skip("needs the extra [torch]")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)); "
    code = f"{limit}from tests.storage.test_hostile_folders import try_accepted; try_accepted({name!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    last = done.stdout.strip().split("\n")[-1]
    assert done.returncode == 0 and last.startswith("tried"), f"after {last!r}: {done.returncode} {done.stderr[-2000:]}"


def damaged(tmp_path, change):
    """Return a copy of a small Tagger's folder whose manifest was changed."""
    folder = tmp_path / "m"
    lt.Tagger(calibrate=0).fit(["red apple", "blue car"] * 5, [["a"], ["b"]] * 5).save(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


ODD = (None, True, -1, 2**70, 1.5, "x", "../x", [], [1], {}, {"a": 1}, {"a": {}}, {"x": {"bytes": "1", "sha256": 5}})


@pytest.mark.parametrize("entry", ["format", "version", "kind", "parts", "files", "labels", "seed", "data", "held_out"])
def test_odd_entries_of_a_manifest_are_refused(tmp_path, entry):
    folder = damaged(tmp_path, lambda manifest: None)
    sound = json.loads((folder / "manifest.json").read_text())
    for odd in ODD:
        (folder / "manifest.json").write_text(json.dumps({**sound, entry: odd}))
        try:
            lt.load(folder)
        except ModelError as error:
            assert "\n" not in str(error)
        else:
            assert entry in ("seed", "data", "held_out"), f"{entry} = {odd!r} was let through"


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "NaN", '{"format": "longtail-model", "version": NaN}']
)
def test_a_manifest_that_is_hard_to_read_is_refused(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ModelError):
        lt.load(tmp_path)


@pytest.mark.parametrize(
    "line",
    ["[]", "1", '"a"', "{}", '{"name": 1}', '{"name": "a", "count": -1}', '{"name": "a", "count": "5"}', "{",
     '{"name": "a", "count": 1e400}', '{"name": "a", "more": 1}', '{"name": "a", "text": []}', '{"count": 1}'],
)  # fmt: skip
def test_odd_label_records_are_refused(tmp_path, line):
    from longtail.storage import save_folder
    from longtail.storage.manifest import MANIFEST

    tagger = lt.Tagger(calibrate=0).fit(["red apple", "blue car"] * 5, [["a"], ["b"]] * 5)
    tagger.save(tmp_path / "m")
    folder = load_folder(tmp_path / "m", FOLDERS)
    save_folder(tmp_path / "odd", "tagger.v1", folder.parts, folder.labels, {"seed": 0})
    manifest = json.loads((tmp_path / "odd" / MANIFEST).read_text())
    raw = ('{"count": 5, "name": "a"}\n' + line + "\n").encode()
    rewrite(tmp_path / "odd", manifest, manifest["labels"], raw)
    with pytest.raises(ModelError, match="line 2"):
        lt.load(tmp_path / "odd")


def rewrite(folder, manifest, name, raw):
    """Give a file other bytes, and the manifest their digest."""
    import hashlib

    (folder / name).write_bytes(raw)
    manifest["files"][name] = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


HEADERS = [
    {"idf": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 0]}},
    {"idf": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
    {"idf": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}},
    {"idf": {"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]}},
    {"idf": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}},
    {"idf": {"dtype": "F32", "shape": [1] * 70, "data_offsets": [0, 4]}},
    {"idf": {"dtype": "F32", "shape": [2**31], "data_offsets": [0, 2**33]}},
    {"idf": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}},
    {"idf": {"dtype": "F32", "shape": [1], "data_offsets": [0]}},
    {"idf": {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}},
    {"idf": {"dtype": ">f4", "shape": [1], "data_offsets": [0, 4]}},
    {"idf": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]}},
    {"idf": {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}},
    {"idf": {"dtype": "F32", "shape": [1], "data_offsets": [1, 5]}},
    {"idf": [1]},
    {"idf": None},
    [],
    "x",
]


@pytest.mark.parametrize("header", HEADERS)
def test_odd_headers_of_arrays_are_refused(tmp_path, header):
    folder = damaged(tmp_path, lambda manifest: None)
    manifest = json.loads((folder / "manifest.json").read_text())
    text = json.dumps(header).encode()
    raw = len(text).to_bytes(8, "little") + text + bytes(64)
    rewrite(folder, manifest, manifest["parts"]["features"]["file"], raw)
    with pytest.raises(ModelError):
        lt.load(folder)


def test_a_vocabulary_that_would_hang_or_crash_is_refused():
    part = lt.TfidfFeatures().fit(["red apple"]).to_part()
    for terms in (
        [b"red apple"],
        [b" "],
        [b"a", b" b"],
        [b"a  b"],
        [b"a", b"\xff"],
        ["é".encode()[:1], "é".encode()[1:]],
    ):
        raw = b"".join(terms)
        arrays = {
            "vocabulary.bytes": np.frombuffer(raw, np.uint8),
            "vocabulary.offsets": np.cumsum([0, *map(len, terms)]),
            "idf": np.ones(len(terms), np.float32),
        }
        with pytest.raises(ModelError, match="vocabulary"):
            lt.TfidfFeatures.from_part(Part(part.kind, part.params, arrays))


def test_a_wide_beam_takes_no_more_memory_than_the_tree_has_nodes(tmp_path):
    X = np.eye(40, dtype=np.float32)
    model = lt.LabelTreeClassifier(max_leaf=4, branching=4).fit(X, X)
    model.beam = model.trees_[0].n_leaves
    expected = model.predict_topk(X, k=3)
    model.beam = 1 << 20
    model.save(tmp_path / "m")
    loaded = lt.load(tmp_path / "m")
    for found in (loaded.predict_topk(X, k=3), loaded.predict_topk(X[:1], k=3)):
        assert np.array_equal(found.ids, expected.ids[: len(found.ids)])


def test_every_kind_that_is_loaded_has_a_schema():
    for kind, cls in {**MODELS, **FEATURES}.items():
        assert cls.schema is not None and cls.schema.kind == kind and SCHEMAS[kind] is cls.schema
    assert {kind for folder in FOLDERS.values() for kinds in folder.parts.values() for kind in kinds} == set(SCHEMAS)


def test_every_kind_that_the_code_saves_has_a_schema():
    import re

    from longtail.encoder import TEXT_ENCODER_SCHEMA
    from longtail.hybrid.schema import FROZEN_ENCODER_SCHEMA
    from longtail.name_matches import NAME_MATCHES_SCHEMA
    from longtail.training import CHECKPOINT

    known = {*SCHEMAS, TEXT_ENCODER_SCHEMA.kind, FROZEN_ENCODER_SCHEMA.kind, NAME_MATCHES_SCHEMA.kind, CHECKPOINT.kind}
    source = Path(lt.__file__).parent
    named = {
        kind
        for file in source.rglob("*.py")
        for kind in re.findall(r'["\'\x60]([a-z][a-z-]*\.v\d+)["\'\x60]', file.read_text("utf-8"))
    }
    elsewhere = {"audit.v1", "certificates.v1"}  # files of an audit, no parts
    assert named - known - set(FOLDERS) - elsewhere <= {"name.v1", "thing.v1", "a.v1"}  # examples in docstrings


@pytest.mark.parametrize("model", [lt.LabelTreeClassifier(link="noop", n_jobs=1), lt.OneVsAllClassifier(n_jobs=1)])
def test_scores_beyond_all_numbers_are_refused(model, tmp_path):
    """Weights and rows that are allowed can add up to more than a float holds."""
    eye = np.eye(40, dtype=np.float32)
    model.fit(eye, eye)
    model.normalize = False
    model.save(tmp_path / "m")
    loaded = lt.load(tmp_path / "m")
    assert np.isfinite(loaded.predict_topk(eye, k=1).scores).all()
    for rows in (eye * 3e38, eye[:1] * 3e38):
        with pytest.raises(ModelError, match=r"the scores of row 0 are not finite: .* too large"):
            loaded.predict_topk(rows, k=1)
