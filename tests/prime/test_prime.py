"""Prime from texts to labels: learning, saving, resuming, new labels, the classifier stage, bad input."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from longtail.audit.read_weights import read_layer
from longtail.errors import DataError, MissingExtraError, ModelError, ParameterError
from longtail.pipeline import folder_schemas
from longtail.prime.estimator import Prime
from longtail.prime.features import PrimeFeatures
from longtail.prime.settings import resolve_settings
from longtail.storage import load_folder
from longtail.tree import LabelTreeClassifier

HELD = [3, 17]
SMALL = {"width": 32, "layers": 1, "heads": 2, "dropout": 0.1}


def world(n_rows=200, n_labels=40, seed=0):
    """Texts of words, labels named by two words; a text has words of its labels' names and of private jargon."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnoprstuvw"))
    words = ["".join(rng.choice(letters, 5)) for _ in range(3 * n_labels)]
    names = [f"{words[3 * i]} {words[3 * i + 1]}" for i in range(n_labels)]
    texts, Y = [], np.zeros((n_rows, n_labels), dtype=np.float32)
    for row in range(n_rows):
        chosen = rng.choice(n_labels, size=rng.integers(1, 3), replace=False)
        Y[row, chosen] = 1
        said = [words[3 * label + int(rng.integers(3))] for label in chosen for _ in range(2)]
        texts.append(" ".join(rng.permutation([*said, words[int(rng.integers(len(words)))]])))
    return texts, sp.csr_array(Y), names


def small(**params):
    settings = {"epochs": 3, "lr": 3e-3, "batch_size": 50, "device": "cpu", "random_state": 0, "n_jobs": 1, **params}
    return Prime(SMALL, **settings)


def load(path):
    return Prime.from_part(load_folder(path, folder_schemas()).parts["model"])


@pytest.fixture(scope="module")
def data():
    return world()


@pytest.fixture(scope="module")
def fitted(data):
    return small(epochs=10).fit(*data)


def test_it_learns_200_rows_by_heart(data, fitted):
    texts, Y, _ = data
    assert fitted.score(texts, Y) > 0.95
    losses = [record["loss"] for record in fitted.history_]
    assert losses[-1] < 0.3 * losses[0]
    top = fitted.predict_topk(texts[:3], k=50)
    assert top.ids.shape == (3, 50)
    assert (top.ids[:, 40:] == -1).all()
    assert (np.diff(top.scores[:, :40], axis=1) <= 0).all()
    assert not {0, 1} & set(fitted.predict_topk(texts, k=3, deny=[0, 1]).ids.ravel())
    rows = fitted.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(fitted.predict_topk(rows, k=3).ids, fitted.predict_topk(texts, k=3).ids)


@pytest.mark.parametrize("preset", ["prime-lite", "dexa", "ngame"])
def test_every_preset_learns(data, preset):
    texts, Y, names = data
    model = small(preset=preset, epochs=6).fit(texts, Y, names)
    assert model.score(texts, Y) > 0.5
    kinds = {"prime-lite": "network", "dexa": "sum", "ngame": "text"}
    assert model.network_.prototype == kinds[preset]


def test_saved_and_loaded_it_predicts_the_same(data, fitted, tmp_path):
    texts, Y, _ = data
    fitted.calibrate(texts, Y)
    loaded = load(fitted.save(tmp_path / "model"))
    expected, found = fitted.predict_topk(texts, k=5), loaded.predict_topk(texts, k=5)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert loaded.saved_params() == fitted.saved_params()
    again = loaded.to_part()
    for name, array in fitted.to_part().arrays.items():
        assert array.tobytes() == again.arrays[name].tobytes(), name


def test_same_seed_same_model(data):
    texts, Y, names = data
    parts = [clone(small(epochs=2)).fit(texts, Y, names).to_part() for _ in range(2)]
    for name, array in parts[0].arrays.items():
        assert array.tobytes() == parts[1].arrays[name].tobytes(), name


class Stopped(Exception):
    pass


@pytest.mark.parametrize("stop", [3, 7, 10])
def test_a_stopped_training_ends_with_the_same_weights(data, tmp_path, stop):
    texts, Y, names = data
    params = {"epochs": 3, "validation": 0.1, "accumulate": 1, "checkpoint_minutes": 0.0}
    expected = small(**params).fit(texts, Y, names)

    def kill(done, total):
        assert total == 12
        if done == stop:
            raise Stopped

    stopped = small(**params, checkpoint=tmp_path)
    with pytest.raises(Stopped):
        stopped.fit(texts, Y, names, progress=kill)
    assert list(tmp_path.iterdir())
    seen = []
    resumed = small(**params, checkpoint=tmp_path).fit(texts, Y, names, progress=lambda done, _: seen.append(done))
    assert seen[0] == stop  # the step that was stopped after was not yet written down
    assert resumed.history_ == expected.history_
    for name, array in expected.to_part().arrays.items():
        assert array.tobytes() == resumed.to_part().arrays[name].tobytes(), name
    assert list(tmp_path.iterdir())  # what comes next may be interrupted as well
    again = small(**params, checkpoint=tmp_path).fit(texts, Y, names, progress=lambda done, _: seen.append(-done))
    assert seen[-1] > 0  # no step was made: the network was there
    np.testing.assert_array_equal(again.output_weights()[0], expected.output_weights()[0])
    again.save(tmp_path / "saved")
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]  # done: the checkpoint is gone


def test_a_checkpoint_of_other_data_is_refused(data, tmp_path):
    texts, Y, names = data

    def kill(done, total):
        if done == 3:
            raise Stopped

    with pytest.raises(Stopped):
        small(checkpoint=tmp_path, checkpoint_minutes=0.0).fit(texts, Y, names, progress=kill)
    with pytest.raises(ModelError, match="holds the checkpoint of a training on other data or with other settings"):
        small(checkpoint=tmp_path).fit(texts[:-1], Y[:-1], names)


@pytest.mark.parametrize("rule", ["momentum", "mean"])
def test_every_label_of_every_query_moves_its_centroid(rule):
    texts, Y, names = world(n_rows=120, n_labels=15)
    still = {
        "epochs": 1,
        "batch_size": 32,
        "lr": 1e-12,
        "momentum": 0.9,
        "device": "cpu",
        "random_state": 3,
        "n_jobs": 1,
        "mixed_precision": False,
    }
    encoder = {**SMALL, "dropout": 0.0}  # queries stay where they are, so that the steps can be made again
    model = Prime(encoder, "prime-lite", centroid_rule=rule, **still).fit(texts, Y, names)
    queries = model.encode(texts).astype(np.float64)
    members = [np.flatnonzero(column) for column in Y.toarray().T]
    expected = np.array([queries[rows].mean(axis=0) for rows in members])
    if rule == "momentum":
        for row in np.random.default_rng([3, 0, 0]).permutation(120):  # the order of an epoch without clusters
            for label in Y[[row]].indices:
                expected[label] = 0.9 * expected[label] + 0.1 * queries[row]
    np.testing.assert_allclose(
        model.network_.centroids.values.numpy(), expected, atol=1e-4
    )  # the first means are of float16


def test_early_stopping_keeps_the_best_epoch(data):
    texts, Y, names = data
    seen = []
    model = small(epochs=12, lr=5e-3, validation=0.2, patience=1).fit(texts, Y, names, on_epoch=seen.append)
    assert seen == model.history_
    assert len(seen) < 12
    assert seen[-1]["best"] is False
    assert max(seen, key=lambda record: record["p@1"])["best"]


def test_classifier_stage_and_fusion(data, fitted, tmp_path):
    texts, Y, names = data
    model = small(epochs=5, classifier=True, validation=0.1).fit(texts, Y, names)
    assert model.fusion_ in (0, 0.25, 0.5, 0.75, 1)
    assert load(model.save(tmp_path / "model")).fusion_ == model.fusion_
    before = small(epochs=1, lr=1e-4).fit(texts, Y, names)
    p_before = before.score(texts, Y)
    vectors = before.output_weights()[0].copy()
    before.fit_classifier(texts, Y, fusion=1.0, epochs=20, batch_size=50, lr=1e-2)
    assert before.score(texts, Y) > p_before
    assert not np.allclose(before.output_weights()[0], vectors)
    with pytest.raises(ParameterError, match="fusion must be a number between 0 and 1; got 2"):
        before.fit_classifier(texts, Y, fusion=2)


@pytest.fixture(scope="module")
def without_two(data):
    """A model that has never seen labels 3 and 17."""
    texts, Y, names = data
    kept = [label for label in range(40) if label not in HELD]
    rows = np.flatnonzero(np.asarray(Y[:, kept].sum(axis=1)).ravel())
    return small(epochs=10).fit([texts[i] for i in rows], Y[rows][:, kept], [names[i] for i in kept])


@pytest.mark.parametrize("centroid", ["neighbours", "text", "none"])
def test_new_labels_by_text_alone(data, without_two, tmp_path, centroid):
    texts, Y, names = data
    held, model = HELD, load_copy(without_two)
    before = model.predict_topk(texts, k=5)
    assert model.add_labels([names[i] for i in held], centroid) is model
    assert model.n_labels_ == 40
    assert model.label_counts_[38:].tolist() == [0, 0]
    only_new = Y[:, held].toarray().argmax(axis=1)
    asked = [i for i in range(200) if Y[[i]][:, held].nnz == 1]
    found = model.predict_topk([names[held[j]] for j in (0, 1)], k=1).ids.ravel()
    assert found.tolist() == [38, 39]  # a text that is the new label's name finds it
    ranked = model.predict_topk([texts[i] for i in asked], k=2, allow=[38, 39]).ids[:, 0] - 38
    assert (ranked == only_new[asked]).mean() > 0.5
    loaded = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict_topk(texts, k=3).ids, model.predict_topk(texts, k=3).ids)
    np.testing.assert_array_equal(model.predict_topk(texts, k=5, deny=[38, 39]).ids, before.ids)


@pytest.mark.parametrize("fusion", [0.0, 0.3, 1.0])
def test_the_share_of_the_classifier_is_the_one_asked_for(data, fusion):
    texts, Y, names = data
    alone = small().fit(texts, Y, names)
    model = small(classifier=True, fusion=fusion, validation=0.0).fit(texts, Y, names)
    assert model.fusion_ == fusion
    prototypes, mixed = alone.output_weights()[0], model.output_weights()[0]
    if fusion == 0.0:
        np.testing.assert_array_equal(mixed, prototypes)
    else:
        classes = (mixed - (1 - fusion) * prototypes) / fusion
        np.testing.assert_allclose(np.linalg.norm(classes, axis=1), 1.0, atol=1e-5)
        assert np.abs(classes - prototypes).max() > 0.01
    with pytest.raises(ParameterError, match="fusion must be a number between 0 and 1; got 2"):
        small(classifier=True, fusion=2).fit(texts, Y, names)


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_smaller_label_vectors_rank_almost_the_same(data, fitted, precision, tmp_path):
    texts, Y, names = data
    model = small(epochs=10, precision=precision).fit(texts, Y, names)
    assert model.stored_["vectors"].dtype == precision
    same = (model.predict_topk(texts, k=1).ids == fitted.predict_topk(texts, k=1).ids).mean()
    assert same > 0.95
    model.add_labels(["brand new"])
    assert load(model.save(tmp_path / "model")).stored_["vectors"].dtype == precision


def test_audit_reads_its_label_vectors(fitted):
    W, bias = fitted.output_weights()
    assert W.shape == (40, 32)
    assert bias is None
    assert read_layer(fitted)[0].shape == (40, 32)


def test_without_faiss_an_index_gets_one_sentence(data, fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    model = load_copy(fitted)
    model.set_params(index="hnsw")
    with pytest.raises(MissingExtraError, match=r"pip install 'longtail\[ann\]'"):
        model.predict_topk(["a"])


@pytest.mark.parametrize("index", ["hnsw", "ivf"])
def test_an_index_finds_what_the_exact_search_finds(data, fitted, index):
    pytest.importorskip("faiss")
    texts, _, _ = data
    model = load_copy(fitted).set_params(index=index)
    same = (model.predict_topk(texts, k=1).ids == fitted.predict_topk(texts, k=1).ids).mean()
    assert same > 0.9


def test_parameters_changed_after_training_take_effect_or_are_refused(data, fitted):
    texts, _, _ = data
    model = load_copy(fitted)
    before = model.predict_topk(texts, k=3)
    with pytest.raises(ParameterError, match=r"index must be one of .*; got 'hnws'. Did you mean 'hnsw'"):
        model.set_params(index="hnws").predict_topk(texts)
    with pytest.raises(ParameterError, match=r"precision must be one of"):
        model.set_params(index="exact", precision="int9").predict_topk(texts)
    model.set_params(precision="int8")
    assert (model.predict_topk(texts, k=1).ids == before.head(1).ids).mean() > 0.95
    assert model.stored_["vectors"].dtype == "int8"
    assert model.add_labels(["brand new"]).stored_["scales"].shape == (41,)  # the old and the new are kept alike


def load_copy(model):
    return Prime.from_part(model.to_part()).set_params(device="cpu")


def test_bad_input_gets_one_sentence(data, tmp_path):
    texts, Y, names = data
    cases = [
        (DataError, "texts must hold at least one text; got 0", ([], Y[:0], names)),
        (DataError, "texts must not be empty; the one of row 1 is", (["a", " ", *texts[2:]], Y, names)),
        (DataError, "texts and Y must have as many rows; got 199 and 200", (texts[1:], Y, names)),
        (DataError, r"one text per label \(40\); got 39", (texts, Y, names[1:])),
        (DataError, "label_texts must hold one text per label; got None", (texts, Y, None)),
        (DataError, "label 2 has ''", (texts, Y, [*names[:2], "", *names[3:]])),
        (DataError, "label 2 has None", (texts, Y, [*names[:2], None, *names[3:]])),
        (DataError, "every row is empty", (texts, sp.csr_array(Y.shape), names)),
        (DataError, "texts must be a list of strings; got one string", ("text", Y, names)),
    ]
    for error, sentence, given in cases:
        with pytest.raises(error, match=sentence):
            small().fit(*given)
    for sentence, params in [
        ("preset must be one of", {"preset": "primo"}),
        (r"margin must be a number or a pair \(low, high\); got 'x'", {"margin": "x"}),
        ("loss_weights must be three numbers", {"loss_weights": (1, 2)}),
        ("precision must be one of", {"precision": "int4"}),
        ("epochs must be an integer >= 0; got -1", {"epochs": -1}),
        ("encoder must be a name, a folder, a dict or None; got 3", {"encoder": 3}),
    ]:
        with pytest.raises(ParameterError, match=sentence):
            clone(small()).set_params(**params).fit(texts, Y, names)
    with pytest.raises(ParameterError, match="encoder 'owner/no-such-encoder' is not on this machine"):
        small().set_params(encoder="owner/no-such-encoder").fit(texts, Y, names)
    with pytest.raises(DataError, match="cannot be read as a sentence-transformers model"):
        small().set_params(encoder=tmp_path).fit(texts, Y, names)
    with pytest.raises(NotFittedError):
        small().predict_topk(["a"])


def test_without_torch(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"Prime needs the package 'torch'.*pip install 'longtail\[torch\]'"):
        small().fit(*data)


def test_a_damaged_model_gets_one_sentence(fitted):
    part = fitted.to_part()
    broken = {name: a for name, a in part.arrays.items() if name != "network.joiner.layer.linear1.weight"}
    with pytest.raises(ModelError, match="damaged"):
        Prime.from_part(type(part)(part.kind, part.params, broken))


def test_settings_come_from_preset_data_and_user():
    given = Prime(preset="prime").get_params()
    found = resolve_settings(given, n_rows=10**6, n_labels=131_073)
    assert (found.batch_size, found.n_positives, found.n_free, found.n_private) == (3200, 2, 65_536, 1000)
    assert resolve_settings({**given, "n_free": 0}, 100, 50).n_private == 0
    assert resolve_settings({**given, "margin": 0.2}, 100, 50).margin == (0.2, 0.2)
    assert resolve_settings({**given, "preset": "ngame"}, 100, 50).n_free == 0


def test_words_that_speak_for_a_label(data, fitted):
    _, _, names = data
    words = names[4].split()
    found = fitted.explain_words(f"{words[0]} {names[9]}", [4, 9])
    assert found[0][0]["word"] == words[0]
    assert found[0][0]["spans"] == [[0, 5]]
    assert found[0][0]["weight"] > 0
    assert found[1][0]["word"] in names[9].split()


def test_the_tree_runs_on_words_and_meaning(data, fitted):
    texts, Y, _ = data
    features = clone(PrimeFeatures(fitted, weight=2.0))
    X = features.fit_transform(texts)
    assert X.shape == (200, features.n_features_) == (200, len(features.get_feature_names_out()))
    tree = LabelTreeClassifier(random_state=0).fit(X, Y)
    assert tree.score(features.transform(texts), Y) > 0.9
    restored = PrimeFeatures.from_part(features.to_part())
    np.testing.assert_allclose(restored.transform(texts).toarray(), X.toarray(), atol=1e-6)
    assert restored.transform([]).shape == (0, features.n_features_)
    assert restored.locate(texts[0])
    with pytest.raises(ParameterError, match="prime must be a fitted Prime; got None"):
        PrimeFeatures(None).fit(texts)
    with pytest.raises(NotFittedError):
        PrimeFeatures(fitted).transform(texts)


def test_new_labels_do_not_crowd_out_the_old(data, without_two):
    texts, _, _ = data
    model = load_copy(without_two)
    assert 0 < model.text_scale_ <= 1
    model.add_labels([f"jargon {i}" for i in range(40)])  # as many as there are
    lengths = np.linalg.norm(model.output_weights()[0], axis=1)
    np.testing.assert_allclose(lengths[38:], model.text_scale_, rtol=1e-4)
    old = model.predict_topk(texts, k=1).ids.ravel() < 38
    assert old.mean() > 0.9


def test_a_diverged_training_says_so(data):
    with pytest.raises(ModelError, match="training diverged"):
        small(lr=1e30).fit(*data)


def test_a_failed_refit_leaves_the_model_as_it_was(data, fitted):
    texts, Y, names = data
    model = load_copy(fitted)
    with pytest.raises(ModelError):
        model.set_params(lr=1e30).fit(texts[:100], Y[:100, :30], names[:30])
    assert model.n_labels_ == 40 == len(model.label_texts_)
    np.testing.assert_array_equal(model.predict_topk(texts, k=2).ids, fitted.predict_topk(texts, k=2).ids)


def test_where_checkpoints_cannot_be_written_is_known_at_once(data, fitted, tmp_path):
    (tmp_path / "file").write_text("")
    fitted.save(tmp_path / "model")
    steps = []
    for folder, sentence in (
        (tmp_path / "file", "checkpoint must be the name of a folder; .* is a file"),
        (tmp_path / "model", "is a model folder; give checkpoint a folder of its own"),
        ("/proc/x", "/proc/x cannot be made for checkpoints"),
        (5, "checkpoint must be the name of a folder of its own, or None; got '5'"),
        ("a\0b", "checkpoint must be the name of a folder"),
    ):
        with pytest.raises((ModelError, ParameterError), match=sentence):
            small(checkpoint=folder).fit(*data, progress=lambda done, _: steps.append(done))
    assert not steps
    small(epochs=1, checkpoint=tmp_path).fit(*data)  # models beside it are no checkpoints
    assert (tmp_path / "model" / "manifest.json").exists()


def test_odd_settings_get_one_sentence(data, fitted):
    texts, Y, _ = data
    model = load_copy(fitted)
    for call, sentence in (
        (lambda: small(device="meta").fit(*data), "device must be None, 'cpu' or 'cuda'"),
        (lambda: small(margin=(0.3, 0.1)).fit(*data), "margin must be a pair .low, high. with low <= high"),
        (lambda: small(sampling="often").fit(*data), "sampling must be"),
        (lambda: model.explain_words(texts[0], [40]), "labels must hold label numbers from 0 to 39; got 40"),
        (lambda: model.fit_classifier(texts, Y, foo=1), "settings of the classifier must be among"),
        (lambda: model.fit_classifier(texts, Y, epochs=0), "epochs must be an integer"),
        (lambda: model.fit_classifier(texts, Y[:, :30]), r"one column per label of the model \(40\); got 30"),
    ):
        with pytest.raises((ParameterError, DataError), match=sentence):
            call()


def test_more_threads_than_cores_are_no_more(data):
    small(epochs=1, n_jobs=100_000).fit(*data)
