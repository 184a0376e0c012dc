"""Texts to sparse TF-IDF rows, with the numbers of scikit-learn's TfidfVectorizer at a fraction of its time.

Fitting counts the n-grams of all texts (`count_ngrams`), keeps the terms that `min_df`, `max_df` and `max_features`
allow, sorts them (`string_arrays`), and weighs the counts into rows (`weigh_counts`).
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError, Keyword, Parameter, ParameterError
from longtail.kernels import run_tasks
from longtail.model import Transformer, clone, not_fitted
from longtail.storage import Part, PartSchema, checked
from longtail.text.check_texts import as_texts
from longtail.text.count_blocks import count_blocks
from longtail.text.count_ngrams import CountedTexts, count_texts
from longtail.text.lexicon import Analysis, KnownTerms, Lexicon, NgramCounts, cut_texts
from longtail.text.schema import ANALYZERS, LONGEST_NGRAM, SMALLEST_WEIGHT, TFIDF_SCHEMA
from longtail.text.stemmer import LANGUAGES, stemmer_of
from longtail.text.stop_words import stop_words_of
from longtail.text.string_arrays import string_order
from longtail.text.unicode_tables import without_accents
from longtail.text.unknown_terms import UnknownTerms, find_unknown
from longtail.text.weigh_counts import TfidfRows, stack_rows, to_tfidf_rows
from longtail.text.word_forms import KnownForms, joined
from longtail.text.word_table import PackedTerms
from longtail.validate import check_flag, check_integer, check_real, resolve_jobs


class TfidfFeatures(Transformer):
    """Turn texts into sparse TF-IDF rows of unit length, one column per word or n-gram.

    A word is a run of two or more letters, digits or underscores. Columns stand in alphabetical order. The numbers
    are those of scikit-learn's `TfidfVectorizer` (for runs of words with `ngram_weight=1, ngram_min_df=1`)::

        weight(text, term) = tf * idf(term)
        tf  = 1 + ln(count), or the count without `sublinear_tf`
        idf = 1 + ln((1 + rows) / (1 + rows with the term))

    and every row is then divided by its Euclidean length.

    Parameters
    ----------
    ngrams : tuple of (int, int), default=(1, 1)
        The shortest and the longest n-gram.
    analyzer : str, default="word"
        "word" for n-grams of words; "snowball:german" (danish, dutch, english, finnish, french, german, hungarian,
        italian, norwegian, portuguese, romanian, russian, spanish, swedish or turkish) for words that count by their
        stems, so that "library" and "libraries" are one (needs snowballstemmer); "char_wb" for n-grams of characters
        inside words, padded with a space.
    min_df : int or float, default=1
        Leave out terms in fewer rows than this: a number of rows, or a share if a float.
    max_df : int or float, default=1.0
        Leave out terms in more rows than this: a number of rows, or a share if a float.
    ngram_weight : float, default=0.35
        What longer n-grams of words count, beside 1 for the shortest: their idf is multiplied by it. Rare as they are,
        runs of words with their full weight would drown the words in short texts. 1 for scikit-learn's numbers.
    ngram_min_df : int, default=2
        Leave out longer n-grams of words in fewer rows than this: most are in one row only, and teach nothing.
    max_features : int or None, default=None
        Keep this many terms, the most frequent by occurrences; among equals the alphabetically first (scikit-learn
        leaves that choice open).
    sublinear_tf : bool, default=True
        Use 1 + ln(count) in place of the count.
    lowercase : bool, default=True
        Compare words without regard to case.
    strip_accents : bool, default=False
        Compare letters without their accents (é = e), by Unicode's compatibility decomposition.
    stop_words : sequence of str, str or None, default=None
        Words to leave out before n-grams are made: a list of words, or the name of a language ("german", those of
        `analyzer`) for its short list of articles, pronouns, prepositions and the like.
    n_jobs : int or None, default=None
        Threads; None for all cores. The result is the same for any number.

    Attributes
    ----------
    vocabulary_ : list of str
        The terms in the order of their columns; of words that count by their stems, the stems.
    idf_ : ndarray of shape (n_features_,), float32
        The inverse document frequency of every term, that of longer n-grams of words times `ngram_weight`.
    n_features_ : int
        The number of terms.

    Examples
    --------
    >>> features = TfidfFeatures().fit(["a red apple", "a red car"])
    >>> features.vocabulary_
    ['apple', 'car', 'red']
    >>> features.transform(["red red car"]).toarray().round(3)
    array([[0.   , 0.639, 0.769]], dtype=float32)
    """

    kind: ClassVar[str] = TFIDF_SCHEMA.kind
    schema: ClassVar[PartSchema] = TFIDF_SCHEMA
    idf_: np.ndarray  # float32 (n_features,)
    n_features_: int

    def __init__(
        self,
        ngrams: tuple[int, int] = (1, 1),
        *,
        analyzer: str = "word",
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        ngram_weight: float = 0.35,
        ngram_min_df: int = 2,
        max_features: int | None = None,
        sublinear_tf: bool = True,
        lowercase: bool = True,
        strip_accents: bool = False,
        stop_words: Sequence[str] | str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.ngrams = ngrams
        self.analyzer = analyzer
        self.min_df = min_df
        self.max_df = max_df
        self.ngram_weight = ngram_weight
        self.ngram_min_df = ngram_min_df
        self.max_features = max_features
        self.sublinear_tf = sublinear_tf
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.stop_words = stop_words
        self.n_jobs = n_jobs

    def fit(self, texts: Sequence[str], y: object = None) -> Self:
        """Learn the vocabulary and its weights, and return self; `y` is ignored."""
        self._learn(texts, keep=False)
        return self

    def fit_transform(self, texts: Sequence[str], y: object = None) -> sp.csr_array:
        """Learn the vocabulary and return the rows of the same texts, reading them once; `y` is ignored."""
        texts = as_texts(texts)
        counted, column = self._learn(texts, keep=True)

        def rows(counts: NgramCounts) -> TfidfRows:
            return to_tfidf_rows(counts, column, self.idf_, self.sublinear_tf)

        X = stack_rows(run_tasks(rows, counted, resolve_jobs(self.n_jobs)), self.n_features_)
        return self._as_output(X, texts)

    def fit_blocks(self, blocks: Iterable[Sequence[str]], *, most_terms: int | None = None) -> int:
        """Learn from texts that come block by block; return in how many rows a term may be that was not counted.

        With 0, the result is that of `fit` on all texts. Where texts have more than `most_terms` different n-grams
        (None for any number), the rarest so far are dropped between two blocks, and idf is a little too high for a
        term that was.

        >>> features = TfidfFeatures()
        >>> features.fit_blocks([["a red apple"], ["a red car"]]), features.vocabulary_
        (0, ['apple', 'car', 'red'])
        """
        analysis = self._analysis()
        if most_terms is not None:
            check_integer("most_terms", most_terms, low=1)
        counted, n_texts, missed = count_blocks(map(as_texts, blocks), analysis, resolve_jobs(self.n_jobs), most_terms)
        self._choose_terms(counted, n_texts, *_limits(self.min_df, self.max_df, n_texts))
        return missed

    def transform(self, texts: Sequence[str]) -> sp.csr_array:
        """Return one row per text, CSR float32 (n_texts, n_features_); a text without a known word is all zeros."""
        vocabulary = self._fitted()
        texts = as_texts(texts)

        def rows(block: slice) -> TfidfRows:
            return to_tfidf_rows(vocabulary.count(texts[block]), vocabulary.column, self.idf_, self.sublinear_tf)

        if len(texts) == 1:  # one block, by one thread: nothing to share out
            return self._as_output(stack_rows([rows(slice(0, 1))], self.n_features_), texts)
        X = stack_rows(run_tasks(rows, list(cut_texts(texts)), resolve_jobs(self.n_jobs)), self.n_features_)
        return self._as_output(X, texts)

    def extended(self, texts: Sequence[str], n_rows: int) -> Self:
        """Return features that know the new terms of some texts too, in columns after the old ones, which stay.

        `n_rows` texts were learned from before; a new term is taken to have been in none of them.

        >>> features = TfidfFeatures().fit(["a red apple", "a red car"])
        >>> features.extended(["a blue car"], n_rows=2).vocabulary_
        ['apple', 'car', 'red', 'blue']
        """
        vocabulary, found = self._fitted(), as_texts(texts)
        total = n_rows + len(found)
        lowest, highest = _limits(self.min_df, self.max_df, total)
        lexicon, documents, totals, _ = count_texts(found, vocabulary.analysis, resolve_jobs(self.n_jobs), keep=False)
        often = self._often(lexicon, documents, lowest, highest)
        often = often[string_order(*lexicon.strings(often))]
        terms = KnownTerms(lexicon.strings(often), vocabulary.analysis).terms if often.size else []
        new = often[vocabulary.columns(terms) < 0] if terms else often
        if self.max_features is not None:
            best = np.argsort(-totals[new], kind="stable")[: max(self.max_features - self.n_features_, 0)]
            new = new[np.sort(best)]
        idf = self._idf(total, documents[new], lexicon.lengths(new))
        old, more = vocabulary.packed, lexicon.strings(new)
        offsets = np.concatenate([old.offsets, old.offsets[-1] + more.offsets[1:]])
        out = clone(self)
        packed = PackedTerms(np.concatenate([old.raw, more.raw]), offsets)
        known, found_forms = KnownTerms(packed, vocabulary.analysis), vocabulary.forms
        new_forms = known.forms_in(lexicon)
        if found_forms is not None and new_forms is not None:
            known.learn_forms(joined(found_forms, new_forms))
        out._keep(known, np.concatenate([self.idf_, idf]))
        return out

    def unknown_terms(
        self, texts: Sequence[str], *, learned_from: int | None = None, first: int = 0
    ) -> UnknownTerms | None:
        """Return how many words of every text are not known, and which; None where single words have no column.

        With `learned_from`, the texts are among the so many that the columns from `first` on were learned from, and a
        word counts as unknown where it would not have been learned without its text. With characters in place of words
        it is about their n-grams.

        >>> found = TfidfFeatures().fit(["a red apple", "a red car"]).unknown_terms(["red bus", "an apple car"])
        >>> found.terms.tolist(), found.unknown.tolist(), found.names
        ([2, 3], [1, 1], ['bus', 'an'])
        """
        vocabulary = self._fitted()
        if vocabulary.analysis.words and vocabulary.analysis.ngrams[0] > 1:
            return None
        left_out = None
        if learned_from is not None:
            lowest, _ = _limits(self.min_df, self.max_df, learned_from)
            left_out = self.rows_with_terms(learned_from) < max(lowest, 1.0) + 0.5
            left_out[:first] = False
        return find_unknown(as_texts(texts), vocabulary, left_out)

    @property
    def vocabulary_(self) -> list[str]:
        """The terms; the position of a term is its column."""
        return self._fitted().terms

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the terms as an array of objects, as scikit-learn's pipelines ask for them.

        In place of a stem stands its most frequent form in the texts learned from.
        """
        return np.array(self._fitted().names, dtype=object)

    def build(self) -> None:
        """Refuse features whose words count by their stems where the package that cuts them is missing."""
        analysis = self._fitted().analysis
        if analysis.language:
            stemmer_of(analysis.language)

    def columns(self, terms: Sequence[str]) -> np.ndarray:
        """Return the column of each term, or -1; terms are taken as they stand in the vocabulary.

        >>> TfidfFeatures().fit(["a red apple"]).columns(["red", "blue"]).tolist()
        [1, -1]
        """
        return self._fitted().columns(as_texts(terms, "terms"))

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """Return where a text has which terms, as (start, end, column) in characters of the text as given.

        >>> TfidfFeatures(ngrams=(1, 2)).fit(["red apple"] * 2).locate("One RED apple!")
        [(4, 7, 1), (4, 13, 2), (8, 13, 0)]
        """
        if not isinstance(text, str):
            raise DataError(f"text must be a string; got {type(text).__name__}.")
        return self._fitted().locate(text)

    def to_part(self) -> Part:
        """Return what is saved: the parameters, the vocabulary and its weights."""
        packed = self._fitted().packed
        analysis = self._analysis()
        params = {
            "ngrams": list(analysis.ngrams),
            "analyzer": self.analyzer,
            "min_df": _json_number(self.min_df),
            "max_df": _json_number(self.max_df),
            "ngram_weight": float(self.ngram_weight),
            "ngram_min_df": int(self.ngram_min_df),
            "max_features": None if self.max_features is None else int(self.max_features),
            "sublinear_tf": bool(self.sublinear_tf),
            "lowercase": analysis.lowercase,
            "strip_accents": analysis.strip_accents,
            "stop_words": None if self.stop_words is None else list(analysis.stop_words),
        }
        arrays = {"vocabulary.bytes": packed.raw, "vocabulary.offsets": packed.offsets, "idf": self.idf_}
        forms = self._fitted().forms
        if forms is not None:
            arrays |= {"forms.bytes": forms.words.raw, "forms.offsets": forms.words.offsets, "forms.stems": forms.stems}
        return Part(TFIDF_SCHEMA.kind, params, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Make the features from what was saved of them."""
        part = checked(part, TFIDF_SCHEMA)
        before = {"ngram_weight": 1.0, "ngram_min_df": 1}  # what folders mean that do not say
        features = cls(**{**before, **part.params, "ngrams": tuple(part.params["ngrams"])})
        packed = PackedTerms(part.array("vocabulary.bytes"), np.array(part.array("vocabulary.offsets")))
        known = KnownTerms(packed, features._analysis())
        if "forms.stems" in part.arrays:
            words = PackedTerms(part.array("forms.bytes"), np.array(part.array("forms.offsets")))
            known.learn_forms(KnownForms(words, np.array(part.array("forms.stems"))))
        features._keep(known, np.array(part.array("idf")))
        return features

    def _learn(self, texts: Sequence[str], keep: bool) -> tuple[list[NgramCounts], np.ndarray]:
        """Fit, and return the counts (if they are to be kept) with the column of each of their nodes."""
        analysis = self._analysis()
        found = as_texts(texts)
        if not found:
            raise DataError(input="texts", problem="must hold at least one text; got none.")
        lowest, highest = _limits(self.min_df, self.max_df, len(found))
        counted = count_texts(found, analysis, resolve_jobs(self.n_jobs), keep=keep)
        return counted.blocks, self._choose_terms(counted, len(found), lowest, highest)

    def _choose_terms(self, counted: CountedTexts, n_texts: int, lowest: float, highest: float) -> np.ndarray:
        """Learn the terms that are kept of all n-grams counted; return the column of each n-gram, or -1."""
        lexicon, documents, totals, _ = counted
        if not documents.any():
            raise DataError(input="the texts", problem=_why_no_terms(self.analyzer, self.stop_words is not None))
        # nodes in no document are only the beginnings of longer n-grams
        kept = self._often(lexicon, documents, lowest, highest)
        if kept.size == 0:
            raise DataError(
                "no term is in at least {lowest:g} and at most {highest:g} rows; lower {lower} or raise {upper}.",
                lowest=lowest,
                highest=highest,
                lower=Parameter("min_df"),
                upper=Parameter("max_df"),
            )
        kept = kept[string_order(*lexicon.strings(kept))]
        if self.max_features is not None and kept.size > self.max_features:
            often = np.argsort(-totals[kept], kind="stable")[: self.max_features]
            kept = kept[np.sort(often)]
        idf = self._idf(n_texts, documents[kept], lexicon.lengths(kept))
        known = KnownTerms(lexicon.strings(kept), lexicon.analysis)
        known.learn_forms(known.forms_in(lexicon))
        self._keep(known, idf)
        column = np.full(lexicon.n_nodes, -1, dtype=np.int32)
        column[kept] = np.arange(kept.size, dtype=np.int32)
        return column

    def _often(self, lexicon: Lexicon, documents: np.ndarray, lowest: float, highest: float) -> np.ndarray:
        """Return the nodes of the n-grams that are in enough texts and not in too many."""
        kept = np.flatnonzero((documents >= max(lowest, 1)) & (documents <= highest)).astype(np.int32)
        if self._weighs_runs() and self.ngram_min_df > lowest:
            kept = kept[(documents[kept] >= self.ngram_min_df) | (lexicon.lengths(kept) <= self.ngrams[0])]
        return kept

    def _idf(self, n_rows: int, documents: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the weights of terms of so many words each that are in so many of the rows."""
        idf = np.log((1.0 + n_rows) / (1.0 + documents)) + 1.0
        if self._weighs_runs():
            idf[lengths > self.ngrams[0]] *= self.ngram_weight
        return idf.astype(np.float32)

    def _weighs_runs(self) -> bool:
        """Say whether there are longer n-grams of words, which count less than words."""
        return self.analyzer != "char_wb" and self.ngrams[1] > self.ngrams[0]

    def rows_with_terms(self, n_rows: int) -> np.ndarray:
        """Return in how many of the rows learned from each term was, found back from its weight.

        >>> TfidfFeatures().fit(["a red apple", "a red car"]).rows_with_terms(2).round(3).tolist()
        [1.0, 1.0, 2.0]
        """
        idf = self.idf_.astype(np.float64)
        if self._weighs_runs():
            idf[self.term_lengths() > self.ngrams[0]] /= self.ngram_weight
        # idf = ln((1 + rows) / (1 + rows with the term)) + 1
        return np.maximum((1.0 + n_rows) / np.exp(idf - 1.0) - 1.0, 0.0)

    def term_lengths(self) -> np.ndarray:
        """Return how many words, or characters, each term has."""
        return self._fitted().lengths()

    def _analysis(self) -> Analysis:
        """Check the parameters and return those that say how a text is cut into terms."""
        if not isinstance(self.ngrams, tuple | list) or len(self.ngrams) != 2:
            raise ParameterError(name="ngrams", allowed="a pair (shortest, longest)", got=self.ngrams)
        low = check_integer("ngrams[0]", self.ngrams[0], low=1, high=LONGEST_NGRAM)
        high = check_integer("ngrams[1]", self.ngrams[1], low=low, high=LONGEST_NGRAM)
        check_flag("sublinear_tf", self.sublinear_tf)
        if self.max_features is not None:
            check_integer("max_features", self.max_features, low=1)
        _limits(self.min_df, self.max_df, None)
        check_real("ngram_weight", self.ngram_weight, low=SMALLEST_WEIGHT, high=1)
        check_integer("ngram_min_df", self.ngram_min_df, low=1)
        analyzer = self.analyzer
        if analyzer not in ANALYZERS:
            allowed = f"'word', 'char_wb' or 'snowball:LANGUAGE' (of {', '.join(LANGUAGES)})"
            raise ParameterError(name="analyzer", allowed=allowed, got=analyzer)
        kind, _, language = analyzer.partition(":")
        strip_accents = check_flag("strip_accents", self.strip_accents)
        return Analysis(
            analyzer="word" if language else kind,
            ngrams=(low, high),
            lowercase=check_flag("lowercase", self.lowercase),
            strip_accents=strip_accents,
            stop_words=_stop_words(self.stop_words, analyzer, strip_accents),
            language=language,
        )

    def _keep(self, vocabulary: KnownTerms, idf: np.ndarray) -> None:
        """Set the learned state, after fitting and after loading."""
        self._vocabulary, self.idf_, self.n_features_ = vocabulary, idf, len(vocabulary)

    def _fitted(self) -> KnownTerms:
        if not hasattr(self, "_vocabulary"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(texts) first.")
        return self._vocabulary


def _stop_words(wanted: Sequence[str] | str | None, analyzer: str, strip_accents: bool) -> tuple[str, ...]:
    """Check the words to leave out and return them sorted; the name of a language stands for its list."""
    if wanted is None:
        return ()
    if analyzer == "char_wb":
        raise ParameterError(
            "{name} can only be used with {needed}.", name="stop_words", needed=Keyword("analyzer", "word")
        )
    if isinstance(wanted, str):
        if wanted not in LANGUAGES:
            allowed = f"a list of words or a language ({', '.join(LANGUAGES)})"
            raise ParameterError(name="stop_words", allowed=allowed, got=wanted)
        wanted = stop_words_of(wanted)
        return tuple(sorted({without_accents(word) if strip_accents else word for word in wanted}))
    if not all(isinstance(w, str) for w in wanted):
        raise ParameterError(name="stop_words", allowed="a list of words or a language", got=wanted)
    return tuple(sorted(set(wanted)))


def _why_no_terms(analyzer: str, has_stop_words: bool) -> str:
    """Return why there is nothing to learn from texts, and what would help."""
    if analyzer == "char_wb":
        return "have nothing to learn from: they are empty."
    others = " other than stop words" if has_stop_words else ""
    advice = ("analyzer", "char_wb")
    return (
        f"have no words to learn from: none of them has a word of two letters or digits or more{others}; "
        f"{Keyword(*advice)} reads characters instead."
    )


def _limits(min_df: float, max_df: float, n_rows: int | None) -> tuple[float, float]:
    """Return the least and the most rows a term may be in; without `n_rows`, only check the two parameters."""
    bounds = []
    for name, value in (("min_df", min_df), ("max_df", max_df)):
        if isinstance(value, numbers.Integral):
            bounds.append(float(check_integer(name, value, low=1)))
        else:
            bounds.append(check_real(name, value, low=0, high=1) * (n_rows or 1))
    if n_rows is not None and bounds[1] < bounds[0]:
        raise ParameterError(
            "{name} must allow at least as many rows as {other}; got {got!r} and {min_df!r} for {n_rows} rows.",
            name="max_df",
            other=Parameter("min_df"),
            got=max_df,
            min_df=min_df,
            n_rows=n_rows,
        )
    return bounds[0], bounds[1]


def _json_number(value: float) -> int | float:
    """Return a number JSON knows: numpy's are not."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)
