"""The method that suits some data: plan, `--method auto` and Tagger(method="auto") choose alike, by one table."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.data import Dataset, write
from longtail.data.synthetic.generate import make_topics
from longtail.errors import ParameterError
from longtail.pipeline import choose_method as rules
from longtail.pipeline import plan_training
from longtail.pipeline.choose_method import RULES, Situation, choose_for, choose_method


class WithGPU(Situation):
    has_encoder = True
    has_gpu = True


def data_of(n_labels, rows_per_label):
    """Return rows of numbers in which every label has the same number of rows."""
    labels = np.arange(n_labels * rows_per_label) % n_labels
    Y = sp.csr_array((np.ones(labels.size), (np.arange(labels.size), labels)))
    X = sp.csr_array((np.ones(labels.size), (np.arange(labels.size), labels % 97)))
    return Dataset(X=X.astype(np.float32), Y=Y.astype(np.float32))


def situation(kind=Situation, rows=100_000, labels=10_000, pairs=200_000, **more):
    asked = {"has_texts": True, "has_label_texts": True, "own_features": False, **more}
    return kind(rows=rows, labels=labels, pairs=pairs, **asked)


@pytest.mark.parametrize(
    ("n_labels", "rows_per_label", "method"),
    [(50, 20, "tree"), (1_999, 1, "tree"), (2_000, 4, "ova"), (5_000, 4, "ova"), (5_001, 4, "tree"), (5_001, 2, "ova")],
)
def test_labels_and_rows_decide(n_labels, rows_per_label, method):
    choice = choose_method(data_of(n_labels, rows_per_label))
    assert choice["method"] == method
    assert f"{n_labels:,} labels with {rows_per_label:.1f} rows each" in choice["why"]
    assert choice["runner_up"] != method and choice["sources"]
    assert all(not sentence.startswith(method) for sentence in choice["would_change"])


def test_an_encoder_needs_texts_of_labels_rows_and_a_gpu():
    choice = choose_for(situation(WithGPU))
    assert (choice["method"], choice["settings"], choice["runner_up"]) == ("hybrid", {}, "tree")
    for lacking, words in (
        ({"has_label_texts": False}, "hybrid with texts of labels and a GPU"),
        ({"rows": 9_000}, "hybrid with 20,000 rows (here 9,000) and a GPU"),
        ({"has_texts": False}, "hybrid with texts in place of rows of numbers and a GPU"),
        ({"own_features": True}, "hybrid with no settings of its own for words and a GPU"),
    ):
        choice = choose_for(situation(WithGPU, **lacking))
        assert choice["method"] != "hybrid" and words in choice["would_change"]


def test_whether_there_is_a_gpu_is_asked_only_where_all_else_is_there(monkeypatch):
    monkeypatch.setattr(rules, "import_torch", None)  # would fail
    assert choose_for(situation(has_label_texts=False))["method"] == "tree"
    monkeypatch.setattr(rules, "choose_for", None)
    assert "choice" not in plan_training(make_topics(100, 5)[0], lt.Tagger(), probe=False)  # as `train` asks


def test_every_rule_names_methods_that_exist_and_settings_they_have():
    for rule in RULES:
        assert rule.runner_up in lt.pipeline.METHODS
        lt.pipeline.METHODS[rule.method](**rule.settings)
    assert RULES[-1].needs == ()


@pytest.mark.parametrize(("n_rows", "n_labels"), [(300, 10), (500, 40)])
def test_plan_train_and_tagger_agree(n_rows, n_labels, tmp_path, run, monkeypatch):
    limit = rules.Need(lambda s: "fewer labels", lambda s: s.labels < 20)
    changed = tuple(
        r if r.needs != (rules.FEW_LABELS,) else rules.Rule(**{**vars(r), "needs": (limit,)}) for r in RULES
    )
    always = rules.Need(lambda s: "more labels", lambda s: s.labels >= 20)
    changed = tuple(
        r if r.needs != (rules.SOME_LABELS,) else rules.Rule(**{**vars(r), "needs": (always,)}) for r in changed
    )
    monkeypatch.setattr(rules, "RULES", changed)
    data = make_topics(n_rows, n_labels, random_state=1)[0]
    wanted = "tree" if n_labels < 20 else "ova"
    file = tmp_path / "rows.jsonl"
    write(data, file)
    planned = json.loads(run("plan", file, "--json"))
    assert planned["method"] == planned["choice"]["method"] == wanted
    tagger = lt.Tagger("auto", random_state=0, n_jobs=1).fit_dataset(lt.data.read(file))
    assert tagger.method == "auto" and tagger.method_ == tagger.method_name == wanted
    assert tagger.get_params()["model"] is None
    assert plan_training(data, lt.Tagger("auto"), probe=False)["method"] == wanted
    run("train", file, "-o", tmp_path / "model", "--method", "auto", "--jobs", 1)
    loaded = lt.load(tmp_path / "model")
    assert loaded.method_ == loaded.method_name == wanted
    texts = list(data.texts[:20])
    assert loaded.predict_topk(texts).scores.tobytes() == tagger.predict_topk(texts).scores.tobytes()


def test_the_plan_says_why_and_what_would_change_it(tmp_path, run):
    file = tmp_path / "rows.jsonl"
    write(make_topics(300, 10, random_state=1)[0], file)
    out = run("plan", file).splitlines()
    assert out[0].startswith("Method: tree, a label tree. 300 rows, 10 labels with ")
    assert out[1].startswith("Runner-up: ova, one linear classifier per label: ")
    assert out[2].startswith("It would be ova with 2,000 to 5,000 labels (here 10); hybrid with ")
    assert "What follows is for ova." in run("plan", file, "--method", "ova")
    assert "What follows" not in run("plan", file, "--overlap", 2)


def test_a_vocabulary_gives_texts_to_labels(tmp_path, run):
    data, file = make_topics(300, 10, random_state=1)[0], tmp_path / "rows.jsonl"
    write(data, file)
    (tmp_path / "labels.tsv").write_text("".join(f"<{name}>\tname {name}\n" for name in data.names()))
    plain, named = run("plan", file), run("plan", file, "--vocabulary", tmp_path / "labels.tsv")
    assert "texts of labels" in plain.splitlines()[2] and "texts of labels" not in named.splitlines()[2]


def test_a_model_or_its_options_cannot_be_given_with_auto(tmp_path, run):
    data = make_topics(100, 5)[0]
    with pytest.raises(ParameterError, match="model cannot be given with the method 'auto'"):
        lt.Tagger("auto", model=lt.OneVsAllClassifier()).fit_dataset(data)
    write(data, tmp_path / "rows.jsonl")
    err = run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "m", "--method", "auto", "--overlap", 2, code=2)
    assert err == "error: --overlap is an option of some methods; with --method auto give none of them.\n"
    assert not (tmp_path / "m").exists()
    with pytest.raises(ParameterError, match="method must be one of"):
        lt.Tagger("automatic").fit_dataset(data)


def test_groups_can_be_trained_on_with_auto():
    texts = ["red apple", "fast car", "an old car", "green apple", "apple", "car"]
    tags = {"1": ["fruit", "vehicle"], "2": ["vehicle", "fruit"], "3": ["fruit"], "4": ["vehicle"]}
    tagger = lt.Tagger("auto", random_state=0).fit_groups(texts, ["1", "1", "2", "2", "3", "4"], tags)
    assert tagger.method_ == "tree"
