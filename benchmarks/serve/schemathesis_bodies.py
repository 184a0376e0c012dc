"""Bodies for schemathesis that are no JSON: lines and tables are sent as they are drawn."""

from __future__ import annotations

import json
from typing import Any

import schemathesis  # type: ignore[import-not-found, unused-ignore]


@schemathesis.serializer("application/x-ndjson", "text/csv")
def as_it_is(context: Any, value: object) -> bytes:
    """Return a body as bytes."""
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass")
