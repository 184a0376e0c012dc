"""TF-IDF from blocks of texts: the features of all texts at once, and a bound on the n-grams that are held."""

import numpy as np
import pytest

from longtail.data import make_topics
from longtail.errors import DataError
from longtail.text import TfidfFeatures

DATA = make_topics(400, 10)[0]


def blocks(size=37):
    return [DATA.texts[at : at + size] for at in range(0, len(DATA.texts), size)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ngrams": (1, 2), "min_df": 2},
        {"max_features": 40},
        {"max_df": 0.5, "sublinear_tf": False},
        {"analyzer": "char_wb", "ngrams": (2, 4)},
    ],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_give_what_all_texts_give(settings, n_jobs):
    whole = TfidfFeatures(**settings, n_jobs=n_jobs)
    X = whole.fit_transform(DATA.texts)
    streamed = TfidfFeatures(**settings, n_jobs=n_jobs)
    assert streamed.fit_blocks(blocks()) == 0
    assert streamed.vocabulary_ == whole.vocabulary_
    assert np.array_equal(streamed.idf_, whole.idf_)
    assert (streamed.transform(DATA.texts) != X).nnz == 0


def test_rare_terms_go_when_there_are_too_many_and_frequent_ones_are_counted_right():
    often = [f"often common word{i}" for i in range(300)]  # every text has a word of its own
    features = TfidfFeatures(min_df=5)
    missed = features.fit_blocks((often[at : at + 20] for at in range(0, 300, 20)), most_terms=60)
    assert features.vocabulary_ == ["common", "often"]
    assert 0 < missed <= 15
    assert np.array_equal(features.idf_, TfidfFeatures(min_df=5).fit(often).idf_)
    again = TfidfFeatures(min_df=5, n_jobs=2)
    assert again.fit_blocks((often[at : at + 20] for at in range(0, 300, 20)), most_terms=60) == missed
    assert np.array_equal(again.idf_, features.idf_)


def test_no_blocks_are_refused():
    with pytest.raises(DataError, match="at least one text"):
        TfidfFeatures().fit_blocks([])
