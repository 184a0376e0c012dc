"""Every error a user can meet: one clear sentence each, with an exit code for the command line.

| exit code | class            | meaning                                            |
|-----------|------------------|----------------------------------------------------|
| 1         | `LongtailError`  | anything else that stopped the work                |
| 2         | `ParameterError` | an argument or option has a value that is not allowed |
| 3         | `DataError`      | a data file or an array cannot be used             |
| 4         | `ModelError`     | a model folder cannot be used                      |
| 5         | `MissingExtraError` | an optional package is not installed            |

An error keeps the parts of its sentence as fields, so that another program (the command line) can say the same with
its own names: `k` becomes `-k`, `texts` becomes `the texts of rows.csv`.

>>> raise ParameterError(name="k", allowed="an integer >= 1", got=0)
Traceback (most recent call last):
...
longtail.errors.ParameterError: k must be an integer >= 1; got 0.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

LONGEST = 2000  # characters of a sentence
BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")  # lines, or the screen
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
NOTHING: Any = ...  # a field that was not given; stays itself when an error is copied or pickled


class Parameter(str):
    """The name of a parameter within a sentence: `top_k` in Python, its option on the command line."""


@dataclass(frozen=True)
class Keyword:
    """A keyword argument within a sentence: `split=3` in Python, `--split 3` on the command line.

    >>> f"{Keyword('format')} {Keyword('split', 3)} {Keyword('format', verb='pass')}"
    'format= split=3 pass format='
    """

    name: str
    value: Any = NOTHING
    verb: str = ""  # what to do with it; the command line has its own word for that

    def __str__(self) -> str:
        return f"{self.verb} {self.name}=".lstrip() + ("" if self.value is NOTHING else repr(self.value))


class LongtailError(Exception):
    """The base of all longtail errors.

    Parameters
    ----------
    sentence : str
        What went wrong. With fields it is a template, filled by `str.format`; without, it is taken as it is.
    **fields
        The parts of the sentence that another program may want to say differently.

    Attributes
    ----------
    template : str
        The sentence with the names of fields in braces.
    fields : dict
        The fields by name; empty for a plain sentence.

    >>> error = LongtailError("{path} has no rows.", path="a.csv")
    >>> str(error), error.fields
    ('a.csv has no rows.', {'path': 'a.csv'})
    """

    exit_code = 1

    def __init__(self, sentence: str, /, **fields: Any) -> None:
        self.template: str = sentence if fields else sentence.replace("{", "{{").replace("}", "}}")
        self.fields: dict[str, Any] = fields
        super().__init__(one_line(self.template.format(**fields)))

    def restate(self, template: str | None = None, /, **fields: Any) -> None:
        """Change fields, or the whole template, and say the sentence anew.

        >>> error = DataError(input="texts", problem="must not be empty.")
        >>> error.restate(input="the texts of rows.csv")
        >>> print(error)
        the texts of rows.csv must not be empty.
        """
        self.template = self.template if template is None else template
        self.fields = {**self.fields, **fields}
        self.args = (one_line(self.template.format(**self.fields)),)


class ParameterError(LongtailError, ValueError):
    """An argument or option has a value that is not allowed.

    Made from a plain sentence, from a template with fields, or from the parts of the usual sentence: the name of the
    parameter with what is allowed and what came, or with any other problem.

    Parameters
    ----------
    sentence : str, optional
        A plain sentence, or a template with fields.
    name : str, optional
        The parameter, as Python calls it.
    allowed : str, optional
        What it may be, after "must be".
    got : object, optional
        The value that came.
    hint : str, default=""
        What follows the sentence, with a space before it.
    optional : str, default=""
        Words that allow None, which means nothing on a command line.
    problem : str, optional
        All that follows the name, where "must be ...; got ..." does not fit.

    >>> error = ParameterError(name="loss", allowed="'hinge'", got="hing", hint=" Did you mean 'hinge'?")
    >>> str(error), error.name, error.got
    ("loss must be 'hinge'; got 'hing'. Did you mean 'hinge'?", 'loss', 'hing')
    >>> str(ParameterError(name="labels", problem="must hold at least one number; got 0."))
    'labels must hold at least one number; got 0.'
    """

    exit_code = 2

    def __init__(
        self,
        sentence: str | None = None,
        /,
        *,
        name: str | None = None,
        allowed: str | None = None,
        got: Any = NOTHING,
        hint: str = "",
        optional: str = "",
        problem: str | None = None,
        **fields: Any,
    ) -> None:
        given = {"name": name, "allowed": allowed, "problem": problem}
        fields |= {key: value for key, value in given.items() if value is not None}
        if got is not NOTHING:
            fields["got"] = got
        if sentence is None or optional or hint:
            fields |= {"hint": hint, "optional": optional}
        if sentence is None:
            usual = "{name} must be {allowed}{optional}; got {got!r}.{hint}"
            sentence = usual if problem is None else "{name} {problem}"
        super().__init__(sentence, **fields)

    @property
    def name(self) -> str | None:
        """The parameter, as Python calls it; None where the sentence names none."""
        return self.fields.get("name")

    @property
    def allowed(self) -> str | None:
        """The allowed values in words; None where the sentence is not of the usual form."""
        return self.fields.get("allowed")

    @property
    def got(self) -> Any:
        """The value that came; None where it is not known."""
        return self.fields.get("got")

    @property
    def hint(self) -> str:
        """Words that follow the sentence, such as the nearest allowed name."""
        return self.fields.get("hint", "").strip()


class DataError(LongtailError, ValueError):
    """A data file or an array cannot be used as it is.

    Made from a plain sentence, from a template with fields, or from an input and its problem. Fields with a meaning:
    `input` (which of "texts", "the texts", "X", "Y" or "the data" it is about), `row` (its number, from 0), `path` (the
    file) and `listed_in` (where a label is listed, "" in Python).

    >>> str(DataError("{input} must not be empty; the one of row {row} is.", input="texts", row=3))
    'texts must not be empty; the one of row 3 is.'
    >>> str(DataError(input="X", problem="must be finite."))
    'X must be finite.'
    """

    exit_code = 3

    def __init__(self, sentence: str | None = None, /, **fields: Any) -> None:
        super().__init__("{input} {problem}" if sentence is None else sentence, **fields)

    def extended(self, more: str, /, **fields: Any) -> DataError:
        """Return the error with more in its sentence, before the full stop.

        >>> print(DataError("a.txt has no rows.").extended(" (read as {format!r})", format="xmc"))
        a.txt has no rows (read as 'xmc').
        """
        out = DataError(str(self))
        out.restate(f"{self.template.removesuffix('.')}{more}.", **self.fields, **fields)
        return out


class DataWarning(UserWarning):
    """Something about data that was read as it is, though the user may have meant it differently.

    Made from a `DataError` that is not raised, whose sentence it says.

    >>> str(DataWarning(DataError("{path} has one column.", path="a.csv")))
    'a.csv has one column.'
    """


def warn_of_data(sentence: str, /, **fields: Any) -> None:
    """Give a `DataWarning`, with a sentence as a `DataError` has it."""
    warnings.warn(DataWarning(DataError(sentence, **fields)), stacklevel=2)


class GuaranteeWarning(UserWarning):
    """A network cannot guarantee what its settings ask for."""


class ModelError(LongtailError):
    """A model folder is missing, damaged, half-written or too new."""

    exit_code = 4


class MissingExtraError(LongtailError, ImportError):
    """An optional package is needed and not installed."""

    exit_code = 5

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs the package '{package}'; install it with: pip install 'longtail[{extra}]'")

    def restate(self, template: str | None = None, /, **fields: Any) -> None:
        """Change fields, or the whole template, and say the sentence anew."""
        super().restate(template, **fields)
        self.msg = self.args[0]  # which an ImportError says


def one_line(sentence: str) -> str:
    """Return a sentence in one line of bounded length, though it may name what a stranger wrote.

    Characters that break lines or command a terminal are written as escapes; a very long sentence loses its middle.

    >>> one_line("a.csv has the column 'x\\n\\x1b[2J'.")
    "a.csv has the column 'x\\\\u000a\\\\u001b[2J'."
    """
    return _without_middle(BREAKING.sub(lambda found: f"\\u{ord(found[0]):04x}", _without_middle(sentence)))


def _without_middle(sentence: str) -> str:
    """Return a sentence of at most `LONGEST` characters."""
    return sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST * 3 // 4]} … {sentence[-LONGEST // 5 :]}"


def with_decimal_point(text: str) -> str | None:
    """Return a number that is written with a decimal comma with a point instead; None for anything else.

    >>> with_decimal_point("0,8"), with_decimal_point("0.8"), with_decimal_point("1,2,3")
    ('0.8', None, None)
    """
    return text.replace(",", ".") if DECIMAL_COMMA.fullmatch(text) else None


NAMES_COMPARED, LETTERS_COMPARED = 1000, 60


def near(value: object, allowed: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the nearest allowed name, or nothing; long names and lists are not compared.

    >>> near("tnf", ["man", "tfn"])
    " Did you mean 'tfn'?"
    >>> near("zebra", ["man", "tfn"])
    ''
    """
    names, wanted = list(allowed), str(value)
    if len(names) > NAMES_COMPARED or len(wanted) > LETTERS_COMPARED:
        return ""  # it would take seconds, and a server that says so could be kept from its work
    hits = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    return f" Did you mean '{hits[0]}'?" if hits else ""
