"""Label checks find planted errors, and say nothing about sound data."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.data import Dataset, TopK, write
from longtail.data.synthetic.generate import make_topics
from longtail.errors import DataError, ParameterError
from longtail.label_check import find_missing, find_wrong, recall_of_labels, unexplained, weigh, write_findings
from longtail.label_check.duplicates import find_duplicates
from longtail.label_check.other_labels import co_occurrence
from longtail.label_check.suspects import given_probabilities
from longtail.label_check.synonyms import _near_pairs, find_synonyms


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
    evidence = weigh(Y, top, given_probabilities(Y, top))
    assert np.allclose(evidence.given, P[D]) and np.allclose(evidence.usual, usual)
    assert np.allclose(evidence.background, background)
    missing, wrong = find_missing(Y, top, evidence), find_wrong(Y, evidence, unexplained(Y, top))
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


def co_occurrence_plain(rows, labels, Y, co, counts, share):
    """The same by dictionaries of dense matrices."""
    out = []
    for row, label in zip(rows, labels, strict=True):
        shares = [
            max((co[g, label] + 5 * share[label]) / (counts[g] + 5), share[label])
            for g in np.flatnonzero(Y[row])
            if g != label
        ]
        lift = sum(np.log((s + 1e-6) / (share[label] + 1e-6)) for s in shares)
        shares = shares or [share[label]]
        out.append([np.log(max(shares) + 1e-4), np.log(np.mean(shares) + 1e-4), min(max(lift, -20.0), 20.0)])
    return np.array(out)


def test_co_occurrence_equals_its_plain_twin():
    rng = np.random.default_rng(2)
    D = (rng.random((40, 9)) < 0.3).astype(np.float32)
    Y, co = sp.csr_array(D), sp.csr_array(D.T @ D)
    counts, share = D.sum(axis=0).astype(np.float64), D.mean(axis=0).astype(np.float64)
    rows, labels = np.repeat(np.arange(40), 9), np.tile(np.arange(9, dtype=np.int32), 40)
    out = np.empty((rows.size, 3))
    at, co_at = Y.indptr.astype(np.int64), co.indptr.astype(np.int64)
    co_occurrence(rows, labels, at, Y.indices, co_at, co.indices, co.data, counts, share, out)
    assert np.allclose(out, co_occurrence_plain(rows, labels, D, co.toarray(), counts, share), atol=1e-6)


def test_a_label_that_always_comes_with_another_is_missed_where_the_text_is_silent():
    rng = np.random.default_rng(0)
    topics, lists = rng.integers(6, size=900), []
    texts = [f"word{t} word{t} filler{i % 40}" for i, t in enumerate(topics)]
    for t in topics:  # "mark" comes by chance and is in no text; "with mark" always comes with it
        lists.append([f"topic{t}", *(["mark", "with mark"] if rng.random() < 0.3 else [])])
    gone = [i for i in range(900) if "mark" in lists[i]][:15]
    for i in gone:
        lists[i].remove("with mark")
    missing = pairs(lt.check_labels(Dataset.from_lists(texts, lists), random_state=0)["missing"])
    assert len(missing) >= 3 and set(missing) <= {(i, "with mark") for i in gone}


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
    lines = list(csv.DictReader(out.read_text("utf-8-sig").splitlines()))
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


def test_alike_labels_are_those_of_all_pairs():
    rng = np.random.default_rng(5)
    dense = rng.random((60, 30)) * (rng.random((60, 30)) < 0.15)
    dense[30:] = dense[:30] + 0.1 * rng.random((30, 30)) * (rng.random((30, 30)) < 0.2)
    V = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-9)
    cosines = V @ V.T - 2 * np.eye(60)
    all_pairs = {
        (min(a, int(b)), max(a, int(b)))
        for a in range(60)
        for b in np.argsort(-cosines[a], kind="stable")[:5]
        if cosines[a, b] >= 0.7 + 1e-6
    }
    assert set(_near_pairs(sp.csr_array(V.astype(np.float32)), np.full(60, 3))) == all_pairs and all_pairs


def test_names_of_a_vocabulary_deprecated_and_unknown_labels(planted, tmp_path, run):
    data, _, _ = planted
    file, out, vocabulary = tmp_path / "rows.jsonl", tmp_path / "findings.csv", tmp_path / "topics.csv"
    write(data, file)
    lines = [f"http://ex.org/{n},topic{n},Thema {n},{'true' if n == 1 else ''}," for n in range(7)]
    lines[1] += "http://ex.org/2"
    vocabulary.write_text("uri,notation,label_de,deprecated,replaced_by\n" + "\n".join(lines))
    command = ["check-labels", file, "--folds", 2, "--vocabulary", vocabulary, "--lang", "de"]
    facts = json.loads(run(*command, "-o", out, "--report", tmp_path / "page.html", "--json"))
    wrong = next(w for w in facts["wrong"] if w["label"] != "topic7")
    assert wrong["label"].startswith("http://ex.org/") and wrong["name"].startswith("Thema ")
    assert facts["vocabulary"]["labels_unknown"] == 1 and facts["vocabulary"]["unknown"][0]["label"] == "topic7"
    lines = list(csv.DictReader(out.read_text("utf-8-sig").splitlines()))
    old = next(line for line in lines if line["finding"] == "deprecated")
    assert (old["label"], old["name"], old["other_names"]) == ("http://ex.org/1", "Thema 1", "Thema 2")
    assert [line["label"] for line in lines if line["finding"] == "unknown"] == ["topic7"]
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Thema 3" in page and "Deprecated concepts in use" in page and "7 of 8 labels are concepts" in page
    assert "--lang can only be used with --vocabulary" in run("check-labels", file, "--lang", "de", code=2)


def test_concepts_with_one_name_may_mean_the_same(planted, tmp_path, run):
    data, _, _ = planted
    uris = tuple(f"http://ex.org/{n}" for n in range(data.n_labels))
    write(replace(data, label_names=uris), tmp_path / "rows.jsonl")
    names = [f"Thema {n}" for n in range(data.n_labels)]
    names[5] = "thema-2"
    lines = [f"<{uri}>\t{name}\n" for uri, name in zip(uris, names, strict=True)]
    (tmp_path / "v.tsv").write_text("".join(lines))
    command = ["check-labels", tmp_path / "rows.jsonl", "--folds", 2]
    facts = json.loads(run(*command, "--vocabulary", tmp_path / "v.tsv", "--json"))
    same = [found for found in facts["synonyms"] if found["reason"] == "same name"]
    assert [found["label_names"] for found in same] == [["Thema 2", "thema-2"]]


def test_no_cell_is_a_formula_for_a_spreadsheet(tmp_path):
    data = make_topics(200, 4, random_state=1)[0]
    names = dict(zip(data.names(), ["=cmd|' /C calc'!A0", "-Wall", "@home", "Käse"], strict=True))
    lists = [
        [names[data.names()[i]] for i in data.Y.indices[a:b]]
        for a, b in zip(data.Y.indptr, data.Y.indptr[1:], strict=False)
    ]
    facts = lt.check_labels(Dataset.from_lists(["+" + text for text in data.texts], lists), folds=2)
    write_findings(tmp_path / "out.csv", facts)
    raw = (tmp_path / "out.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")  # by which a spreadsheet knows the encoding
    for line in csv.reader(raw.decode("utf-8-sig").splitlines()):
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in line)
