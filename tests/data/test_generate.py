"""Generators: the truth they return is the truth."""

import numpy as np
import pytest

from longtail.data.synthetic.generate import fuse_labels, make_extreme, make_groups, make_linear, make_topics
from longtail.errors import ParameterError


@pytest.mark.parametrize("features_per_label", [1, 3])
def test_the_linear_model_gives_the_labels_without_a_mistake(features_per_label):
    data, truth = make_linear(400, 150, 60, features_per_label=features_per_label, random_state=5)
    scores = (data.X @ truth.W.T).toarray() + truth.bias
    assert ((scores > 0) == (data.Y.toarray() > 0)).all()
    assert np.abs(scores).min() == 0.5
    assert set(data.X.data.tolist()) == {1.0}


def test_labels_have_a_long_tail_and_each_a_row():
    data, _ = make_linear(3000, 5000, 500)
    counts = np.asarray(data.Y.sum(axis=0)).ravel()
    assert counts.min() >= 1
    assert counts[:10].mean() > 20 * counts[-100:].mean()
    assert (np.diff(data.Y.indptr) > 0).all()


def test_the_same_seed_gives_the_same_data():
    for make in (make_linear, make_topics, make_groups):
        assert make(50, random_state=1)[0].digest() == make(50, random_state=1)[0].digest()
        assert make(50, random_state=1)[0].digest() != make(50, random_state=2)[0].digest()


def test_more_than_65536_labels_and_features_without_rows_times_labels():
    data, truth = make_linear(2000, 300_000, 100_000)
    assert data.n_labels == 100_000
    assert truth.W.indices.max() > 65_536
    assert data.Y.nnz < 20_000


def test_topics_are_recognised_by_their_words():
    data, words = make_topics(200, 12, words_per_topic=5)
    topic_of = {word: name for name, found in words.items() for word in found}
    assert len(topic_of) == 60
    for row, text in enumerate(data.texts):
        assert {topic_of[word] for word in text.split() if word in topic_of} == set(data.labels_of(row))
    assert data.label_names == tuple(sorted(data.label_names))
    assert data.label_texts[0].split() == list(words[data.label_names[0]])


def test_groups_have_the_labels_of_their_rows():
    data, truth = make_groups(30, 4, n_labels=40, random_state=2)
    for group in range(30):
        rows = data.groups.toarray()[:, group] > 0
        assert rows.sum() == 4
        union = data.Y.toarray()[rows].max(axis=0)
        np.testing.assert_array_equal(truth.Y_groups.toarray()[group], union)


def test_fused_labels_are_the_union_of_two():
    data, _ = make_linear(200, 300, 20)
    fused, new = fuse_labels(data, 6, random_state=1)
    old, now = data.Y.toarray() > 0, fused.Y.toarray()
    assert now.shape[1] == 14
    assert sorted(np.bincount(new).tolist()) == [1] * 8 + [2] * 6
    for label in range(14):
        np.testing.assert_array_equal(now[:, label] > 0, old[:, new == label].any(axis=1))
    assert set(fused.Y.data.tolist()) == {1.0}


def test_refusals():
    with pytest.raises(ParameterError, match="n_rows must be an integer >= 1; got 0"):
        make_linear(0)
    with pytest.raises(ParameterError, match="labels per row must be at most the number of labels"):
        make_linear(10, 100, 2, labels_per_row=3.0)
    with pytest.raises(ParameterError, match="features_per_label must be an integer between 1 and 2; got 3"):
        make_linear(10, 2, 2, labels_per_row=1.0)
    with pytest.raises(ParameterError, match="n_pairs must be an integer between 0 and 10; got 11"):
        fuse_labels(make_linear(30, 100, 20)[0], 11)


# --- make_extreme -----------------------------------------------------------------------------------------------------


def test_extreme_data_has_the_shape_that_was_asked_for():
    data = make_extreme(5000, 6800, random_state=3)
    assert data.X.shape == (5000, 135_909) and data.X.dtype == np.float32 and data.Y.shape == (5000, 6800)
    np.testing.assert_allclose(np.sqrt(np.asarray(data.X.multiply(data.X).sum(axis=1))), 1, rtol=1e-5)
    assert data.X.nnz / 5000 == pytest.approx(76, rel=0.05)
    assert data.Y.nnz / 5000 == pytest.approx(5.45, rel=0.05)
    assert (np.diff(data.Y.indptr) > 0).all()
    assert data.X.has_sorted_indices and data.X.data.min() > 0


def test_extreme_labels_have_the_tail_of_amazon_670k():
    data = make_extreme(5000, 6800)
    counts = np.bincount(data.Y.indices, minlength=6800)
    assert counts.min() >= 1
    assert ((counts >= 1) & (counts <= 5)).mean() > 0.75
    assert counts[0] > 50 and counts[0] > 10 * np.median(counts)
    assert (np.bincount(make_extreme(500, 5000).Y.indices, minlength=5000) == 0).any()  # more labels than occurrences


def test_extreme_averages_can_be_chosen():
    data = make_extreme(3000, 500, 20_000, labels_per_row=2, features_per_row=40)
    assert data.Y.nnz / 3000 == pytest.approx(2, rel=0.05)
    assert data.X.nnz / 3000 == pytest.approx(40, rel=0.05)
    assert data.X.shape[1] == 20_000


def test_extreme_rows_tell_their_labels_and_labels_of_a_row_belong_together():
    """The mean row of each label finds the labels of new rows; labels of one row share more than those of two."""
    data = make_extreme(2400, 300, 20_000, random_state=1)
    X, Y = data.X[:2000], data.Y[:2000]
    means = np.asarray((Y.T @ X).toarray())
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    first = np.argmax(data.X[2000:] @ means.T, axis=1)
    right = np.asarray(data.Y[2000:].toarray())[np.arange(400), first]
    assert right.mean() > 0.5
    likeness = means @ means.T
    pairs = [np.ix_(row.indices, row.indices) for row in (data.Y[[i]] for i in range(100))]
    assert np.mean([likeness[pair].mean() for pair in pairs]) > 1.5 * likeness.mean()


def test_extreme_blocks_leave_no_seams(monkeypatch):
    """Rows of later blocks look like those of the first, and data of one seed is the same again."""
    monkeypatch.setattr("longtail.data.synthetic.extreme.BLOCK_ROWS", 700)
    data = make_extreme(2000, 200, 5000, random_state=2)
    sizes = np.diff(data.X.indptr)
    assert sizes[:700].mean() == pytest.approx(sizes[1400:].mean(), rel=0.05)
    assert data.digest() == make_extreme(2000, 200, 5000, random_state=2).digest()
    assert data.digest() != make_extreme(2000, 200, 5000, random_state=4).digest()


def test_extreme_refusals():
    with pytest.raises(ParameterError, match=r"labels_per_row must be at most n_labels, 4; got 5\.45"):
        make_extreme(10, 4)
    with pytest.raises(ParameterError, match="features_per_row must be a number"):
        make_extreme(10, 20, features_per_row=5)
    with pytest.raises(ParameterError, match="n_rows must be an integer >= 1; got 0"):
        make_extreme(0, 20)
