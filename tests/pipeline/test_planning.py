"""Plans: sane, growing with the data, near what training then takes, and honest about memory."""

import json

import numpy as np
import pytest

from longtail.data import Dataset
from longtail.data.synthetic.generate import make_extreme, make_linear, make_topics
from longtail.errors import DataError, LongtailError
from longtail.one_vs_all import OneVsAllClassifier
from longtail.pipeline import Tagger, plan_training, refuse_without_memory
from longtail.planning.shape import shape_of
from longtail.text import TfidfFeatures
from longtail.tree import LabelTreeClassifier
from longtail.tree.plan import tree_shape
from longtail.validate import memory as resources


@pytest.fixture(scope="module")
def extreme():
    return make_extreme(6000, 3000, 20_000)


def memory(data, **settings):
    return plan_training(data, Tagger(random_state=0, **settings), probe=False)["memory"]["peak_bytes"]


@pytest.mark.parametrize("method", ["tree", "ova"])
def test_facts_are_sane(extreme, method):
    facts = plan_training(extreme, Tagger(method, random_state=0, n_jobs=2), read_seconds=5)
    assert facts == json.loads(json.dumps(facts))
    assert facts["rows"] == 6000 and facts["labels"] == 3000 and facts["features"] == 20_000 and facts["threads"] == 2
    assert facts["nonzeros"] == extreme.X.nnz and facts["features_estimated"] is False
    assert facts["calibration_rows"] == 600
    assert 5 < facts["train_seconds"] < 600
    assert 10_000 < facts["model_bytes"] < 1e9
    assert 0 < facts["predict_us_per_row"] < 1e5
    assert facts["memory"]["fits"] is True
    assert facts["memory"]["peak_bytes"] > facts["memory"]["used_now_bytes"] + 8 * extreme.X.nnz
    assert (facts["tree"] is None) == (method == "ova")


def test_a_small_set_is_planned_from_all_of_its_rows():
    data = make_topics(400, 12)[0]
    tagger = Tagger(random_state=0, calibrate=0.2)
    facts = plan_training(data, tagger)
    tagger.fit_dataset(data)
    assert facts["features"] == tagger.model_.n_features_in_
    assert facts["tree"] == {"trees": 1, "levels": 1, "leaves": 1, "nodes": [1]}
    assert facts["sample"]["probed_rows"] == 400


@pytest.mark.parametrize("method", ["tree", "ova"])
def test_the_size_of_the_model_is_right_within_a_factor_of_two(extreme, method, tmp_path):
    tagger = Tagger(method, random_state=0, calibrate=0)
    facts = plan_training(extreme, tagger)
    folder = tagger.fit_dataset(extreme).save(tmp_path / "model")
    real = sum(file.stat().st_size for file in folder.iterdir())
    assert 0.5 < facts["model_bytes"] / real < 2


def test_memory_grows_with_rows_and_labels():
    small, more_rows, more_labels = (make_extreme(n, labels) for n, labels in ((2000, 500), (8000, 500), (2000, 4000)))
    assert memory(small) < memory(more_rows)
    assert memory(small) < memory(more_labels)
    assert memory(small, method="ova") < memory(more_labels, method="ova")
    models = LabelTreeClassifier(), OneVsAllClassifier()
    assert tree_shape(500, models[0])[-1] < tree_shape(4000, models[0])[-1]


def test_calibration_is_counted(extreme):
    with_it, without = (plan_training(extreme, Tagger(random_state=0, calibrate=c), probe=False) for c in (0.1, 0))
    assert with_it["calibration_rows"] == 600 and without["calibration_rows"] == 0
    assert with_it["memory"]["peak_bytes"] > without["memory"]["peak_bytes"]


def test_the_tree_that_is_planned_is_the_tree_that_grows(extreme):
    facts = plan_training(extreme, Tagger(random_state=0), probe=False)["tree"]
    tree = LabelTreeClassifier(random_state=0).fit(extreme.X, extreme.Y).trees_[0]
    assert facts["levels"] == tree.n_levels
    assert facts["leaves"] == pytest.approx(tree.n_leaves, rel=0.4)
    balanced = LabelTreeClassifier(balanced=True, max_leaf=50, branching=8)
    assert tree_shape(3000, balanced)[-1] == 64
    assert tree_shape(10, balanced) == [1]


def test_features_of_texts_are_judged_from_a_sample(monkeypatch):
    rng = np.random.default_rng(0)
    words = [f"w{n}" for n in np.minimum(rng.zipf(1.3, size=8000 * 20), 10**7)]
    texts = [" ".join(words[i : i + 20]) for i in range(0, len(words), 20)]
    data = Dataset.from_lists(texts, [["a"]] * 8000)
    real = TfidfFeatures().fit_transform(texts)
    monkeypatch.setattr("longtail.planning.shape.SAMPLE_ROWS", 1000)
    shape = shape_of(data)
    assert shape.rows.size == 1000
    assert shape.n_features == pytest.approx(real.shape[1], rel=0.3)
    assert shape.nonzeros == pytest.approx(real.nnz, rel=0.1)
    for features in (TfidfFeatures(min_df=3), TfidfFeatures(max_features=200), TfidfFeatures(min_df=0.01)):
        shape, real = shape_of(data, features), features.fit_transform(texts)
        assert shape.n_features == pytest.approx(real.shape[1], rel=0.4)
        assert shape.nonzeros == pytest.approx(real.nnz, rel=0.2)


def test_without_a_probe_nothing_is_trained(extreme, monkeypatch):
    monkeypatch.setattr(LabelTreeClassifier, "fit", None)
    facts = plan_training(extreme, Tagger(random_state=0), probe=False)
    assert facts["train_seconds"] is facts["model_bytes"] is None
    assert facts["memory"]["peak_bytes"] > 0


def test_what_does_not_fit_is_said(extreme, monkeypatch):
    monkeypatch.setattr("longtail.pipeline.plan.available_memory", lambda: 1_000_000)
    facts = plan_training(extreme, Tagger(random_state=0), probe=False)
    assert facts["memory"]["fits"] is False
    facts["memory"]["available_bytes"] = facts["memory"]["peak_bytes"] // 3
    with pytest.raises(LongtailError, match=r"needs about \d+\.\d GB of memory, and \d+\.\d GB are available;"):
        refuse_without_memory(facts)
    facts["memory"]["available_bytes"] = round(facts["memory"]["peak_bytes"] / 1.2)
    assert "it may fail" in refuse_without_memory(facts)
    facts["memory"]["available_bytes"] = None  # nothing tells: go on
    assert refuse_without_memory(facts) is None
    monkeypatch.setattr("longtail.pipeline.plan.available_memory", lambda: None)
    assert plan_training(extreme, Tagger(random_state=0), probe=False)["memory"]["fits"] is True


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal:       9000 kB\nMemAvailable:    8000 kB\n")
    monkeypatch.setattr(resources, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(resources, "CGROUP", tmp_path)
    assert resources.available_memory() == 8000 * 1024
    (tmp_path / "memory.current").write_text("3000000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 500000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert resources.available_memory() == 8000 * 1024
    (tmp_path / "memory.max").write_text("4000000\n")
    assert resources.available_memory() == 4_000_000 - 3_000_000 + 500_000
    (tmp_path / "memory.max").unlink()  # the older kind of group
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("2000000\n")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("1500000\n")
    (tmp_path / "memory" / "memory.stat").write_text("")
    assert resources.available_memory() == 500_000


def test_other_systems_get_an_answer_or_none(tmp_path, monkeypatch):
    for name in ("MEMINFO", "STATUS", "CGROUP"):
        monkeypatch.setattr(resources, name, tmp_path / "nowhere")
    found = resources.available_memory()
    assert found is None or found > 0
    assert resources.used_memory() == 0


@pytest.mark.parametrize("method", ["tree", "ova"])
def test_a_sample_without_words_is_no_reason_to_stop(monkeypatch, method):
    monkeypatch.setattr("longtail.planning.shape.SAMPLE_ROWS", 50)
    data = Dataset.from_lists(["-"] * 500 + ["a word"], [["a"]] * 501)
    facts = plan_training(data, Tagger(method, random_state=0))
    assert facts["nonzeros"] == 0 and facts["memory"]["fits"] is True


def test_refusals():
    data = make_linear(60, 100, 5)[0]
    empty = Dataset(X=data.X, Y=np.zeros((60, 5)))
    for method in ("tree", "ova"):
        with pytest.raises(DataError, match="the sampled rows have no labels"):
            plan_training(empty, Tagger(method))

    class Other(OneVsAllClassifier):
        pass

    assert plan_training(data, Tagger(model=Other()), probe=False)["model"] == "Other"
