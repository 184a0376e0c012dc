"""The schema of saved name matches: the names, their forms by stems, link rates and weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from longtail.model import LABEL_COUNTS, SEED
from longtail.name_matches.features import FEATURES
from longtail.name_matches.link_rates import N_CONTEXTS, N_TRAITS
from longtail.name_matches.name_forms import N_KINDS
from longtail.storage import (
    ArraySpec,
    Choice,
    CrossCheck,
    ParamSpec,
    Part,
    PartSchema,
    Real,
    Sizes,
    SizeSpec,
    Whole,
    string_arrays,
)
from longtail.text import LANGUAGES, RULES, STOP_WORD

MOST_WORDS = 64  # of a name
LEAST_STRENGTH, LARGEST = 0.01, 1e6
STRINGS = ("names", "words", "stems")
ASKED_RULES = ("snowball", "light")  # what a parameter may say


def _strings_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why some strings are not UTF-8, or words are not different words, or None."""
    for name in STRINGS:
        raw, offsets = part.arrays[f"{name}.bytes"].tobytes(), part.arrays[f"{name}.offsets"].tolist()
        try:
            found = [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(offsets)]
        except UnicodeDecodeError:
            return f"'{name}' are not UTF-8"
        if name != "names" and (len(set(found)) < len(found) or any(" " in word for word in found)):
            return f"'{name}' must be different words; one is there twice, or has a space"
    return None


def _entries_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the words of entries are not as many as the stems of their terms, or names are of other labels."""
    arrays = part.arrays
    lengths, terms = np.diff(arrays["terms.starts"]), arrays["entries.term"]
    if not np.array_equal(np.diff(arrays["entries.starts"]), lengths[terms]):
        return "the words of an entry are not as many as the stems of its term"
    labels = np.repeat(np.arange(sizes["n_labels"]), np.diff(arrays["names.starts"]))
    if not np.array_equal(labels[arrays["entries.name"]], arrays["entries.label"]):
        return "an entry has a label and the name of another"
    if (arrays["links.carried"] > arrays["links.named"]).any():
        return "more rows carry a label than name it"
    if lengths.size and int(lengths.max()) > part.params["max_words"]:
        return f"a term has {int(lengths.max())} stems, more than 'max_words' allows"
    return None


def _rules_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why words cannot be cut by the rules, or None."""
    language, rules = part.params["language"], part.params["rules"]
    if language is None and rules != "none":
        return f"'rules' must be 'none' without a language; it is '{rules}'"
    if rules == "light" and language != "english":
        return "'rules' of the kind 'light' are for English only"
    return None


NAME_MATCHES_SCHEMA = PartSchema(
    kind="name-matches.v1",
    about="label names that stand in a text, of `NameMatches`",
    params=(
        ParamSpec("language", Choice(LANGUAGES, none=True), "language of names and texts"),
        ParamSpec("max_words", Whole(1, MOST_WORDS), "words that a name may have"),
        ParamSpec("random_state", SEED, "the seed"),
        ParamSpec("rules", Choice(RULES), "how words are cut to stems"),
        ParamSpec("asked_rules", Choice(ASKED_RULES, none=True), "the rules that were asked for", optional=True),
        ParamSpec("n_rows", Whole(1, 2**31 - 1), "training rows", size="n_rows"),
        ParamSpec("strength", Real(LEAST_STRENGTH, LARGEST), "rows that the mean rate of entries alike counts for"),
        ParamSpec("phrase_share", Real(0, 1), "rows with a name per row with its rarest stem"),
        ParamSpec("no_match", Real(-LARGEST, LARGEST), "log-odds of a label that a row does not name"),
    ),
    sizes=(
        SizeSpec("n_rows", "training rows", low=1),
        SizeSpec("n_labels", "labels", low=1),
        SizeSpec("n_names", "names of all labels"),
        SizeSpec("n_words", "different words of names"),
        SizeSpec("n_stems", "stems of these"),
        SizeSpec("n_terms", "sequences of stems"),
        SizeSpec("n_term_stems", "stems of all terms"),
        SizeSpec("n_entries", "forms of names"),
        SizeSpec("n_entry_words", "words of all forms"),
    ),
    arrays=(
        LABEL_COUNTS,
        *string_arrays("names", "n_names", "the names, label by label, the preferred one first"),
        ArraySpec("names.starts", "int64", ("n_labels + 1",), "first name of each", order="pointers", high="n_names"),
        *string_arrays("words", "n_words", "the words of names, lowercased", empty=False),
        *string_arrays("stems", "n_stems", "their stems", empty=False),
        ArraySpec("words.stem", "int32", ("n_words",), "stem of each word, -2: stop word", STOP_WORD, "n_stems - 1"),
        ArraySpec("stem_rows", "int64", ("n_stems",), "training rows that have each stem", 0, "n_rows"),
        ArraySpec("terms.stems", "int32", ("n_term_stems",), "the terms, end to end", 0, "n_stems - 1"),
        ArraySpec(
            "terms.starts", "int64", ("n_terms + 1",), "first of each", order="strict pointers", high="n_term_stems"
        ),
        ArraySpec("entries.term", "int32", ("n_entries",), "term of each form of a name", 0, "n_terms - 1"),
        ArraySpec("entries.label", "int32", ("n_entries",), "label of each", 0, "n_labels - 1"),
        ArraySpec("entries.name", "int32", ("n_entries",), "name of each", 0, "n_names - 1"),
        ArraySpec("entries.kind", "int8", ("n_entries",), "whole, alternative, shortened or part", 0, N_KINDS - 1),
        ArraySpec("entries.words", "int32", ("n_entry_words",), "words of all, end to end", 0, "n_words - 1"),
        ArraySpec(
            "entries.starts",
            "int64",
            ("n_entries + 1",),
            "first of each",
            order="strict pointers",
            high="n_entry_words",
        ),
        ArraySpec("entries.rows", "int64", ("n_entries",), "training rows that have each, or a guess", 0, "n_rows"),
        ArraySpec("links.named", "int64", ("n_entries", N_CONTEXTS), "rows that name the label by it", 0, "n_rows"),
        ArraySpec("links.carried", "int64", ("n_entries", N_CONTEXTS), "those that carry the label", 0, "n_rows"),
        ArraySpec("traits.weights", "float64", (N_TRAITS,), "weights of the mean link rate", finite="finite"),
        ArraySpec("features.weights", "float64", (len(FEATURES),), "weights of the features", finite="finite"),
    ),
    crosschecks=(
        CrossCheck("names, words and stems are UTF-8; words and stems are different words", _strings_problem),
        CrossCheck("forms fit their terms, names and labels; no link rate is above 1", _entries_problem),
        CrossCheck("the rules are some for the language", _rules_problem),
    ),
)
