"""TF-IDF rows in which the first words of a text, and pairs of them, count in columns of their own too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError, ParameterError, warn_of_data
from longtail.model import Transformer, clone, not_fitted
from longtail.storage import Part, PartSchema, checked
from longtail.text.check_texts import as_texts
from longtail.text.row_vectors import scaled, side_by_side, unit_rows
from longtail.text.schema import BEGINNING_SCHEMA, BEGINNING_WORDS, MOST_WEIGHT, WHOLE
from longtail.text.tfidf import TfidfFeatures
from longtail.text.unknown_terms import UnknownTerms
from longtail.validate import as_sparse, check_integer, check_real

AUTO = "auto"
PART, MOST_WORDS, FEWEST_WORDS = 4, 100, 8  # "auto": a fourth of the mean text, at most and at least so many words
SAMPLE = 1000  # texts whose words are counted for "auto"
PAIRS_WEIGHT = 0.7  # of pairs of words beside words, in beginnings and short texts


class BeginningFeatures(Transformer):
    """Turn texts into TF-IDF rows in which words and pairs at the beginning of a text have columns of their own too.

    `row = [words, weight * words and pairs of the beginning]`, both of unit length, and then divided by its length. A
    title or first sentence says most of what a long text is about.

    Parameters
    ----------
    tfidf : TfidfFeatures, default=None
        How words of whole texts are counted; None for `TfidfFeatures()`.
    of_beginning : TfidfFeatures, default=None
        How words of beginnings are counted; None for what `tfidf` says, and where that has single words alone, for
        pairs of them too, which count 0.7.
    beginning : int or "auto", default="auto"
        Words, between spaces, that are the beginning of a text, 0 for none. "auto" for a fourth of the mean length of
        the texts learned from, at most 100; where that is less than 8, texts are short and one beginning as a whole:
        words are counted once, as `of_beginning` says.
    weight : float, default=0.5
        How much the beginning counts beside the whole text, at most 1,000.
    n_jobs : int or None, default=None
        Threads; None for all cores. The result is the same for any number.

    Attributes
    ----------
    tfidf_ : TfidfFeatures
        The words of whole texts.
    beginning_ : TfidfFeatures or None
        The words and pairs of beginnings; None where texts have none, or are one as a whole.
    n_words_ : int
        Words of a beginning; 0 where there is none.
    n_features_ : int
        Columns of the rows.

    Examples
    --------
    >>> texts = ["Apple pie: take flour and sugar", "Sugar beet: take a field and a plough"]
    >>> features = BeginningFeatures(beginning=2).fit(texts)
    >>> features.get_feature_names_out()[-4:].tolist()  # pairs in two texts would have columns as well
    ['beginning: apple', 'beginning: beet', 'beginning: pie', 'beginning: sugar']
    """

    kind: ClassVar[str] = BEGINNING_SCHEMA.kind
    schema: ClassVar[PartSchema] = BEGINNING_SCHEMA
    tfidf_: TfidfFeatures
    beginning_: TfidfFeatures | None
    n_words_: int
    n_features_: int

    def __init__(
        self,
        tfidf: TfidfFeatures | None = None,
        *,
        of_beginning: TfidfFeatures | None = None,
        beginning: int | str = AUTO,
        weight: float = 0.5,
        n_jobs: int | None = None,
    ) -> None:
        self.tfidf = tfidf
        self.of_beginning = of_beginning
        self.beginning = beginning
        self.weight = weight
        self.n_jobs = n_jobs

    def fit(self, texts: Sequence[str], y: object = None) -> Self:
        """Learn the words of texts and of their beginnings, and return self; `y` is ignored."""
        given = as_texts(texts)
        whole, first, n_words = self.unfitted(given)
        self._keep(whole.fit(given), *self._learned_beginnings(first, given, n_words))
        return self

    def fit_transform(self, texts: Sequence[str], y: object = None) -> sp.csr_array:
        """Learn the words and return the rows of the same texts; `y` is ignored."""
        given = as_texts(texts)
        whole, first, n_words = self.unfitted(given)
        rows = whole.fit_transform(given)
        self._keep(whole, *self._learned_beginnings(first, given, n_words))
        return self._joined(rows, given)

    def unfitted(self, texts: Sequence[str]) -> tuple[TfidfFeatures, TfidfFeatures | None, int]:
        """Return what is to learn the words of texts and of their beginnings, and how many words these are.

        >>> whole, first, n_words = BeginningFeatures(beginning=1).unfitted(["red apple", "old car"])
        >>> whole.ngrams, first.ngrams, n_words
        ((1, 1), (1, 2), 1)
        """
        check_beginning(self.beginning)
        check_real("weight", self.weight, low=0, high=MOST_WEIGHT)
        for name, words in (("tfidf", self.tfidf), ("of_beginning", self.of_beginning)):
            if words is not None and not isinstance(words, TfidfFeatures):
                raise ParameterError(name=name, allowed="TfidfFeatures or None", got=words)
        whole = self._with_threads(TfidfFeatures() if self.tfidf is None else clone(self.tfidf))
        first = with_pairs(whole) if self.of_beginning is None else clone(self.of_beginning)
        first = self._with_threads(first)
        n_words = beginning_length(texts) if self.beginning == AUTO else int(self.beginning)
        if n_words:
            return whole, first, n_words
        whole._analysis()  # refuses wrong parameters, also of what is not used
        return first if self.beginning == AUTO else whole, None, 0

    def transform(self, texts: Sequence[str]) -> sp.csr_array:
        """Return one row per text, CSR float32 (n_texts, n_features_); a text without a known word is all zeros."""
        self._check_fitted()
        given = as_texts(texts)
        return self._joined(self._with_threads(self.tfidf_).transform(given), given)

    def unknown_terms(
        self, texts: Sequence[str], *, learned_from: int | None = None, first: int = 0
    ) -> UnknownTerms | None:
        """Return how many words of every text, read as a whole, are not known, and which; as `TfidfFeatures` does.

        >>> found = BeginningFeatures(beginning=1).fit(["red apple", "red car"]).unknown_terms(["red bus"])
        >>> found.terms.tolist(), found.unknown.tolist(), found.names
        ([2], [1], ['bus'])
        """
        self._check_fitted()
        of_whole = int((self._columns[: self.tfidf_.n_features_] < first).sum())
        return self._with_threads(self.tfidf_).unknown_terms(texts, learned_from=learned_from, first=of_whole)

    def extended(self, texts: Sequence[str], n_rows: int) -> Self:
        """Return features that know the new terms of some texts too, in columns after the old ones, which stay.

        `n_rows` texts were learned from before; a new term is taken to have been in none of them.

        >>> features = BeginningFeatures(beginning=1).fit(["red apple", "red car"])
        >>> features.extended(["blue car"], n_rows=2).get_feature_names_out().tolist()
        ['apple', 'car', 'red', 'beginning: red', 'blue', 'beginning: blue']
        """
        self._check_fitted()
        given = as_texts(texts)
        out = clone(self)
        whole, first = self.tfidf_.extended(given, n_rows), None
        if self.beginning_ is not None:
            first = self.beginning_.extended(first_words(given, self.n_words_), n_rows)
        out._keep(whole, first, self.n_words_, self._terms_learned)
        return out

    def rows_with_terms(self, n_rows: int) -> np.ndarray:
        """Return in how many of the rows learned from each term was, found back from its weight."""
        self._check_fitted()
        out = np.empty(self.n_features_)
        parts = [words.rows_with_terms(n_rows) for words in (self.tfidf_, self.beginning_) if words is not None]
        out[self._columns] = np.concatenate(parts)
        return out

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the terms, then those of beginnings; after an update its new ones, in the same order."""
        self._check_fitted()
        first = () if self.beginning_ is None else self.beginning_.get_feature_names_out()
        names = np.empty(self.n_features_, dtype=object)
        names[self._columns] = [*self.tfidf_.get_feature_names_out(), *(f"beginning: {term}" for term in first)]
        return names

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """Return where a text has which terms, as (start, end, column) in characters of the text as given.

        >>> BeginningFeatures(beginning=1).fit(["red apple", "old car"]).locate("red car")
        [(0, 3, 3), (0, 3, 5), (4, 7, 1)]
        """
        self._check_fitted()
        found = self.tfidf_.locate(text)
        if self.beginning_ is not None:
            width = self.tfidf_.n_features_
            end = beginning_end(text, self.n_words_)
            found += [(start, stop, width + column) for start, stop, column in self.beginning_.locate(text[:end])]
        return sorted((start, stop, int(self._columns[column])) for start, stop, column in found)

    def build(self) -> None:
        """Refuse features whose words count by their stems where the package that cuts them is missing."""
        self._check_fitted()
        for words in (self.tfidf_, self.beginning_):
            if words is not None:
                words.build()

    def to_part(self) -> Part:
        """Return what is saved: the words of whole texts and of beginnings."""
        self._check_fitted()
        whole, first = self.tfidf_.to_part(), None if self.beginning_ is None else self.beginning_.to_part()
        params: dict[str, Any] = {"weight": float(self.weight), "n_words": self.n_words_}
        params |= {"whole": whole.params, "beginning": None if first is None else first.params}
        if len(self._terms_learned) > 1:
            params["learned"] = [list(sizes) for sizes in self._terms_learned]
        arrays = {f"{WHOLE}{name}": array for name, array in whole.arrays.items()}
        if first is not None:
            arrays |= {f"{BEGINNING_WORDS}{name}": array for name, array in first.arrays.items()}
        return Part(self.kind, params, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Make the features from what was saved of them."""
        part = checked(part, BEGINNING_SCHEMA)
        whole, first = part.params["whole"], part.params["beginning"]
        tfidf = TfidfFeatures.from_part(part.inner(WHOLE, TfidfFeatures.kind, whole))
        beginning, n_words = None, part.params["n_words"]
        if first is not None:
            beginning = TfidfFeatures.from_part(part.inner(BEGINNING_WORDS, TfidfFeatures.kind, first))
        of_beginning = None if beginning is None else _unfitted(beginning)
        weight = float(part.params["weight"])
        made = cls(_unfitted(tfidf), of_beginning=of_beginning, beginning=n_words, weight=weight)
        before = part.params.get("learned", [])[:-1]
        made._keep(tfidf, beginning, n_words, [(of_whole, of_first) for of_whole, of_first in before])
        return made

    def _learned_beginnings(
        self, first: TfidfFeatures | None, texts: Sequence[str], n_words: int
    ) -> tuple[TfidfFeatures | None, int]:
        """Learn the words of beginnings; return the features and how many words a beginning has."""
        if first is None:
            return None, 0
        try:
            return first.fit(first_words(texts, n_words)), n_words
        except DataError:  # such as texts that begin with signs alone
            if self.beginning != AUTO:
                warn_of_data(
                    "the beginnings of the texts, {n_words} words each, hold no word that is kept; "
                    "they have no columns of their own.",
                    n_words=n_words,
                )
            return None, 0

    def _joined(self, whole: sp.csr_array, texts: Sequence[str]) -> sp.csr_array:
        """Return the rows of whole texts with those of their beginnings beside them."""
        if self.beginning_ is None:
            return self._as_output(whole, texts)
        first = self._with_threads(self.beginning_).transform(first_words(texts, self.n_words_))
        rows = as_sparse(unit_rows(side_by_side(whole, scaled(first, self.weight))))
        if len(self._terms_learned) > 1:
            columns = self._columns[rows.indices]
            rows = as_sparse(sp.csr_array((rows.data, columns, rows.indptr), shape=(len(texts), self.n_features_)))
        return self._as_output(rows, texts)

    def _with_threads(self, words: TfidfFeatures) -> TfidfFeatures:
        """Return features of words with the number of threads asked for, if any was."""
        return words if self.n_jobs is None else words.set_params(n_jobs=self.n_jobs)

    def _keep(
        self,
        tfidf: TfidfFeatures,
        beginning: TfidfFeatures | None,
        n_words: int,
        before: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Set the learned state, after fitting, loading and updates.

        `before` are the terms of whole texts and of beginnings that were learned each time, but the last.
        """
        self.tfidf_, self.beginning_, self.n_words_ = tfidf, beginning, n_words
        n_whole, n_first = tfidf.n_features_, 0 if beginning is None else beginning.n_features_
        self.n_features_ = n_whole + n_first
        self._terms_learned = [*before, (n_whole - sum(a for a, _ in before), n_first - sum(b for _, b in before))]
        self._columns: np.ndarray = columns_of(self._terms_learned)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(texts) first.")


def _unfitted(words: TfidfFeatures) -> TfidfFeatures:
    """Return features with the same parameters; loading a model does without `clone`, which needs scikit-learn."""
    return TfidfFeatures(**words.get_params(deep=False))


def columns_of(learned: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the columns of all terms of whole texts, then of all of beginnings, int32.

    Those learned at one time stand together: terms of whole texts, then of beginnings.

    >>> columns_of([(2, 1), (1, 1)]).tolist()
    [0, 1, 3, 2, 4]
    """
    sizes = np.array(learned, dtype=np.int64)
    times = np.repeat(np.arange(len(sizes)), sizes.sum(axis=1))
    of_first = np.concatenate([np.arange(a + b) >= a for a, b in sizes])
    return np.lexsort((times, of_first)).astype(np.int32)


def with_pairs(words: TfidfFeatures) -> TfidfFeatures:
    """Return features with the same parameters, not fitted; where these have single words alone, with pairs too.

    >>> with_pairs(TfidfFeatures(min_df=2)).get_params()["ngrams"], with_pairs(TfidfFeatures((1, 3))).ngrams
    ((1, 2), (1, 3))
    """
    made = _unfitted(words)
    if made.analyzer != "char_wb" and tuple(made.ngrams) == (1, 1):
        made.set_params(ngrams=(1, 2), ngram_weight=PAIRS_WEIGHT)
    return made


def check_beginning(beginning: object) -> None:
    """Refuse what is neither a number of words nor "auto"."""
    if isinstance(beginning, str) and beginning == AUTO:
        return
    if isinstance(beginning, str):
        raise ParameterError(name="beginning", allowed="an integer >= 0 or 'auto'", got=beginning)
    check_integer("beginning", beginning, low=0)


def beginning_length(texts: Sequence[str]) -> int:
    """Return how many words are the beginning of texts like these: a fourth of the mean; 0 where they are short.

    >>> beginning_length(["word " * 100, "word " * 60]), beginning_length(["a short title"])
    (20, 0)
    """
    sample = np.linspace(0, len(texts) - 1, min(SAMPLE, len(texts))).astype(np.int64)
    n_words = sum(len(texts[row].split()) for row in sample) // (PART * max(len(sample), 1))
    return 0 if n_words < FEWEST_WORDS else min(n_words, MOST_WORDS)


def first_words(texts: Sequence[str], n_words: int) -> list[str]:
    """Return the beginnings of texts.

    >>> first_words(["One red apple and a pie", "two"], 3)
    ['One red apple', 'two']
    """
    return [text[: beginning_end(text, n_words)] for text in texts]


def beginning_end(text: str, n_words: int) -> int:
    """Return where the first so many words of a text end, between white space.

    >>> beginning_end("  One red\\n apple pie", 3), beginning_end("two words ", 3)
    (16, 10)
    """
    rest = text.split(None, n_words)
    if len(rest) <= n_words:
        return len(text)
    return len(text[: len(text) - len(rest[-1])].rstrip())
