"""Labels by name: the numbers of known ones, and names and texts for new ones, checked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from longtail.errors import DataError, ParameterError, near
from longtail.text import as_texts, is_unicode
from longtail.vocabulary import Vocabulary


def numbers_of(
    known: Sequence[str], names: Sequence[str], argument: str = "labels", vocabulary: Vocabulary | None = None
) -> list[int]:
    """Return the numbers of labels given as the model calls them or, with a vocabulary, by notation or name.

    >>> numbers_of(["fruit", "vehicle"], ["vehicle"])
    [1]
    """
    wanted = as_texts(names, argument)
    where = {name: number for number, name in enumerate(known)}
    numbers, who = [], "label" if argument == "labels" else argument
    for name in wanted:
        if name not in where and vocabulary is None:
            allowed = "one the model knows" if who == "label" else "labels the model knows"
            raise ParameterError(name=who, allowed=allowed, got=name, hint=near(name, known))
        if name not in where and vocabulary is not None:
            try:
                name = vocabulary.find(name, among=where)
            except ParameterError as error:
                told = _known_otherwise(name, vocabulary, where)
                own = {"allowed": "a label that the model knows", "hint": told} if told else {}
                error.restate(**{**error.fields, "name": who, **own})
                raise
        numbers.append(where[name])
    return numbers


def _known_otherwise(name: str, vocabulary: Vocabulary, labels: Collection[str]) -> str:
    """Say of a concept that is no label of a model what it is; nothing for words that are no concept."""
    ids = vocabulary.candidates(name)
    if not ids or any(id in labels for id in ids):
        return ""
    after = vocabulary.replacement(ids[0]) if vocabulary.is_deprecated(ids[0]) else None
    told = " It is a concept of the vocabulary, but no training row has it."
    return told if after is None else f"{told[:-1]}; it is deprecated, replaced by {vocabulary.name(after)!r}."


def split_known(
    known: Sequence[str], names: Sequence[str], vocabulary: Vocabulary | None = None
) -> tuple[list[str], list[str]]:
    """Return which labels of a model are meant by some names, ids or notations, and the names that mean none.

    >>> split_known(["fruit", "vehicle"], ["vehicle", "house"])
    (['vehicle'], ['house'])
    """
    there = set(known)
    meant, unknown = [], []
    for name in as_texts(names):
        if name in there:
            meant.append(name)
        elif vocabulary is not None and vocabulary.candidates(name, among=there):
            meant.append(vocabulary.find(name, among=there))
        else:
            unknown.append(name)
    return meant, unknown


def check_new_labels(
    known: Sequence[str], names: Sequence[str], texts: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return names and texts of labels to be added; a name serves for its text where no texts are given.

    >>> check_new_labels(["fruit"], ["vehicle"], None)
    (['vehicle'], ['vehicle'])
    """
    new = as_texts(names, "names")
    if not new:
        raise ParameterError(name="names", problem="must hold at least one label; got 0.")
    taken, twice = set(known), set()
    for name in new:
        if not name.strip() or not is_unicode(name):
            why = "it is empty" if is_unicode(name) else "it is no Unicode text"
            raise ParameterError(name="names", problem=f"must be those of new labels; got {name!r}: {why}.")
        if name in taken or name in twice:
            where = "the model has it already" if name in taken else "it stands there twice"
            raise ParameterError(name="names", problem=f"must be those of new labels; got {name!r}: {where}.")
        twice.add(name)
    given = new if texts is None else as_texts(texts, "texts")
    if len(given) != len(new):
        raise ParameterError(name="texts", problem=f"must hold one text per label ({len(new)}); got {len(given)}.")
    for name, text in zip(new, given, strict=True):
        if not text.strip():
            raise DataError(f"every new label needs a text; label {name!r} has none.")
        if not is_unicode(text):
            raise DataError(f"every new label needs Unicode text; that of label {name!r} is not.")
    return new, given
