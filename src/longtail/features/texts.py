"""The one door for texts: a list of strings, or one sentence saying what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from longtail.errors import DataError


def as_texts(texts: Any, name: str = "texts") -> list[str]:
    """Return texts as a list of strings; a single string and anything that is no string are refused.

    >>> as_texts(("a", 3))
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: texts must hold strings; got int at position 1.
    """
    if isinstance(texts, str | bytes):
        raise DataError(f"{name} must be a list of strings; got one string.")
    if not isinstance(texts, Iterable):
        raise DataError(f"{name} must be a list of strings; got {type(texts).__name__}.")
    out = texts if isinstance(texts, list) else list(texts)
    if set(map(type, out)) - {str}:  # quick: a subclass of str is looked at more closely
        for at, text in enumerate(out):
            if not isinstance(text, str):
                raise DataError(f"{name} must hold strings; got {type(text).__name__} at position {at}.")
    return out
