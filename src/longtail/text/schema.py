"""The schema of saved TF-IDF features: parameters, vocabulary and weights of its words."""

from __future__ import annotations

import numpy as np

from longtail.storage import (
    ArraySpec,
    Choice,
    CrossCheck,
    Flag,
    ListOf,
    OneOf,
    ParamSpec,
    Part,
    PartSchema,
    Real,
    Sizes,
    SizeSpec,
    Text,
    Whole,
    string_arrays,
)

ANALYZERS = ("char_wb", "word")
LONGEST_NGRAM = 64  # words or characters; memory grows with the number of lengths
SPACE = 0x20


def _ngrams_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the parameters say no way of cutting texts, or None."""
    low, high = part.params["ngrams"]
    if low > high:
        return f"'ngrams' must be the shortest and the longest; it is [{low}, {high}]"
    if part.params["stop_words"] is not None and part.params["analyzer"] != "word":
        return "'stop_words' are for words, and its analyzer is another"
    return None


def _terms_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the vocabulary holds no n-grams of the kind that the parameters say, or None."""
    raw, starts = part.arrays["vocabulary.bytes"], part.arrays["vocabulary.offsets"][:-1]
    try:
        raw.tobytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return "the vocabulary is not UTF-8"
    begins = (raw & 0xC0) != 0x80  # the first byte of a character
    if not begins[starts].all():
        return "a term of the vocabulary begins inside a character"
    unit = "characters"
    if part.params["analyzer"] == "word":
        space, first, unit = raw == SPACE, np.zeros(raw.size, dtype=bool), "words"
        first[starts] = True
        before = np.concatenate([[True], space[:-1]]) | first
        ends = np.concatenate([first[1:], [True]])
        if bool((space & (before | ends)).any()):
            return "a term of the vocabulary has a space that is not between two words"
        begins = before
    longest = int(np.add.reduceat(begins, starts, dtype=np.int64).max())
    if longest > part.params["ngrams"][1]:
        return f"a term of the vocabulary has {longest} {unit}, more than 'ngrams' allows"
    return None


TFIDF_SCHEMA = PartSchema(
    kind="tfidf.v1",
    about="texts to TF-IDF rows, of `TfidfFeatures`",
    params=(
        ParamSpec("ngrams", ListOf(Whole(1, LONGEST_NGRAM), 2, 2), "the shortest and the longest n-gram"),
        ParamSpec("analyzer", Choice(ANALYZERS), "n-grams of words or of characters"),
        ParamSpec("min_df", OneOf((Whole(1), Real(0, 1))), "rows a term must be in"),
        ParamSpec("max_df", OneOf((Whole(1), Real(0, 1))), "rows a term may be in"),
        ParamSpec("max_features", Whole(1, none=True), "terms to keep"),
        ParamSpec("sublinear_tf", Flag(), "1 + ln(count) in place of the count"),
        ParamSpec("lowercase", Flag(), "words without regard to case"),
        ParamSpec("strip_accents", Flag(), "letters without their accents"),
        ParamSpec("stop_words", ListOf(Text(10_000), none=True), "words left out"),
    ),
    sizes=(
        SizeSpec("n_terms", "terms, the columns of the rows", low=1),
        SizeSpec("n_bytes", "bytes of all terms", low=1),
    ),
    arrays=(
        *string_arrays(
            "vocabulary", "n_terms", "the terms, sorted; those of updates after them", "n_bytes", empty=False
        ),
        ArraySpec("idf", "float32", ("n_terms",), "weight of every term", finite="finite"),
    ),
    crosschecks=(
        CrossCheck("the shortest n-gram is not longer than the longest; stop words are for words", _ngrams_problem),
        CrossCheck(
            "the terms are UTF-8 and n-grams of at most the longest length, words with one space between them",
            _terms_problem,
        ),
    ),
)
