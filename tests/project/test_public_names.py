"""The public list is short, explicit and complete."""

import pytest

import longtail as lt


def test_public_names():
    assert lt.__all__ == [
        "BeginningFeatures",
        "BottleneckClassifier",
        "Dataset",
        "Eagle",
        "EncoderFeatures",
        "Hybrid",
        "LabelTree",
        "LabelTreeClassifier",
        "MIMLClassifier",
        "OneVsAllClassifier",
        "Prime",
        "Tagger",
        "TfidfFeatures",
        "TopK",
        "Vocabulary",
        "__version__",
        "audit",
        "check_labels",
        "checks",
        "data",
        "engine",
        "load",
        "metrics",
        "nn",
        "text",
        "tune",
    ]
    assert all(getattr(lt, name) is not None for name in lt.__all__)
    assert dir(lt) == lt.__all__


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="module 'longtail' has no attribute 'Taggr'"):
        lt.Taggr  # noqa: B018
