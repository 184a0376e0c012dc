"""scikit-learn's own checks, for every estimator and transformer; what they may not pass is listed with its reason."""

import importlib.util
import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

import longtail as lt

SPARSE = "predict returns a sparse matrix: nothing of size rows × labels is made dense"
COLUMNS = "labels are columns of Y, which hold weights: there are no classes in a single column"
OWN_WORDS = "refused with a ValueError in our own sentence, which names the argument and the value"
CLASSIFIER = {
    "check_classifier_data_not_an_array": SPARSE,
    "check_classifiers_one_label": SPARSE,
    "check_classifier_multioutput": SPARSE,
    "check_classifiers_multilabel_representation_invariance": SPARSE,
    "check_classifiers_multilabel_output_format_predict": SPARSE,
    "check_classifiers_train": COLUMNS,
    "check_classifiers_classes": COLUMNS,
    "check_classifiers_regression_target": COLUMNS,
    "check_classifier_not_supporting_multiclass": COLUMNS,
    "check_n_features_in_after_fitting": OWN_WORDS,
    "check_dtype_object": OWN_WORDS,
    "check_estimators_empty_data_messages": OWN_WORDS,
}
TREE = {"check_non_transformer_estimators_n_iter": "a classifier per node and label: no one number of passes"}


def results_of(estimator, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that are skipped, or that provoke warnings
        return check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)


def failures(results):
    return {f"{r['check_name']}: {r['exception']!r}"[:300] for r in results if r["status"] == "failed"}


def needs_torch(*values):
    missing = importlib.util.find_spec("torch") is None
    return pytest.param(*values, marks=pytest.mark.skipif(missing, reason="needs the extra [torch]"))


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (lt.OneVsAllClassifier(max_iter=20), CLASSIFIER),
        (lt.LabelTreeClassifier(max_iter=20), CLASSIFIER | TREE),
        needs_torch(lt.BottleneckClassifier(epochs=2), CLASSIFIER),
    ],
    ids=lambda value: "" if isinstance(value, dict) else type(value).__name__,
)
def test_classifiers_of_rows(estimator, expected):
    results = results_of(estimator, expected)
    assert not failures(results)
    assert sum(r["status"] == "passed" for r in results) >= 40
    unneeded = set(expected) - {r["check_name"] for r in results if r["status"] == "xfail"}
    assert not unneeded, "these pass: take them off the list"


@pytest.mark.parametrize(
    "estimator",
    [
        lt.TfidfFeatures(),
        lt.BeginningFeatures(),
        lt.EncoderFeatures(),
        lt.Prime(),
        lt.Eagle(),
        lt.MIMLClassifier(),
        lt.Tagger(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_estimators_of_texts_and_groups(estimator):
    """scikit-learn has data for none of these, and runs the checks that need none: parameters, cloning, tags."""
    results = results_of(estimator, {})
    assert not failures(results)
    assert any(r["status"] == "passed" for r in results)
