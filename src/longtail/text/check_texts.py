"""Check lists of texts: strings only, and only what UTF-8 can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from longtail.errors import DataError


def as_texts(texts: Iterable[str], name: str = "texts") -> list[str]:
    """Return texts as a list of strings; a single string and anything that is no string are refused.

    >>> as_texts(("a", 3))
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: texts must hold strings; got int at position 1.
    """
    if isinstance(texts, str | bytes):
        raise DataError(input=name, problem="must be a list of strings; got one string.")
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping):
        raise DataError(input=name, problem=f"must be a list of strings; got {type(texts).__name__}.")
    if hasattr(texts, "columns") and hasattr(texts, "to_numpy"):  # which would give the names of its columns
        raise DataError(input=name, problem="must be a list of strings; got a DataFrame: give one of its columns.")
    out = texts if isinstance(texts, list) else list(texts)
    if set(map(type, out)) - {str}:  # quick: a subclass of str is looked at more closely
        for at, text in enumerate(out):
            if not isinstance(text, str):
                raise DataError(
                    "{input} must hold strings; got {got} at position {row}.",
                    input=name,
                    got="NaN" if text != text else type(text).__name__,
                    row=at,
                )
    return out


def check_unicode(texts: Sequence[str], name: str = "texts") -> None:
    """Refuse texts that UTF-8 cannot hold: strings with half of a surrogate pair.

    >>> check_unicode(["a", "b\\ud800"])
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: texts must be Unicode text; the one of row 1 is not.
    """
    for row, text in enumerate(texts):
        if not is_unicode(text):
            raise DataError("{input} must be Unicode text; the one of row {row} is not.", input=name, row=row)


def is_unicode(text: str) -> bool:
    """Return whether a string can be written as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
