"""Every error a user can meet: one clear sentence each, with an exit code for the command line.

| exit code | class            | meaning                                            |
|-----------|------------------|----------------------------------------------------|
| 1         | `LongtailError`  | anything else that stopped the work                |
| 2         | `ParameterError` | an argument or option has a value that is not allowed |
| 3         | `DataError`      | a data file or an array cannot be used             |
| 4         | `ModelError`     | a model folder cannot be used                      |
| 5         | `MissingExtraError` | an optional package is not installed            |

>>> raise ParameterError("k must be an integer >= 1; got 0.")
Traceback (most recent call last):
...
longtail.errors.ParameterError: k must be an integer >= 1; got 0.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LongtailError(Exception):
    """The base of all longtail errors."""

    exit_code = 1


class ParameterError(LongtailError, ValueError):
    """An argument or option has a value that is not allowed."""

    exit_code = 2


class DataError(LongtailError, ValueError):
    """A data file or an array cannot be used as it is."""

    exit_code = 3


class ModelError(LongtailError):
    """A model folder is missing, damaged, half-written or too new."""

    exit_code = 4


class MissingExtraError(LongtailError, ImportError):
    """An optional package is needed and not installed."""

    exit_code = 5

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs the package '{package}'; install it with: pip install 'longtail[{extra}]'")


def near(value: object, allowed: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the nearest allowed name, or nothing.

    >>> near("tnf", ["man", "tfn"])
    " Did you mean 'tfn'?"
    >>> near("zebra", ["man", "tfn"])
    ''
    """
    hits = difflib.get_close_matches(str(value), list(allowed), n=1, cutoff=0.6)
    return f" Did you mean '{hits[0]}'?" if hits else ""
