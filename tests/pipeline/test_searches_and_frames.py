"""A Tagger in scikit-learn's searches, and the tables of other libraries as its input."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

import longtail as lt
from longtail.data.synthetic.generate import make_topics
from longtail.errors import DataError

TEXTS = ["red apple", "green apple", "fast car", "old car"] * 15
LABELS = [["fruit", "red"], ["fruit"], ["vehicle"], ["vehicle"]] * 15


@pytest.fixture(scope="module")
def tagger():
    return lt.Tagger(calibrate=0, random_state=0).fit(TEXTS, LABELS)


def frame(columns):
    """Return a stand-in for a DataFrame of any library: its columns by name."""

    class Frame:
        def __init__(self):
            self.columns = list(columns)

        def __iter__(self):
            return iter(self.columns)

        def to_numpy(self):
            return np.column_stack([np.asarray(values) for values in columns.values()])

    return Frame()


@pytest.mark.parametrize("scoring", [None, "p@1", "psp@3"])
def test_a_search_over_lists_of_names_finds_the_best(scoring):
    data = make_topics(240, 12, random_state=0)[0]
    names = [[data.names()[i] for i in data.Y[[row]].indices] for row in range(data.n_rows)]
    model = lt.OneVsAllClassifier(max_iter=20)
    search = GridSearchCV(
        lt.Tagger(model=model, calibrate=0),
        {"model__C": [1e-6, 1.0]},
        scoring=None if scoring is None else lt.metrics.scorer(scoring),
        cv=3,
        error_score="raise",
    ).fit(list(data.texts), names)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and scores[1] >= scores[0] and scores[1] > 0.3


def test_score_is_precision_at_one_for_names_and_for_matrices(tagger):
    assert tagger.score(TEXTS[:4], LABELS[:4]) == 1.0
    assert tagger.score(TEXTS[:4], [["nothing"], ["fruit"], ["vehicle"], ["fruit"]]) == 0.5
    Y = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]])
    assert tagger.score(TEXTS[:4], Y) == tagger.score(TEXTS[:4], sp.csr_array(Y)) == 0.75
    with pytest.raises(DataError):
        tagger.score(TEXTS[:4], LABELS[:3])


def test_whole_numbers_are_names(tagger):
    found = lt.Tagger(calibrate=0).fit(TEXTS, [[np.int64(7), 10], [7], [3], [3]] * 15)
    assert found.labels_ == ("10", "3", "7")


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([float("nan")], "one list per text; got NaN at position 0."),
        (["fruit"], "one list per text; got a string at position 0."),
        ([3], "one list per text; got int at position 0."),
        ([[float("nan")]], "labels must be names or whole numbers; got NaN at position 0."),
        ([[1.5]], "labels must be names or whole numbers; got 1.5 at position 0."),
        ([[True]], "labels must be names or whole numbers; got True at position 0."),
    ],
)
def test_labels_that_are_none_are_refused_in_a_sentence(labels, sentence):
    with pytest.raises(DataError) as caught:
        lt.Tagger().fit(["a"], labels)
    assert str(caught.value).endswith(sentence)


def test_missing_texts_and_whole_tables_are_refused_in_a_sentence(tagger):
    with pytest.raises(DataError, match="texts must hold strings; got NaN at position 1"):
        tagger.tag(["a", float("nan")])
    for call in (tagger.tag, tagger.predict):
        with pytest.raises(DataError, match="got a DataFrame: give one of its columns"):
            call(frame({"text": ["a"], "year": ["b"]}))
    with pytest.raises(DataError, match="or a DataFrame of numbers; got one of other values"):
        lt.Tagger().fit(["a"], frame({"labels": ["x"]}))


def test_a_table_of_numbers_is_a_matrix_with_names():
    labels = frame({"fruit": [1, 1, 0, 0] * 15, "vehicle": [0, 0, 1, 1] * 15})
    assert lt.Tagger(calibrate=0).fit(TEXTS, labels).labels_ == ("fruit", "vehicle")
    rows = frame({"a": [1.0, 0.0] * 30, "b": [0.0, 1.0] * 30})
    found = lt.Tagger(calibrate=0).fit(rows, [["x"], ["y"]] * 30)
    assert found.score(rows, [["x"], ["y"]] * 30) == 1.0
