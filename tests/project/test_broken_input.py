"""What a hostile or unlucky user can do, each with one sentence and no crash."""

import json
import os
import stat

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.cli import main
from longtail.data import read
from longtail.errors import DataError, LongtailError, ModelError, ParameterError
from longtail.storage import Part, pack_strings, save_folder, unpack_strings

X = np.random.default_rng(0).random((60, 10)).astype(np.float32)
Y = np.tile(np.eye(3), (20, 1))


def broken(shape, id):
    rows, columns = shape
    return sp.csr_array((np.ones(rows), np.full(rows, id), np.arange(rows + 1)), shape=(rows, columns))


@pytest.mark.parametrize("kind", [lt.OneVsAllClassifier, lt.LabelTreeClassifier])
@pytest.mark.parametrize("id", [10**8, 10, -1])
def test_ids_outside_the_matrix_are_refused_and_do_not_crash(kind, id):
    model = kind().fit(X, Y)
    sentence = r"must have column ids from 0 to \d+; got -?\d+ in row 0"
    for function in (
        lambda: model.predict_topk(broken((60, 10), id)),
        lambda: model.predict_topk(broken((1, 10), id)),
        lambda: kind().fit(broken((60, 10), id), Y),
        lambda: kind().fit(X, broken((60, 3), id)),
        lambda: lt.Dataset(X=X, Y=broken((60, 3), id)),
        lambda: lt.text.pifa(X, broken((60, 3), id)),
        lambda: lt.data.split_stratified(broken((60, 3), id)),
    ):
        with pytest.raises(DataError, match=sentence):
            function()


def test_row_pointers_that_do_not_fit_are_refused():
    M = sp.csr_array(np.eye(3))
    M.indptr = np.array([0, 50, 2, 3])
    with pytest.raises(DataError, match="row pointers do not fit"):
        lt.OneVsAllClassifier().fit(M, np.eye(3))


@pytest.mark.parametrize("kind", [lt.OneVsAllClassifier, lt.LabelTreeClassifier])
def test_tiny_values_and_huge_k(kind):
    tiny = X.copy()
    tiny[0] = 1e-42
    top = kind().fit(tiny, Y).predict_topk(tiny, k=2)
    assert np.isfinite(top.scores[top.ids >= 0]).all()
    model = kind().fit(X, Y)
    with pytest.raises(ParameterError, match="k must be an integer between 1 and"):
        model.predict_topk(X[:2], k=10**9)
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        kind().predict(X)
    assert not hasattr(kind(), "predict_proba")


def test_strings_with_wrong_offsets_are_refused():
    part = Part("t", {}, pack_strings("s", ["ab", "c"]))
    for change in (lambda o: o + 1, lambda o: o[::-1].copy(), lambda o: -o, lambda o: o[:-1]):
        wrong = Part("t", {}, {**part.arrays, "s.offsets": change(part.arrays["s.offsets"])})
        with pytest.raises(ModelError, match="are inconsistent"):
            unpack_strings("s", wrong)


def test_texts_as_arrays_and_labels_from_generators():
    texts, labels = ["red apple", "blue car"] * 10, [["a"], ["b"]] * 10
    for given in (np.array(texts), np.array(texts, dtype=object)):
        assert lt.Tagger(calibrate=0).fit(given, (iter(row) for row in labels)).predict(given[:1]) == [("a",)]


@pytest.fixture
def model(tmp_path):
    texts, labels = ["red apple", "blue car", "old car"] * 30, [["a"], ["b"], ["b", "old"]] * 30
    lt.Tagger(random_state=0).fit(texts, labels).save(tmp_path / "m")
    (tmp_path / "new.txt").write_text("an apple\n")
    return tmp_path


def run(*args):
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in args])
    return end.value.code


def test_output_goes_through_links_and_pipes_and_keeps_modes(model):
    target, link = model / "t.jsonl", model / "l.jsonl"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    assert run("predict", model / "m", model / "new.txt", "-o", link) == 0
    assert link.is_symlink() and json.loads(target.read_text())["labels"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    if hasattr(os, "mkfifo"):
        os.mkfifo(model / "pipe")
        reader = os.open(model / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        assert run("predict", model / "m", model / "new.txt", "-o", model / "pipe") == 0
        assert json.loads(os.read(reader, 10_000))["labels"]
        os.close(reader)
        with pytest.raises(DataError, match="its format cannot be guessed"):
            read(model / "pipe")


@pytest.mark.parametrize("name", ["manifest.json", "labels.jsonl"])
def test_json_nested_without_end_is_damage(model, name):
    file = next((model / "m").glob(name.replace(".", "*.")))
    file.write_text("[" * 100_000)
    with pytest.raises(ModelError):
        lt.load(model / "m", verify=False)


@pytest.mark.parametrize(
    "change", [{"values": [0.1, 9.0]}, {"values": [0.5, 0.1]}, {"scores": [1.0]}, {"scores": [np.nan, 1]}]
)
def test_curves_that_are_none_are_refused(tmp_path, change):
    fitted = lt.OneVsAllClassifier().fit(X, Y).calibrate(X, Y)
    parts = fitted.parts()
    arrays = {"scores": np.array([0.0, 1.0], np.float32), "values": np.array([0.1, 0.9], np.float32)}
    arrays |= {name: np.array(values, np.float32) for name, values in change.items()}
    parts["calibration"] = Part("calibration.v1", parts["calibration"].params, arrays)
    save_folder(tmp_path / "m", "estimator.v1", parts)
    with pytest.raises(ModelError, match="calibration"):
        lt.load(tmp_path / "m")


def test_labels_of_counts_from_the_end_and_refuses_what_is_not_there():
    data = lt.Dataset.from_lists(["a", "b"], [["x"], ["y"]])
    assert data.labels_of(-1) == ("y",)
    with pytest.raises(DataError, match="row must be from 0 to 1; got 2"):
        data.labels_of(2)


def test_commands_refuse_what_makes_no_sense(model, capsys):
    assert run("predict", model / "m", model / "new.txt", "--min-probability", 7) == 2
    rows = model / "rows.jsonl"
    rows.write_text('{"text": "a", "labels": ["x"]}\n')
    assert run("convert", rows, model / "out.jsonl", "--write-labels", model / "out.jsonl") == 2
    assert "must be different files" in capsys.readouterr().err


def test_half_a_surrogate_pair_stays_json(model, capfdbinary):
    (model / "odd.jsonl").write_text('{"text": "an apple \\ud800", "id": "\\ud800"}\n')
    capfdbinary.readouterr()
    assert run("predict", model / "m", model / "odd.jsonl") == 0
    assert json.loads(capfdbinary.readouterr().out.decode("utf-8"))["id"] == "\ud800"


def test_every_error_is_one_of_ours():
    assert issubclass(DataError, LongtailError) and DataError.exit_code == 3
