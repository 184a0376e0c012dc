"""The schema of saved TF-IDF features: parameters, vocabulary and weights of its words."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from longtail.storage import (
    ArraySpec,
    Choice,
    CrossCheck,
    Flag,
    InnerPart,
    ListOf,
    OneOf,
    ParamSpec,
    Part,
    PartParams,
    PartSchema,
    Real,
    Sizes,
    SizeSpec,
    Text,
    Whole,
    string_arrays,
)
from longtail.text.stemmer import LANGUAGES

ANALYZERS = ("char_wb", "word", *(f"snowball:{language}" for language in LANGUAGES))
LONGEST_NGRAM = 64  # words or characters; memory grows with the number of lengths
SMALLEST_WEIGHT = 0.01  # of longer n-grams
SPACE = 0x20
MOST_TERMS, MOST_TIMES = 2**31 - 1, 1_000_000
MOST_WEIGHT = 1000.0  # of beginnings, beside whole texts
WHOLE = "whole."  # what the names of arrays of whole texts begin with
BEGINNING_WORDS = "beginning."  # and those of beginnings


def _ngrams_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the parameters say no way of cutting texts, or None."""
    low, high = part.params["ngrams"]
    if low > high:
        return f"'ngrams' must be the shortest and the longest; it is [{low}, {high}]"
    if part.params["stop_words"] is not None and part.params["analyzer"] == "char_wb":
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
    if part.params["analyzer"] != "char_wb":
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


def _forms_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the forms of words are none for the stems of the vocabulary, or None."""
    there = {name for name in part.arrays if name.startswith("forms.")}
    if not part.params["analyzer"].startswith("snowball:"):
        return "forms of words are for words that count by their stems, and its analyzer is another" if there else None
    if len(there) != 3:
        return "words count by their stems, and their forms are missing"
    forms, stems = _strings(part, "forms"), part.arrays["forms.stems"]
    try:
        words = {form.decode("utf-8", "surrogatepass") for form in forms}
    except UnicodeDecodeError:
        return "the forms of words are not UTF-8"
    if len(words) < len(forms) or words & set(part.params["stop_words"] or ()):
        return "the forms of words are not all different, or one is a stop word"
    if any(" " in word for word in words):
        return "the form of a word has a space"
    n_stems = len({word for term in _strings(part, "vocabulary") for word in term.split(b" ")})
    if int(stems.max()) >= n_stems:
        return f"a form has the stem {int(stems.max())}, and the vocabulary has {n_stems} different words"
    return None


def _strings(part: Part, name: str) -> list[bytes]:
    """Return a list of strings as the bytes of each."""
    raw, offsets = part.arrays[f"{name}.bytes"].tobytes(), part.arrays[f"{name}.offsets"].tolist()
    return [raw[a:b] for a, b in pairwise(offsets)]


TFIDF_SCHEMA = PartSchema(
    kind="tfidf.v1",
    about="texts to TF-IDF rows, of `TfidfFeatures`",
    params=(
        ParamSpec("ngrams", ListOf(Whole(1, LONGEST_NGRAM), 2, 2), "the shortest and the longest n-gram"),
        ParamSpec("analyzer", Choice(ANALYZERS), "n-grams of words, of stems of words or of characters"),
        ParamSpec("min_df", OneOf((Whole(1), Real(0, 1))), "rows a term must be in"),
        ParamSpec("max_df", OneOf((Whole(1), Real(0, 1))), "rows a term may be in"),
        ParamSpec(
            "ngram_weight", Real(SMALLEST_WEIGHT, 1), "what longer n-grams of words count, 1 if missing", optional=True
        ),
        ParamSpec("ngram_min_df", Whole(1), "rows a longer n-gram of words must be in, 1 if missing", optional=True),
        ParamSpec("max_features", Whole(1, none=True), "terms to keep"),
        ParamSpec("sublinear_tf", Flag(), "1 + ln(count) in place of the count"),
        ParamSpec("lowercase", Flag(), "words without regard to case"),
        ParamSpec("strip_accents", Flag(), "letters without their accents"),
        ParamSpec("stop_words", ListOf(Text(10_000), none=True), "words left out"),
    ),
    sizes=(
        SizeSpec("n_terms", "terms, the columns of the rows", low=1),
        SizeSpec("n_bytes", "bytes of all terms", low=1),
        SizeSpec("n_forms", "words as texts had them, where words count by their stems", low=1),
        SizeSpec("form_bytes", "bytes of all forms", low=1),
    ),
    arrays=(
        *string_arrays(
            "vocabulary", "n_terms", "the terms, sorted; those of updates after them", "n_bytes", empty=False
        ),
        ArraySpec("idf", "float32", ("n_terms",), "weight of every term", finite="finite"),
        *(
            replace(array, optional=True)
            for array in string_arrays(
                "forms",
                "n_forms",
                "words as texts had them, the form to show of a stem first",
                "form_bytes",
                empty=False,
            )
        ),
        ArraySpec(
            "forms.stems",
            "int32",
            ("n_forms",),
            "the stem of each: which of the different words of the vocabulary, in the order in which it has them",
            low=0,
            optional=True,
        ),
    ),
    crosschecks=(
        CrossCheck("the shortest n-gram is not longer than the longest; stop words are for words", _ngrams_problem),
        CrossCheck(
            "the terms are UTF-8 and n-grams of at most the longest length, words with one space between them",
            _terms_problem,
        ),
        CrossCheck(
            "forms are there where words count by their stems: UTF-8, different words without a space, no stop words",
            _forms_problem,
        ),
    ),
)


def _beginning_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why there is a beginning without words, or words without a beginning, or None."""
    n_words, there = part.params["n_words"], part.params["beginning"] is not None
    if bool(n_words) != there:
        return f"'n_words' is {n_words}, and the words of beginnings are {'there' if there else 'missing'}"
    terms = [sizes[f"{WHOLE}n_terms"], sizes.get(f"{BEGINNING_WORDS}n_terms", 0)]
    learned = np.array(part.params.get("learned", [terms]), dtype=np.int64).sum(axis=0).tolist()
    if learned != terms:
        return f"'learned' says {learned[0]} and {learned[1]} terms, and there are {terms[0]} and {terms[1]}"
    return None


BEGINNING_SCHEMA = PartSchema(
    kind="beginning-features.v1",
    about="TF-IDF rows with the words at the beginning of a text in columns of their own, of `BeginningFeatures`",
    params=(
        ParamSpec("weight", Real(0, MOST_WEIGHT), "how much the beginning counts beside the whole text"),
        ParamSpec("n_words", Whole(), "words that are the beginning of a text; 0 for none"),
        ParamSpec("whole", PartParams(TFIDF_SCHEMA.kind), "the words of whole texts"),
        ParamSpec("beginning", PartParams(TFIDF_SCHEMA.kind, none=True), "the words of beginnings"),
        ParamSpec(
            "learned",
            ListOf(ListOf(Whole(0, MOST_TERMS), 2, 2), 1, MOST_TIMES),
            "terms of whole texts and of beginnings learned at first and by each update, whose columns stand together; "
            "all at once if missing",
            optional=True,
        ),
    ),
    inner=(
        InnerPart(WHOLE, TFIDF_SCHEMA, params="whole"),
        InnerPart(BEGINNING_WORDS, TFIDF_SCHEMA, params="beginning"),
    ),
    crosschecks=(
        CrossCheck(
            "words of beginnings are there where texts have one, and all terms were learned", _beginning_problem
        ),
    ),
)
