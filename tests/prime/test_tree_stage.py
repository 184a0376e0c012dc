"""Prime with a label tree beside its encoder: more accurate, saved whole, open to new labels; bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

import longtail as lt
from longtail.errors import DataError, ModelError, ParameterError
from longtail.pipeline.output_layer import model_layer

SMALL = {"width": 32, "layers": 1, "heads": 2}
TRAIN, TEST = slice(0, 300), slice(300, 420)


def world(n_rows=420, n_labels=40, seed=3):
    """Labels with names of two words; a text has one of them and, more often, words that stand in no name."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnoprstuvw"))
    words = ["".join(rng.choice(letters, 5)) for _ in range(5 * n_labels)]
    names = [f"{words[5 * i]} {words[5 * i + 1]}" for i in range(n_labels)]
    texts, Y = [], np.zeros((n_rows, n_labels), dtype=np.float32)
    for row in range(n_rows):
        chosen = rng.choice(n_labels, size=2, replace=False)
        Y[row, chosen] = 1
        said = [words[5 * label + int(rng.integers(5))] for label in chosen for _ in range(2)]
        texts.append(" ".join([*said, *rng.choice(words, 3)]))
    return texts, sp.csr_array(Y), names


def new(**params):
    how = {"epochs": 4, "lr": 3e-3, "batch_size": 60, "device": "cpu", "random_state": 0, "n_jobs": 1, **params}
    return lt.Prime(SMALL, "prime-lite", **how)


@pytest.fixture(scope="module")
def data():
    return world()


@pytest.fixture(scope="module")
def plain(data):
    texts, Y, names = data
    return new().fit(texts[TRAIN], Y[TRAIN], names)


@pytest.fixture(scope="module")
def fitted(data):
    texts, Y, names = data
    return new(tree=True).fit(texts[TRAIN], Y[TRAIN], names)


def copied(model):
    return lt.Prime.from_part(model.to_part())


def test_it_is_better_than_the_encoder_alone(data, plain, fitted):
    texts, Y, _ = data
    assert fitted.score(texts[TEST], Y[TEST]) > plain.score(texts[TEST], Y[TEST]) + 0.05
    assert fitted.rows([]).shape == (0, fitted.tree_.words.n_features_ + 32)
    assert fitted.predict_topk([], k=3).ids.shape == (0, 3)


def test_scores_are_those_of_both(data, plain, fitted):
    """Against a slow loop over the labels of one text."""
    texts = data[0]
    rows = fitted.rows(texts[TEST])
    top = fitted.predict_topk(rows, k=45)
    assert (top.ids[:, :40] >= 0).all()
    assert (top.ids[:, 40:] == -1).all()
    assert (np.diff(top.scores[:, :40], axis=1) <= 0).all()
    stage = fitted.tree_
    by_tree = stage.tree.predict_topk(stage.read(rows), k=100)
    products = fitted.encode(texts[TEST]) @ fitted.output_weights()[0].T
    np.testing.assert_allclose(products, plain.encode(texts[TEST]) @ plain.output_weights()[0].T, atol=1e-5)
    for row in range(5):
        scores = {int(i): s for i, s in zip(by_tree.ids[row], by_tree.scores[row], strict=True) if i >= 0}
        trust, lowest = np.exp(max(scores.values())), min(scores.values())
        expected = [trust * scores.get(label, lowest) + 6 * products[row, label] for label in top.ids[row, :40]]
        np.testing.assert_allclose(top.scores[row, :40], expected, atol=1e-4)
    np.testing.assert_array_equal(fitted.predict_topk(texts[TEST], k=45).ids, top.ids)
    one = np.vstack([fitted.predict_topk([text], k=5).ids for text in texts[300:310]])
    np.testing.assert_array_equal(one, top.ids[:10, :5])
    np.testing.assert_array_equal(fitted.set_params(n_jobs=2).predict_topk(rows, k=45).scores, top.scores)


def test_the_same_seed_gives_the_same_model_for_any_number_of_threads(data, plain):
    texts, Y, _ = data
    found = []
    for jobs in (1, 2):
        model = copied(plain).set_params(n_jobs=jobs).fit_tree(texts[TRAIN], Y[TRAIN])
        found.append({name: a for name, a in model.to_part().arrays.items() if name.startswith("tree.")})
    assert found[0].keys() == found[1].keys()
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


def test_it_is_saved_whole(tmp_path, data, fitted):
    texts, _, _ = data
    loaded = lt.load(fitted.save(tmp_path / "model"))
    top, again = (model.predict_topk(texts[TEST], k=40) for model in (fitted, loaded))
    np.testing.assert_array_equal(again.ids, top.ids)
    np.testing.assert_array_equal(again.scores, top.scores)
    part = fitted.to_part()
    part.params["fitted"]["tree"]["weight"] = 0.5  # then the tree reads vectors too, and this one does not
    with pytest.raises(ModelError, match="its tree does not fit its encoder"):
        lt.Prime.from_part(part)


def test_words_alone_make_a_smaller_tree(data, plain):
    texts, Y, _ = data
    both, words = (copied(plain).fit_tree(texts[TRAIN], Y[TRAIN], weight=weight) for weight in (0.5, 0))
    sizes = [sum(array.nbytes for array in model.tree_.to_saved()[1].values()) for model in (both, words)]
    assert sizes[1] < sizes[0]
    assert both.score(texts[TEST], Y[TEST]) > plain.score(texts[TEST], Y[TEST])
    assert words.score(texts[TEST], Y[TEST]) > plain.score(texts[TEST], Y[TEST])
    assert words.tree_.tree.n_features_in_ == words.tree_.words.n_features_


def test_only_these_and_none_of_these(data, fitted):
    texts, _, _ = data
    assert set(fitted.predict_topk(texts[TEST], k=3, allow=[1, 5]).ids.ravel()) == {-1, 1, 5}
    assert not {1, 5} & set(fitted.predict_topk(texts[TEST], k=40, deny=[1, 5]).ids.ravel())


def test_new_labels_are_found_beside_the_old_ones(data):
    """Two labels held out and added by their names: they come, and the others are found as before."""
    texts, Y, names = data
    old, held = [i for i in range(40) if i not in (3, 17)], [3, 17]
    rows = [row for row in range(300) if Y[[row], :][:, old].nnz]
    model = new(tree=True, epochs=8).fit([texts[i] for i in rows], Y[rows][:, old], [names[i] for i in old])
    before = model.score(texts[TEST], Y[TEST][:, old])
    model.add_labels([names[i] for i in held])
    named = [f"{names[label]} {names[label]}" for label in held]
    assert [40 - 2 + i in model.predict_topk([text], k=2).ids for i, text in enumerate(named)] == [True, True]
    both = sp.hstack([Y[TEST][:, old], Y[TEST][:, held]], format="csr")
    assert model.score(texts[TEST], both) > before - 0.05
    one, whole = model.predict_topk(texts[:2], k=2, allow=[38]), model.predict_topk(texts[:2], k=40)
    assert one.ids.tolist() == [[38, -1], [38, -1]]
    np.testing.assert_allclose(one.scores[:, 0], whole.scores[whole.ids == 38], atol=1e-5)
    assert copied(model).predict_topk(texts[:2], k=3, allow=[38]).ids[:, 0].tolist() == [38, 38]


def test_words_are_explained_by_what_both_scores_lose(data, fitted):
    texts, _, _ = data
    label = int(fitted.predict_topk(texts[:1], k=1).ids[0, 0])
    found = fitted.explain_words(texts[0], [label])[0]
    whole = fitted.label_scores(texts[:1], [label])[0, 0]
    word = next(entry for entry in found if len(entry["spans"]) == 1)
    start, end = word["spans"][0]
    less = fitted.label_scores([texts[0][:start] + texts[0][end:]], [label])[0, 0]
    assert word["weight"] == pytest.approx(whole - less, abs=1e-4)
    assert whole == pytest.approx(float(fitted.predict_topk(texts[:1], k=1).scores[0, 0]), abs=1e-4)


def test_the_classifier_stage_and_a_refit_go_with_it(data, fitted):
    texts, Y, names = data
    model = copied(fitted)
    line = model.tree_.line
    model.fit_classifier(texts[TRAIN], Y[TRAIN], epochs=2)
    assert model.tree_.line != line
    assert model.score(texts[TEST], Y[TEST]) > 0.5
    model.set_params(tree=False, epochs=1).fit(texts[:60], Y[:60], names)
    assert model.tree_ is None


def test_texts_without_words_are_refused_before_the_training(data):
    _, Y, names = data
    told = []
    with pytest.raises(DataError, match=r"word|term"):
        new(tree=True).fit(["!?", "..."] * 30, Y[:60], names, on_epoch=told.append)
    assert not told


def test_bad_settings(data, plain, fitted):
    texts, Y, _ = data
    model = copied(plain)
    with pytest.raises(ParameterError, match=r"settings of the tree must be among .*; got 'overlaps'"):
        model.fit_tree(texts[TRAIN], Y[TRAIN], overlaps=2)
    with pytest.raises(ParameterError, match="share must be"):
        model.fit_tree(texts[TRAIN], Y[TRAIN], share=-1)
    with pytest.raises(ParameterError, match="share must be"):
        model.fit_tree(texts[TRAIN], Y[TRAIN], share=10**400)
    with pytest.raises(ParameterError, match="weight must be"):
        model.fit_tree(texts[TRAIN], Y[TRAIN], weight=float("nan"))
    with pytest.raises(DataError, match="one column per label of the model"):
        model.fit_tree(texts[TRAIN], Y[TRAIN][:, :3])
    assert model.tree_ is None
    with pytest.raises(ParameterError, match="tree must be"):
        new(tree="yes").fit(texts[TRAIN], Y[TRAIN], ["x"] * 40)
    with pytest.raises(DataError, match=r"X must have .* features"):
        fitted.predict_topk(fitted.encode(texts[:2]))
    with pytest.raises(ModelError, match="come from a label tree too"):
        model_layer(fitted)


def test_labels_without_a_row_speak_by_their_texts(data):
    """A tree knows nothing of them and lists none; they are not put behind all others for it."""
    texts, Y, names = data
    rows = [row for row in range(300) if not Y[[row], :][:, [3]].nnz]
    model = new(tree=True, epochs=8).fit([texts[i] for i in rows], Y[rows], names)
    assert model.tree_.tree.label_counts_[3] == 0
    place = model.predict_topk([f"{names[3]} {names[3]}"], k=40).ids[0].tolist().index(3)
    assert place < 3
    assert model.predict_topk(texts[:2], k=2, allow=[3]).ids.tolist() == [[3, -1], [3, -1]]
    model.add_labels(["brand new"])
    asked, stage = texts[:20], model.tree_
    best = stage.tree.predict_topk(stage.read(model.rows(asked)), k=1).scores[:, 0]
    start, slope = stage.line
    assert slope > 0
    for label in (3, 40):  # without a row, and added later
        product = model.encode(asked) @ model.output_weights()[0][label]
        expected = np.exp(best) * np.minimum(0, start + slope * product) + 6 * product
        np.testing.assert_allclose(model.label_scores(asked, [label])[:, 0], expected, atol=1e-4)


def test_a_tree_that_is_sure_of_nothing_leaves_the_ranking_to_the_encoder(data, plain):
    """A training row or two per label: the tree alone is far below the encoder, both together are not."""
    texts, Y, _ = data
    few = slice(0, 30)
    model = copied(plain).fit_tree(texts[few], Y[few])
    stage = model.tree_
    alone = stage.tree.score(stage.read(model.rows(texts[TEST])), Y[TEST])
    by_encoder, together = plain.score(texts[TEST], Y[TEST]), model.score(texts[TEST], Y[TEST])
    assert alone < by_encoder - 0.2
    assert together > by_encoder - 0.05


def test_a_label_scores_the_same_whatever_else_is_asked_for(data, fitted):
    texts, _, _ = data
    everything = fitted.predict_topk(texts[:5], k=40)
    for row in range(5):
        third = int(everything.ids[row, 2])
        one = fitted.predict_topk(texts[row : row + 1], k=1, allow=[third])
        assert one.scores[0, 0] == pytest.approx(float(everything.scores[row, 2]), abs=1e-4)
    assert fitted.explain_words(texts[0], []) == []


def test_among_many_labels_too():
    """More labels than either part lists: neither k nor the labels asked for change a score or the order."""
    texts, Y, names = world(n_rows=900, n_labels=300, seed=5)
    model = new(tree=True, epochs=2).fit(texts, Y, names)
    model.add_labels(["brand new"])
    some = texts[:40]
    whole = model.predict_topk(some, k=301)
    assert (model.predict_topk(some, k=5).ids == whole.ids[:, :5]).all()
    asked = sorted({int(label) for label in whole.ids[:, :3].ravel()} | {300})
    few = model.predict_topk(some, k=len(asked), allow=asked)
    for row in range(40):
        scores = dict(zip(whole.ids[row].tolist(), whole.scores[row].tolist(), strict=True))
        assert few.scores[row].tolist() == pytest.approx([scores[label] for label in few.ids[row].tolist()], abs=1e-5)


def test_a_training_stopped_at_the_tree_goes_on_from_its_checkpoint(data, tmp_path, monkeypatch):
    texts, Y, names = data
    told: list[dict] = []
    how = {"tree": True, "epochs": 2, "checkpoint": tmp_path / "kept", "checkpoint_minutes": 0}

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("longtail.prime.estimator.fit_tree_stage", stopped)
        new(**how).fit(texts[TRAIN], Y[TRAIN], names, on_epoch=told.append)
    assert len(told) == 2 and any((tmp_path / "kept").iterdir())
    model = new(**how).fit(texts[TRAIN], Y[TRAIN], names, on_epoch=told.append)
    assert len(told) == 2  # no epoch was trained again
    model.drop_checkpoint()
    assert not (tmp_path / "kept").exists()
    whole = new(tree=True, epochs=2).fit(texts[TRAIN], Y[TRAIN], names)
    np.testing.assert_array_equal(model.predict_topk(texts[:9], k=5).scores, whole.predict_topk(texts[:9], k=5).scores)


@pytest.mark.parametrize(
    "change",
    [
        {"share": float("nan")},
        {"share": "0.5"},
        {"share": -1},
        {"share": 10**400},
        {"weight": True},
        {"weight": 1e9},
        {"line": [0.0]},
        {"line": "12"},
        {"line": [float("inf"), 0.0]},
        {"line": [1e299, 0.0]},
        {"line": None},
        {"words": {}},
        {"labels": 3},
    ],
)
def test_a_damaged_description_is_refused(tmp_path, fitted, change):
    folder = fitted.save(tmp_path / "model")
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["parts"]["model"]["params"]["fitted"]["tree"] |= change
    file.write_text(json.dumps(manifest))
    with pytest.raises(ModelError):
        lt.load(folder)
