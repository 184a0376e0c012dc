"""Large trees stay in their files: nothing is copied when they are loaded, and the search reads what it visits."""

import numpy as np
import pytest

import longtail as lt
from longtail.tree import chunks as tree_chunks
from longtail.tree.chunks import starts_of


@pytest.fixture
def rows():
    return lt.data.make_linear(n_rows=400, n_features=150, n_labels=90, random_state=0)[0]


@pytest.fixture
def model(rows):
    return lt.LabelTreeClassifier(max_leaf=10, branching=4, random_state=0).fit(rows.X, rows.Y)


def loaded_large(model, folder, monkeypatch):
    monkeypatch.setattr(tree_chunks, "LEFT_IN_FILES", 1)
    return lt.load(model.save(folder))


def test_a_large_tree_is_mapped_and_predicts_the_same(rows, model, tmp_path, monkeypatch):
    want = model.predict_topk(rows.X, k=5)
    large = loaded_large(model, tmp_path / "m", monkeypatch)
    (chunks,) = large.chunks_
    assert chunks.children.dtype == chunks.counts.dtype == np.uint8
    assert not chunks.children.flags.writeable and not chunks.entry_starts.flags.writeable
    one = [large.predict_topk(rows.X[[i]], k=5) for i in range(60)]  # without what makes the search fast
    assert "spread" not in vars(chunks)
    assert np.array_equal(np.concatenate([top.ids for top in one]), want.ids[:60])
    assert np.array_equal(np.concatenate([top.scores for top in one]), want.scores[:60])
    for _ in range(2):  # with it
        top = large.predict_topk(rows.X, k=5)
        assert np.array_equal(top.ids, want.ids) and np.array_equal(top.scores, want.scores)


def test_a_large_tree_without_an_index_predicts_the_same(rows, model, tmp_path, monkeypatch):
    want = model.predict_topk(rows.X, k=5)
    monkeypatch.setattr(tree_chunks, "LARGEST_SPREAD", 0)
    top = loaded_large(model, tmp_path / "m", monkeypatch).predict_topk(rows.X, k=5)
    assert np.array_equal(top.ids, want.ids) and np.array_equal(top.scores, want.scores)


def test_places_of_too_many_lines_are_not_made(model, monkeypatch):
    (chunks,) = model.chunks_
    index_bytes = chunks.n_chunks * -(-chunks.n_features // 40) * 8
    monkeypatch.setattr(tree_chunks, "LARGEST_SPREAD", index_bytes + 1)
    monkeypatch.setattr(tree_chunks, "LARGEST_PLACES", 8 * chunks.counts.size - 1)
    vars(chunks).pop("spread", None)
    assert all(array.size == 0 for array in chunks.spread)


def test_a_large_tree_is_saved_again_changed_and_explained(rows, model, tmp_path, monkeypatch):
    large = loaded_large(model, tmp_path / "m", monkeypatch)
    again = lt.load(large.save(tmp_path / "again"))
    assert [file.name for file in sorted((tmp_path / "m").iterdir())] == [
        file.name for file in sorted((tmp_path / "again").iterdir())
    ]  # names have digests
    assert again.to_part().arrays.keys() == large.to_part().arrays.keys()
    more = (rows.X[:50], rows.Y[:50])
    want = model.partial_fit(*more).predict_topk(rows.X, k=3)
    got = large.partial_fit(*more).predict_topk(rows.X, k=3)
    assert np.array_equal(got.ids, want.ids) and np.array_equal(got.scores, want.scores)


def test_wrong_starts_are_refused(model, tmp_path, monkeypatch):
    monkeypatch.setattr(tree_chunks, "LEFT_IN_FILES", 1)
    (chunks,) = model.chunks_
    wrong = starts_of(chunks.counts)
    wrong[1:-1] += 1
    vars(chunks)["entry_starts"] = wrong
    with pytest.raises(lt.errors.ModelError, match=r"entry_starts.*counts"):
        lt.load(model.save(tmp_path / "m"))


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_starts_are_those_of_a_plain_sum(n):
    counts = np.random.default_rng(n).integers(0, 300, n).astype(np.uint16)
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    assert starts_of(counts).tolist() == [*ends[:-1:64].tolist(), ends[-1]] if n else starts_of(counts).tolist() == [0]
