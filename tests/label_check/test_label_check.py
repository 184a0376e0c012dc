"""Label checks find planted errors, and say nothing about sound data."""

import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.data import Dataset, TopK, write
from longtail.data.synthetic.generate import make_topics
from longtail.errors import DataError, ParameterError
from longtail.label_check import find_missing, find_wrong, recall_of_labels, weigh
from longtail.label_check.duplicates import find_duplicates
from longtail.label_check.synonyms import find_synonyms


@pytest.fixture(scope="module")
def planted():
    """Texts with 20 labels exchanged for another one."""
    data = make_topics(500, 8, random_state=3)[0]
    names = data.names()
    lists = [[names[i] for i in data.Y.indices[a:b]] for a, b in zip(data.Y.indptr, data.Y.indptr[1:], strict=False)]
    rng = np.random.default_rng(0)
    removed, added = set(), set()
    for row in rng.choice(500, 20, replace=False).tolist():
        if not lists[row]:
            continue
        gone = lists[row][0]
        new = next(name for name in rng.permutation(names).tolist() if name not in lists[row])
        lists[row][0] = new
        removed.add((row, gone))
        added.add((row, new))
    return Dataset.from_lists(data.texts, lists), removed, added


def pairs(found):
    return [(s["row"], s["label"]) for s in found]


def test_planted_errors_are_ranked_first(planted):
    data, removed, added = planted
    facts = lt.check_labels(data, random_state=0)
    assert len(set(pairs(facts["wrong"])[: len(added)]) & added) >= 0.6 * len(added)
    assert len(set(pairs(facts["missing"])[: len(removed)]) & removed) >= 0.5 * len(removed)
    assert facts["counts"]["wrong"] == len(facts["wrong"])
    assert json.loads(json.dumps(facts)) == facts
    few = lt.check_labels(data, random_state=0, limit=3, n_jobs=2)
    assert few["wrong"] == facts["wrong"][:3] and few["counts"] == facts["counts"]


def weigh_plain(Y, top):
    """The same means from dense matrices."""
    P = np.zeros(Y.shape)
    for row, (ids, scores) in enumerate(zip(top.ids, top.scores, strict=True)):
        P[row, ids[ids >= 0]] = scores[ids >= 0]
    D = Y.toarray() > 0
    overall = P[D].mean()
    usual = (np.where(D, P, 0).sum(axis=0) + 10 * overall) / (D.sum(axis=0) + 10)
    return P, D, usual, np.where(D, 0, P).sum(axis=0) / np.maximum((~D).sum(axis=0), 1)


def test_sparse_means_and_suspects_equal_dense_ones():
    rng = np.random.default_rng(1)
    Y = sp.csr_array((rng.random((60, 12)) < 0.2).astype(np.float32))
    top = TopK.from_scores(rng.random((60, 12)) ** 3, k=5)
    P, D, usual, background = weigh_plain(Y, top)
    evidence = weigh(Y, top)
    assert np.allclose(evidence.given, P[D]) and np.allclose(evidence.usual, usual)
    assert np.allclose(evidence.background, background)
    missing, wrong = find_missing(Y, top, evidence), find_wrong(Y, evidence, np.ones(12, bool))
    listed = np.zeros(Y.shape, bool)
    listed[np.arange(60)[:, None], top.ids] = True
    assert set(zip(missing.rows, missing.labels, strict=True)) == set(
        zip(*np.nonzero(listed & ~D & (usual <= P)), strict=True)
    )
    assert set(zip(wrong.rows, wrong.labels, strict=True)) == set(
        zip(*np.nonzero(D & (background >= P) & (usual > P)), strict=True)
    )
    assert (np.diff(wrong.suspicion) <= 0).all() and (np.diff(missing.suspicion) <= 0).all()
    hits = [
        np.mean([label in top.ids[r, : D[r].sum()] for r in np.flatnonzero(D[:, label])]) if D[:, label].any() else 0.0
        for label in range(12)
    ]
    assert np.allclose(recall_of_labels(Y, top), hits)


def test_duplicates_by_text_by_words_and_by_features():
    texts = ["A cat.", "a  cat", "one dog", "dog, one", "alone", "", ""]
    Y = sp.csr_array(np.array([[1, 0], [1, 1], [1, 0], [0, 1], [1, 0], [1, 0], [0, 1]]))
    same, words = find_duplicates(texts, None, Y)
    assert same == ("same text", [0, 1], [0], [1])
    assert words == ("same words", [2, 3], [], [0, 1])
    X = sp.csr_array(np.array([[1.0, 0], [1, 0], [2, 0], [0, 1], [0, 3], [0, 0], [0, 0]]))
    assert [d.rows for d in find_duplicates(None, X, Y)] == [[0, 1]]
    assert [d.rows for d in find_duplicates(None, X.toarray(), Y)] == [[0, 1]]


def test_synonyms_by_name_by_words_and_by_shared_rows():
    texts = (
        ["an old red car", "an old red car", "a fast car", "a fast car"] * 5
        + ["sweet green apple", "sour green apple"] * 10
        + ["blue sky"] * 10
    )
    lists = (
        [["car"], ["auto"]] * 10
        + [["fruit", "food"]] * 20
        + [["Blue-Sky"]] * 5
        + [["blue sky", "C"], ["C++"]] * 2
        + [["C++"]]
    )
    data = Dataset.from_lists(texts, lists)
    names = data.names()
    found = find_synonyms(lt.TfidfFeatures().fit_transform(texts), data.Y, names)
    by = {frozenset((names[s.first], names[s.second])): s.reason for s in found}
    assert by[frozenset(("Blue-Sky", "blue sky"))] == "same name"
    assert by[frozenset(("car", "auto"))] == "used for each other"
    assert by[frozenset(("fruit", "food"))] == "used together"
    assert by.get(frozenset(("C", "C++"))) != "same name"


def test_labels_with_too_few_rows_are_listed_and_not_judged(planted):
    data, _, _ = planted
    texts, names = list(data.texts), data.names()
    lists = [[names[i] for i in data.Y.indices[a:b]] for a, b in zip(data.Y.indptr, data.Y.indptr[1:], strict=False)]
    lists[7] = [*lists[7], "only once"]
    facts = lt.check_labels(Dataset.from_lists(texts, lists))
    assert {"label": "only once", "rows": 1, "recall": 0.0, "reason": "too few rows"} in facts["unlearned"]
    assert (7, "only once") not in pairs(facts["wrong"])


def test_bad_values_are_refused(planted):
    with pytest.raises(ParameterError, match="folds must be an integer >= 2; got 1"):
        lt.check_labels(planted[0], folds=1)
    with pytest.raises(DataError, match="in 5 folds needs as many rows, and labels; the data has 2 rows"):
        lt.check_labels(Dataset.from_lists(["a", "b"], [["x"], ["y"]]))


def test_the_command_writes_tables_json_and_csv(planted, tmp_path, run):
    data, _, _ = planted
    file, out = tmp_path / "rows.jsonl", tmp_path / "findings.csv"
    write(data, file)
    told = run("check-labels", file, "-o", out, "--show", 3)
    assert "Labels that look wrong" in told and "Labels that look missing" in told
    facts = json.loads(run("check-labels", file, "--json"))
    lines = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    kinds = {"wrong": "wrong", "missing": "missing", "unlearned": "unlearned", "synonyms": "synonyms"}
    for kind, key in kinds.items():
        assert sum(line["finding"] == kind for line in lines) == facts["counts"][key]
    assert lines[0]["finding"] == "wrong" and int(lines[0]["row"]) == facts["wrong"][0]["row"]
    run("check-labels", file, "--folds", 2, "--report", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Labels that look wrong" in page and facts["wrong"][0]["label"] in page
    assert run("check-labels", file, "-o", file, code=2)
    assert run("check-labels", file, "-o", out, "--report", out, code=2)
    assert run("check-labels", file, "--folds", 1, code=2)
    (tmp_path / "few.csv").write_text("text,labels\na cat,x\n")
    assert "few.csv has 1 rows" in run("check-labels", tmp_path / "few.csv", code=3)
