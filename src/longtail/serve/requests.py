"""Reading requests: bodies within limits, strict JSON, and parameters of the declared types; one sentence otherwise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

from longtail.errors import near
from longtail.serve.problems import Problem
from longtail.serve.suggesting import How
from longtail.storage import json_problem, load_json
from longtail.text import is_unicode

HOW = ("k", "threshold", "target", "allow", "deny", "language")


async def read_json(request: Request, empty: object = None) -> object:
    """Return the body of a request as JSON: NaN, repeated keys, deep nesting and wrong UTF-8 are refused.

    With `empty` a body may be left out, and that is what it means.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    raw = await read_body(request) if is_json or empty is not None else b""
    if not raw and empty is not None:
        return empty
    if not is_json:
        raise Problem(415, f"the body must be JSON, with the Content-Type application/json; got {kind!r:.100}.")
    return parse_json(raw)


async def read_body(request: Request) -> bytes:
    """Return the body of a request, which can be read once; its limits are the guards' business."""
    message = await request.receive()
    if not message.get("more_body", False):
        return message.get("body", b"")
    pieces = [message.get("body", b"")]
    while message.get("more_body", False):
        message = await request.receive()
        pieces.append(message.get("body", b""))
    return b"".join(pieces)


def parse_json(raw: bytes, what: str = "the body") -> object:
    """Return bytes as JSON."""
    try:
        return load_json(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"{what} cannot be read: {json_problem(error)}.") from None


class Fields:
    """The fields of a JSON object, taken one by one; what is left over at the end is refused.

    >>> fields = Fields({"text": "a", "k": 3})
    >>> fields.string("text"), fields.integer("k", 5, low=1, high=10), fields.real("threshold")
    ('a', 3, None)
    >>> fields.finish()
    """

    def __init__(self, values: object, what: str = "the body") -> None:
        if not isinstance(values, dict):
            raise Problem(422, f"{what} must be a JSON object; got {kind_of(values)}.")
        self.values: dict[str, Any] = values
        self._known: list[str] = []

    def take(self, name: str) -> Any:
        """Return a field as it is, None where it is not given."""
        self._known.append(name)
        return self.values.get(name)

    def string(self, name: str, *, most: int = 10_000, needed: bool = False) -> str | None:
        """Return a field that is a text of at most so many characters."""
        value = self.take(name)
        if value is None:
            if needed:
                raise Problem(422, f"{name} is missing; it must be a text.")
            return None
        return checked_string(name, value, most)

    def strings(self, name: str, *, most: int, most_characters: int = 10_000) -> list[str] | None:
        """Return a field that is a list of texts."""
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise Problem(422, f"{name} must be a list of texts; got {kind_of(value)}.")
        if len(value) > most:
            raise Problem(413, f"{name} must have at most {most} entries; got {len(value)}.")
        return [checked_string(f"{name}[{at}]", one, most_characters) for at, one in enumerate(value)]

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        """Return a field that is a whole number."""
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Problem(422, f"{name} must be a whole number from {low} to {high}; got {shown(value)}.")
        return value

    def real(self, name: str) -> float | None:
        """Return a field that is a number."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise Problem(422, f"{name} must be a number; got {shown(value)}.")
        return float(value)

    def finish(self, what: str = "the body") -> None:
        """Refuse fields that nobody asked for: a misspelt one would be passed over in silence."""
        for name in self.values:
            if name not in self._known:
                raise Problem(422, f"{name[:100]!r} is no field of {what}.{near(name[:100], self._known)}")


def kind_of(value: object) -> str:
    """Return what a value of JSON is, in words."""
    kinds = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(value), "null")


def shown(value: object) -> str:
    """Return a value for a sentence, shortened."""
    return repr(value)[:80] if isinstance(value, str | int | float | bool) else kind_of(value)


def checked_string(name: str, value: object, most: int) -> str:
    """Return a text of JSON that is Unicode and not too long."""
    if not isinstance(value, str):
        raise Problem(422, f"{name} must be a text; got {kind_of(value)}.")
    if len(value) > most:
        raise Problem(413, f"{name} must have at most {most} characters; got {len(value)}.")
    if not is_unicode(value):
        raise Problem(400, f"{name} holds half of a surrogate pair, which is no Unicode text.")
    return value


def read_how(fields: Fields, most_labels: int) -> How:
    """Return how labels are asked for."""
    allow, deny = (fields.strings(name, most=100_000, most_characters=2000) for name in ("allow", "deny"))
    return How(
        k=fields.integer("k", 5, low=1, high=most_labels),
        threshold=fields.real("threshold"),
        target=fields.string("target", most=100),
        allow=None if allow is None else tuple(allow),
        deny=None if deny is None else tuple(deny),
        language=fields.string("language", most=50),
    )


def read_texts(fields: Fields, rows: int, characters: int) -> list[str]:
    """Return the texts of a request: one as `text`, or a list as `texts`."""
    text = fields.string("text", most=characters)
    texts = fields.strings("texts", most=rows, most_characters=characters)
    if (text is None) == (texts is None):
        raise Problem(422, "give one of text and texts.")
    return [text] if text is not None else texts or []


def query(request: Request, known: Sequence[str], several: Sequence[str] = ()) -> Mapping[str, str]:
    """Return the parameters after the question mark; unknown ones and those that stand twice are refused.

    Those in `several` may stand more than once; the last one is returned.
    """
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise Problem(422, f"{name[:100]!r} is no parameter of this address.{near(name[:100], known)}")
        if name in found and name not in several:
            raise Problem(422, f"the parameter {name!r} stands twice.")
        if "�" in value or "\x00" in value:
            raise Problem(400, f"the parameter {name!r} is not UTF-8.")
        found[name] = value
    return found


def query_integer(values: Mapping[str, str], name: str, default: int, *, low: int, high: int) -> int:
    """Return a parameter that is a whole number."""
    text = values.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 16 and low <= int(text) <= high):
        raise Problem(422, f"{name} must be a whole number from {low} to {high}; got {text[:80]!r}.")
    return int(text)


def how_of_query(values: Mapping[str, str], most_labels: int) -> How:
    """Return how labels are asked for by the parameters of an address."""
    threshold = values.get("threshold")
    try:
        least = None if threshold is None else float(threshold)
    except ValueError:
        least = math.nan
    if least is not None and not math.isfinite(least):
        raise Problem(422, f"threshold must be a number; got {threshold!r:.80}.")
    k = query_integer(values, "k", 5, low=1, high=most_labels)
    return How(k=k, threshold=least, target=values.get("target"), language=values.get("language"))
