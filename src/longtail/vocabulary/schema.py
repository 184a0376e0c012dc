"""The schema of a saved vocabulary: concepts with names, notations and broader concepts."""

from __future__ import annotations

from longtail.storage import (
    ArraySpec,
    CrossCheck,
    ListOf,
    ParamSpec,
    Part,
    PartSchema,
    Sizes,
    SizeSpec,
    Text,
    string_arrays,
)

PREFERRED, ALTERNATIVE = 0, 1  # kinds of names
LONGEST_LANGUAGE = 100  # characters of the tag of a language
MOST_LANGUAGES = 10_000
STRINGS = ("ids", "notations", "names")


def _strings_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why some strings are not UTF-8, or None."""
    for name in STRINGS:
        raw, starts = part.arrays[f"{name}.bytes"], part.arrays[f"{name}.offsets"]
        try:
            raw.tobytes().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return f"'{name}' are not UTF-8"
        inner = starts[starts < raw.size]
        if ((raw[inner] & 0xC0) == 0x80).any():
            return f"one of '{name}' begins inside a character"
    return None


def _languages_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why a name has a language that is not listed, or None."""
    languages, used = part.params["languages"], part.arrays["name_languages"]
    if used.size and int(used.max()) >= len(languages):
        return f"a name has the language number {int(used.max())}, and there are {len(languages)} languages"
    if len(set(languages)) != len(languages):
        return "a language is listed twice"
    if part.params["language"] is not None and part.params["language"] not in languages:
        return "'language' is none of 'languages'"
    return None


VOCABULARY_SCHEMA = PartSchema(
    kind="vocabulary.v1",
    about="the concepts that labels are, of `Vocabulary`",
    params=(
        ParamSpec("name", Text(4096), "what the vocabulary is called"),
        ParamSpec("languages", ListOf(Text(LONGEST_LANGUAGE), 0, MOST_LANGUAGES), "languages of the names"),
        ParamSpec(
            "language", Text(LONGEST_LANGUAGE, none=True), "language that names are shown in; null for the most used"
        ),
    ),
    sizes=(
        SizeSpec("n_concepts", "concepts", low=1),
        SizeSpec("n_names", "names of all concepts"),
        SizeSpec("n_broader", "pairs of a concept and one right above it"),
    ),
    arrays=(
        *string_arrays("ids", "n_concepts", "the ids", empty=False),
        *string_arrays("notations", "n_concepts", "the notations, empty where there is none"),
        *string_arrays("names", "n_names", "the names of the concepts, one concept after the other", empty=False),
        ArraySpec("name_starts", "int64", ("n_concepts + 1",), "first name of each", order="pointers", high="n_names"),
        ArraySpec("name_languages", "uint16", ("n_names",), "language of every name"),
        ArraySpec("name_kinds", "uint8", ("n_names",), "0 for a preferred name, 1 for another", low=0, high=1),
        ArraySpec(
            "broader.indices", "int32", ("n_broader",), "concepts right above each", low=0, high="n_concepts - 1"
        ),
        ArraySpec("broader.indptr", "int64", ("n_concepts + 1",), "first of each", order="pointers", high="n_broader"),
        ArraySpec("deprecated", "uint8", ("n_concepts",), "1 where it should no longer be used", low=0, high=1),
        ArraySpec(
            "replaced_by", "int32", ("n_concepts",), "the concept in its place, or -1", low=-1, high="n_concepts - 1"
        ),
    ),
    crosschecks=(
        CrossCheck("ids, notations and names are UTF-8", _strings_problem),
        CrossCheck("every name has one of the languages, which are different", _languages_problem),
    ),
)
