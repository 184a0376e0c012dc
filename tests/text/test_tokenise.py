"""The text kernels agree with their plain twins, and with Python's own idea of words and of string order."""

from __future__ import annotations

import itertools
import re

import numpy as np
import plain_text_kernels as twins
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.text import count_ngrams as counting
from longtail.text import hash_table as table
from longtail.text import ngrams as grams
from longtail.text import string_arrays as strings
from longtail.text import tokenise as tokens
from longtail.text import utf8
from longtail.text import weigh_counts as weights
from longtail.text.unicode_tables import fold_table

ALPHABET = "abcAB01_ .-\n\x00\x1cäÄßẞİiıΣσςéÉǅ中文字\u0307\u0301\ud800𝒳𐐀Ⱥ２²½٣"
TEXTS = st.lists(st.text(alphabet=st.sampled_from(ALPHABET) | st.characters(), max_size=40), max_size=6)


def encode(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    parts = [t.encode("utf-8", "surrogatepass") for t in texts]
    return np.frombuffer(b"".join(parts), dtype=np.uint8), np.cumsum([len(p) for p in parts], dtype=np.int64)


class Words:
    """A word table with room for anything a test puts in."""

    def __init__(self) -> None:
        self.slots, self.starts = table.make_slots(600), np.zeros(601, dtype=np.int64)
        self.arena, self.n_words = np.zeros(5000, dtype=np.uint8), 0

    def run(self, kernel, texts, fold, shortest=2, n_skip=0, grow=True):
        text, ends = encode(texts)
        ids, id_ends = np.zeros(text.size + 1, dtype=np.int32), np.zeros(ends.size, dtype=np.int64)
        self.n_words = kernel(
            text, ends, fold, shortest, n_skip, grow, self.slots, self.starts, self.arena, self.n_words, ids, id_ends
        )
        ids = ids[: id_ends[-1] if id_ends.size else 0]
        return [part.tolist() for part in np.split(ids, id_ends[:-1])] if texts else []

    def words(self) -> list[str]:
        raw = self.arena.tobytes()
        bounds = self.starts[: self.n_words + 1].tolist()
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(bounds)]


@given(TEXTS, TEXTS, st.booleans(), st.integers(1, 3), st.integers(0, 2))
@settings(deadline=None)
def test_word_ids_agrees_with_its_twin(first, second, lowercase, shortest, n_skip):
    fold = fold_table("word", lowercase)
    fast, plain = Words(), Words()
    for texts, grow in ((first, True), (second, False), (second, True)):
        a = fast.run(tokens.word_ids, texts, fold, shortest, n_skip, grow)
        assert a == plain.run(twins.word_ids_plain, texts, fold, shortest, n_skip, grow)
        assert fast.words() == plain.words()
    assert np.array_equal(fast.slots, plain.slots)


@given(TEXTS)
@settings(deadline=None)
def test_words_are_what_the_regular_expression_finds(texts):
    words = Words()
    found = words.run(tokens.word_ids, texts, fold_table("word", False))
    names = words.words()
    assert [[names[i] for i in row] for row in found] == [re.findall(r"(?u)\b\w\w+\b", t) for t in texts]


def test_words_with_equal_keys_stay_two_words():
    # The bytes behind a key are exchanged by hand, so that the key of another word is found first.
    words = Words()
    words.run(tokens.word_ids, ["abcdefghij"], fold_table("word", False))
    words.arena[:10] = np.frombuffer(b"ABCDEFGHIJ", dtype=np.uint8)
    found = words.run(tokens.word_ids, ["abcdefghij abcdefghij"], fold_table("word", False))
    assert found == [[1, 1]]
    assert words.words() == ["ABCDEFGHIJ", "abcdefghij"]


def test_short_and_long_words_never_share_a_key():
    keys = [twins.word_key_plain(w) for w in (b"a", b"a\x80", b"abcdefg", b"abcdefgh", b"abcdefg" * 3)]
    assert len(set(keys)) == 5
    assert [k >> 63 for k in keys] == [0, 0, 0, 1, 1]


@given(TEXTS, st.booleans())
@settings(deadline=None)
def test_char_ids_agrees_with_its_twin(texts, lowercase):
    text, ends = encode(texts)
    fold = fold_table("solid", lowercase)
    out = []
    for kernel in (tokens.char_ids, twins.char_ids_plain):
        ids, id_ends = np.full(2 * (text.size + ends.size), -9, dtype=np.int32), np.zeros(ends.size, dtype=np.int64)
        kernel(text, ends, fold, ids, id_ends)
        out.append((ids.tolist(), id_ends.tolist()))
    assert out[0] == out[1]


@given(st.lists(st.characters(exclude_categories=[]), max_size=30))
def test_code_points_round_trip(characters):
    text, _ = encode(characters)
    at, out, end = 0, np.zeros(text.size + 4, dtype=np.uint8), 0
    while at < text.size:
        if text[at] < 0x80:
            code, at = int(text[at]), at + 1
        else:
            code, at = utf8.read_code_point(text, at, text.size)
        end = utf8.write_code_point(code, out, end)
    assert out[:end].tobytes() == text.tobytes()


def test_damaged_utf8_is_read_without_leaving_the_array():
    for raw in (b"\xf0", b"\xe4\xb8", b"\xc3", b"\xff\xff\xff\xff", b"\x80"):
        text = np.frombuffer(raw, dtype=np.uint8)
        code, at = utf8.read_code_point(text, 0, text.size)
        assert 0 <= code < utf8.CODE_POINTS
        assert at <= text.size


@given(st.lists(st.integers(1, 2**64 - 1), unique=True, max_size=30))
def test_refill_agrees_with_its_twin(keys):
    old = table.make_slots(30)
    for value, key in enumerate(keys):
        twins.place_plain(old, key, value)
    fast, plain = table.make_slots(100), table.make_slots(100)
    table.refill(old, fast)
    twins.refill_plain(old, plain)
    assert np.array_equal(fast, plain)


class Grams:
    """A tree with room for anything a test puts in."""

    def __init__(self) -> None:
        self.first, self.slots = np.full(6, -1, dtype=np.int32), table.make_slots(2000)
        self.parent, self.last = np.zeros(2000, dtype=np.int32), np.zeros(2000, dtype=np.int32)
        self.n_nodes = 0

    def tree(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.first, self.slots, self.parent, self.last

    def count(self, kernel, ids, ends, low, high, whole, grow):
        indptr, size = np.zeros(ends.size + 1, dtype=np.int64), ids.size * (high - low + 1)
        nodes, counts = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32)
        self.n_nodes = kernel(ids, ends, low, high, whole, grow, *self.tree(), self.n_nodes, indptr, nodes, counts)
        return indptr.tolist(), nodes[: indptr[-1]].tolist(), counts[: indptr[-1]].tolist()

    def find(self, kernel, ids, ends, grow):
        found = np.zeros(ends.size, dtype=np.int32)
        self.n_nodes = kernel(ids, ends, grow, *self.tree(), self.n_nodes, found)
        return found.tolist()


SYMBOLS = st.lists(st.lists(st.integers(-1, 5), max_size=20), max_size=4)


def joined(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([s for row in rows for s in row], dtype=np.int32), np.cumsum([len(r) for r in rows], dtype=np.int64)


@given(SYMBOLS, SYMBOLS, st.integers(1, 3), st.integers(0, 2), st.booleans())
@settings(deadline=None)
def test_gram_counts_agrees_with_its_twin(first, second, low, more, whole):
    fast, plain = Grams(), Grams()
    for rows, grow in ((first, True), (second, False), (second, True)):
        arguments = (*joined(rows), low, low + more, whole, grow)
        assert fast.count(grams.gram_counts, *arguments) == plain.count(twins.gram_counts_plain, *arguments)
        assert fast.n_nodes == plain.n_nodes
        assert all(np.array_equal(a, b) for a, b in zip(fast.tree(), plain.tree(), strict=True))


@given(SYMBOLS, SYMBOLS)
@settings(deadline=None)
def test_gram_nodes_agrees_with_its_twin(first, second):
    fast, plain = Grams(), Grams()
    for rows, grow in ((first, True), (second, False), (second, True)):
        assert fast.find(grams.gram_nodes, *joined(rows), grow) == plain.find(
            twins.gram_nodes_plain, *joined(rows), grow
        )
        assert fast.n_nodes == plain.n_nodes
        assert all(np.array_equal(a, b) for a, b in zip(fast.tree(), plain.tree(), strict=True))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), max_size=30))
def test_add_counts_agrees_with_its_twin(pairs):
    nodes, counts = (np.array([p[i] for p in pairs], dtype=np.int32) for i in (0, 1))
    fast, plain = np.ones((2, 10), dtype=np.int64), np.ones((2, 10), dtype=np.int64)
    counting.add_counts(nodes, counts, *fast)
    twins.add_counts_plain(nodes, counts, *plain)
    assert np.array_equal(fast, plain)


@given(SYMBOLS, st.booleans())
@settings(deadline=None)
def test_gram_bytes_agrees_with_its_twin(rows, words):
    tree = Grams()
    tree.find(grams.gram_nodes, *joined(rows), True)
    nodes = np.arange(tree.n_nodes, dtype=np.int32)[::-1].copy()
    arena = np.frombuffer("aäb中𝒳xyz".encode(), dtype=np.uint8)
    starts = np.array([0, 1, 4, 7, 11, 12, 14], dtype=np.int64)
    last = tree.last if words else np.array([97, 228, 0x4E2D, 0x1D4B3, 0xD800, 32], dtype=np.int32)[tree.last]
    offsets = np.zeros(nodes.size + 1, dtype=np.int64)
    strings.gram_offsets(nodes, tree.parent, last, words, starts, offsets)
    same = np.zeros_like(offsets)
    twins.gram_offsets_plain(nodes, tree.parent, last, words, starts, same)
    assert np.array_equal(offsets, same)
    fast, plain = np.zeros(offsets[-1], dtype=np.uint8), np.ones(offsets[-1], dtype=np.uint8)
    strings.gram_bytes(nodes, tree.parent, last, words, starts, arena, offsets, fast)
    twins.gram_bytes_plain(nodes, tree.parent, last, words, starts, arena, offsets, plain)
    assert fast.tobytes() == plain.tobytes()


@given(st.lists(st.text(alphabet="ab \x00z中𝒳", max_size=20), max_size=40))
@settings(deadline=None)
def test_string_order_agrees_with_its_twin(texts):
    raw, ends = encode(texts)
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    assert strings.string_order(raw, offsets).tolist() == twins.string_order_plain(raw, offsets).tolist()


@pytest.mark.parametrize("n_columns", [3, 300, 70_000, 17_000_000])
def test_rows_are_sorted_whatever_the_width(n_columns):
    rng = np.random.default_rng(n_columns)
    size = min(n_columns, 100)
    column = rng.choice(n_columns, size, replace=False).astype(np.int32)
    idf = np.ones(n_columns, dtype=np.float32)
    ids, values = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.float32)
    indptr = np.array([0, size], dtype=np.int64)
    weights.tfidf_rows(
        indptr,
        np.arange(size, dtype=np.int32),
        np.ones(size, dtype=np.int32),
        column,
        idf,
        True,
        indptr.copy(),
        ids,
        values,
    )
    assert ids.tolist() == sorted(column.tolist())


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.booleans(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_tfidf_rows_agrees_with_its_twin(sizes, sublinear, random):
    nodes = np.array([n for size in sizes for n in random.sample(range(60), size)], dtype=np.int32)
    counts = np.array([random.randint(1, 9) for _ in nodes], dtype=np.int32)
    column = np.array(random.sample([*range(50), *[-1] * 10], 60), dtype=np.int32)
    idf = np.array([random.uniform(1, 9) for _ in range(50)], dtype=np.float32)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    out = []
    for kernel in (weights.tfidf_rows, twins.tfidf_rows_plain):
        pointers = np.zeros_like(indptr)
        ids, values = np.zeros(nodes.size, dtype=np.int32), np.zeros(nodes.size, dtype=np.float32)
        kernel(indptr, nodes, counts, column, idf, sublinear, pointers, ids, values)
        out.append((pointers, ids, values))
    assert np.array_equal(out[0][0], out[1][0])
    assert np.array_equal(out[0][1], out[1][1])
    np.testing.assert_allclose(out[0][2], out[1][2], rtol=1e-6)


@pytest.mark.parametrize("letters", ["word", "solid", "any"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_the_table_of_the_basic_plane_is_the_beginning_of_the_whole(letters, lowercase):
    whole = fold_table(letters, lowercase)
    assert whole.size == utf8.CODE_POINTS
    assert np.array_equal(fold_table(letters, lowercase, utf8.BASIC_PLANE), whole[: utf8.BASIC_PLANE])
    for code in (32, 9, ord("A"), ord("é"), 0x2028, 0x10400, 0x1F600):
        known = {"word": chr(code).isalnum(), "solid": not chr(code).isspace(), "any": code != 32}[letters]
        assert whole[code] == (ord(chr(code).lower() if lowercase else chr(code)) if known else -1)
