"""Audits of models and layers as facts: label sets by name, what is out of reach, and why."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import Tagger
from longtail.audit import check_certificate
from longtail.bottleneck.dft import dft_matrix
from longtail.data import Dataset, read_label_sets
from longtail.data.synthetic.generate import make_topics
from longtail.errors import DataError, ModelError, ParameterError
from longtail.model import XMCEstimator
from longtail.one_vs_all import OneVsAllClassifier
from longtail.pipeline.auditing import audit_model, radius_bins
from longtail.pipeline.output_layer import Layer, file_layer, model_layer, score_cut

W = np.array([[1.0, 0], [0, 1], [-1, -1], [-1, 1]])
NAMES = ("a", "b", "c", "d")


def rows(labels, names=NAMES):
    return Dataset.from_lists([""] * len(labels), labels, label_names=names)


@pytest.fixture(scope="module")
def tagger():
    data = make_topics(200, 8, random_state=0)[0]
    return Tagger("ova", random_state=0).fit_dataset(data), data


def test_sets_by_name_with_the_labels_of_the_proof():
    data = rows([["a", "b"], ["a", "b", "c"], ["a", "b", "c"], [], ["a"]])
    found = audit_model(Layer(W, None, NAMES, "test"), data)
    facts = json.loads(json.dumps(found.facts, allow_nan=False))
    assert facts["audit"]["n_sets"] == 4 and facts["audit"]["n_rows"] == 5
    never = {tuple(entry["labels"]): entry for entry in facts["audit"]["impossible"]}
    assert set(never) == {("a", "b", "c"), ()}
    assert never["a", "b", "c"]["rows"] == 2 and set(never["a", "b", "c"]["conflict"]["on"]) == {"a", "b", "c"}
    assert never[()]["conflict"]["on"] == [] and set(never[()]["conflict"]["off"]) <= set(NAMES)
    assert not found.all_reachable and facts["unknown"] is None
    assert [row["sets"] for row in facts["sizes"]] == [1, 1, 1, 1]
    assert sum(facts["radii"]["counts"]) + facts["radii"]["zero"] == int(found.audit.reachable.sum())
    assert audit_model(Layer(W, None, NAMES, "test"), rows([["a", "b"]])).all_reachable


def test_labels_the_model_does_not_know_are_told_apart():
    data = rows([["a", "z"], ["a", "b"], ["y"], ["y"]], ("a", "b", "y", "z"))
    found = audit_model(Layer(W, None, NAMES, "test", silent=("y",)), data)
    unknown = found.facts["unknown"]
    assert unknown["labels"] == 2 and unknown["rows"] == 3 and unknown["sets"] == 2
    assert unknown["without_training_row"] == 1 and unknown["listed"][0] == {"label": "y", "rows": 2}
    assert found.facts["audit"]["n_sets"] == 1 and not found.all_reachable
    only = audit_model(Layer(W, None, NAMES, "test"), rows([["a", "z"]], ("a", "z")))
    assert only.audit is None and only.facts["unknown"]["sets"] == 1
    with pytest.raises(ParameterError, match="there are no certificates to write"):
        only.save_certificates("x.npz")


@pytest.mark.parametrize(
    ("layer", "data", "sentence"),
    [
        (Layer(W, None, NAMES, "t"), rows([["x"]], ("x", "y")), "none of the 2 labels of the data is one of the model"),
        (Layer(W, None, None, "t"), rows([["x"]], ("x", "y")), "the data has 2 labels and the weights have 4 rows"),
        (Layer(W * 0, None, None, "t"), rows([["a"]]), "row 0 is one, so this label scores 0"),
        (Layer(W * np.nan, None, None, "t"), rows([["a"]]), "W must be finite; got nan in row 0, column 0"),
    ],
)
def test_what_does_not_fit(layer, data, sentence):
    with pytest.raises(DataError, match=sentence):
        audit_model(layer, data)


def test_without_data():
    facts = audit_model(Layer(W, None, NAMES, "test")).facts
    assert facts["capacity"]["sets"] == 8 and facts["position"]["general_position"] is True and "audit" not in facts
    assert facts["capacity"]["log10_share"] == pytest.approx(np.log10(0.5))
    lower = audit_model(Layer(np.column_stack([W, W]), None, None, "test")).facts
    assert lower["position"]["rank"] == 2 and lower["position"]["general_position"] is False
    long = sp.csr_array(np.column_stack([W, np.zeros((4, 3000))]))
    position = audit_model(Layer(long, None, None, "test")).facts["position"]
    assert position["rank"] == 2 and position["general_position"] is False


def test_rankings():
    middle = np.array([[0.0, 3], [3, 0], [-3, -3], [0.1, 0.1]])
    facts = audit_model(Layer(middle, None, NAMES, "test"), classes=True).facts
    assert [entry["labels"] for entry in facts["audit"]["impossible"]] == [["d"]]
    data = rows([["a", "b"], ["a", "d"], ["a"], ["c", "d"]])
    top = audit_model(Layer(middle, None, NAMES, "test"), data, top_k=2)
    assert top.facts["top_k"] == {"k": 2, "rows_of_other_size": 1} and top.facts["audit"]["n_sets"] == 3
    assert audit_model(Layer(middle, None, NAMES, "test"), data, top_k=3).audit is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"classes": True, "top_k": 2}, "give one of classes and top_k"),
        ({"classes": True}, "classes takes no data"),
        ({"top_k": 0}, "top_k must be"),
        ({"top_k": 4}, "top_k must be"),
        ({"limit": -1}, "limit must be an integer >= 0; got -1"),
        ({"rows": 0}, "rows must be an integer >= 1; got 0"),
        ({"box": -1}, "box must be a number above 0"),
        ({"seconds": -1}, "seconds must be a number >= 0"),
    ],
)
def test_options_that_are_wrong(options, sentence):
    with pytest.raises(ParameterError, match=sentence):
        audit_model(Layer(W, None, NAMES, "test"), rows([["a"]]), **options)
    if "top_k" in options and len(options) == 1:
        with pytest.raises(ParameterError, match="top_k needs data"):
            audit_model(Layer(W, None, NAMES, "test"), **options)


def test_rankings_of_long_rows_are_refused():
    long = Layer(sp.csr_array(np.ones((3, 2500))), None, None, "test")
    with pytest.raises(ParameterError, match="layers of at most 2,000 dimensions; this one has 2,500"):
        audit_model(long, classes=True)


def test_a_tagger(tagger):
    model, data = tagger
    layer = model_layer(model)
    assert layer.source == "OneVsAllClassifier" and layer.names == tuple(model.labels_)
    found = audit_model(model, data)
    assert found.facts["layer"]["score_above"] == pytest.approx(score_cut(model.model_.calibration_))
    # what the tagger says can come out: the audit finds inputs for it
    said = model.predict(data.texts, k=8)
    own = audit_model(model, rows([list(labels) for labels in said], tuple(model.labels_)))
    assert own.all_reachable
    for members, certificate in zip(own.audit.members, own.audit.certificates):
        assert check_certificate(layer.W, members, certificate, bias=layer.bias).reachable


def test_the_cut_of_a_calibrated_model_is_where_it_gives_a_label(tagger):
    model, data = tagger
    cut = model_layer(model).cut
    top = model.predict_topk(data.texts[:50], k=8)
    chosen = model.model_.chosen(top)
    assert (chosen == (top.scores >= np.float32(cut) - 1e-5))[np.abs(top.scores - cut) > 1e-4].all()


def test_labels_without_training_rows_are_left_out():
    X, Y = np.eye(6), np.eye(6)
    Y[5, 5] = 0
    model = OneVsAllClassifier(random_state=0).fit(X, Y)
    layer = model_layer(model)
    assert layer.silent == ("5",) and layer.names == ("0", "1", "2", "3", "4") and layer.n_labels == 5


def test_models_without_an_output_layer():
    tree = Tagger(calibrate=0, random_state=0).fit(["red apple", "fast car"] * 5, [["fruit"], ["vehicle"]] * 5)
    with pytest.raises(ModelError, match=r"a label tree has no single output layer: .* a model of the method 'ova'"):
        model_layer(tree)

    class Other(XMCEstimator):
        pass

    with pytest.raises(ModelError, match="Other has no linear output layer"):
        model_layer(Other())


def test_guarantees(tmp_path):
    np.savez(tmp_path / "dft.npz", weight=dft_matrix(9, 2), labels=np.array(list("abcdefghi")))
    layer = file_layer(tmp_path / "dft.npz")
    assert layer.guaranteed == 2 and layer.names == tuple("abcdefghi")
    sets = [["a"], ["a", "d"], ["a", "c", "e"], ["a", "b", "c"]]
    facts = audit_model(layer, rows(sets, tuple("abcdefghi"))).facts
    assert facts["layer"]["sets_beyond_guarantee"] == 2
    assert [entry["labels"] for entry in facts["audit"]["impossible"]] == [["a", "c", "e"]]  # three runs
    with pytest.raises(ParameterError, match=r"so that 2k \+ 1 <= n; got 5"):
        dft_matrix(9, 5)


def test_too_large_for_the_memory(monkeypatch):
    monkeypatch.setattr("longtail.pipeline.output_layer.available_memory", lambda: 100)
    model = OneVsAllClassifier(random_state=0).fit(np.eye(4), np.eye(4))
    with pytest.raises(DataError, match=r"an audit of 4 labels in 4 dimensions needs .* of memory"):
        model_layer(model)


def test_samples_are_the_same_for_the_same_seed():
    data = rows([["a"], ["b"], ["c"], ["d"], ["a", "b"], ["a", "c"]])
    one, two = (audit_model(Layer(W, None, NAMES, "t"), data, rows=3, random_state=1) for _ in range(2))
    assert one.facts["data"]["rows_audited"] == 3 and one.facts["audit"]["n_rows"] == 3
    assert [m.tolist() for m in one.audit.members] == [m.tolist() for m in two.audit.members]
    assert audit_model(Layer(W, None, NAMES, "t"), data, rows=100).facts["audit"]["n_rows"] == 6


def test_bins_cover_every_radius():
    rng = np.random.default_rng(0)
    found = audit_model(
        Layer(rng.standard_normal((30, 3)), None, None, "t"),
        Dataset(Y=(rng.standard_normal((50, 3)) @ rng.standard_normal((3, 30)) > 0).astype(float), texts=[""] * 50),
    ).audit
    bins = radius_bins(found)
    assert sum(bins["counts"]) + bins["zero"] == int(found.reachable.sum()) and len(bins["edges"]) <= 20


def test_files_of_label_sets(tmp_path):
    Y = sp.csr_array(np.eye(3, dtype=np.float32))
    sp.save_npz(tmp_path / "sets.npz", Y)
    assert read_label_sets(tmp_path / "sets.npz").n_labels == 3
    assert read_label_sets(tmp_path / "rows.csv") is None and read_label_sets(tmp_path / "none.jsonl") is None
    for name, content, sentence in [
        ("empty", '{"text": "x"}\n', "has no labels: no row has any"),
        ("wrong", '{"labels": 1.5}\n', "line 1: 'labels' must be a name or a list of names; got 1.5"),
        ("list", "[1]\n", "line 1 must be a JSON object; got a list"),
    ]:
        (tmp_path / f"{name}.jsonl").write_text(content)
        with pytest.raises(DataError, match=sentence):
            read_label_sets(tmp_path / f"{name}.jsonl")
