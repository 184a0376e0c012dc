"""Make text harmless for a terminal: the one place that all commands' output passes on its way to a screen.

Labels, ids, file names and texts are strangers' bytes. Printed as they are, escapes in them could clear the screen,
hide a warning, change the clipboard or send keys; marks of writing direction could show a text in another order.
Files and pipes get the bytes as they are.
"""

from __future__ import annotations

import io
import re
from typing import Any

# Control characters but the ends of lines and tabs, marks of direction, half surrogate pairs, characters that are none.
COMMANDING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]"
)


def inert(text: str) -> str:
    """Return text with every character that could command a terminal as a \\u escape; JSON stays the same JSON.

    >>> print(inert("label \\x1b[2J\\u202e"))
    label \\u001b[2J\\u202e
    """
    return COMMANDING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class InertStream(io.TextIOBase):
    """A text stream that makes all that is written inert, or only writable in the stream's encoding.

    Parameters
    ----------
    stream : text stream
        Where to write: `sys.stdout` or `sys.stderr`.
    shown : bool
        Whether it is read on a screen; else only characters that its encoding does not have are changed.

    >>> import io
    >>> screen = io.StringIO()
    >>> _ = InertStream(screen, shown=True).write("a\\x07")
    >>> screen.getvalue()
    'a\\\\u0007'
    """

    def __init__(self, stream: Any, shown: bool) -> None:
        self.unfiltered = stream
        self.shown = shown

    def write(self, text: str) -> int:
        """Write text; returns how many characters were asked for."""
        safe = inert(text) if self.shown else text + ""  # bytes are refused by both
        try:
            self.unfiltered.write(safe)
        except UnicodeEncodeError:
            encoding = self.unfiltered.encoding or "ascii"
            self.unfiltered.write(safe.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    @property
    def buffer(self) -> Any:
        """The stream for bytes, which are made inert too where they are shown."""
        return _InertBytes(self) if self.shown else self.unfiltered.buffer

    @property
    def encoding(self) -> Any:  # type: ignore[override]
        """The encoding of the stream."""
        return getattr(self.unfiltered, "encoding", None)

    @property
    def errors(self) -> Any:  # type: ignore[override]
        """How the stream treats what it cannot encode."""
        return getattr(self.unfiltered, "errors", None)

    def flush(self) -> None:
        """Write out what waits."""
        self.unfiltered.flush()

    def isatty(self) -> bool:
        """Return whether the stream is a terminal; one that is closed is none."""
        return not self.unfiltered.closed and bool(self.unfiltered.isatty())

    def fileno(self) -> int:
        """Return the number of the file."""
        return int(self.unfiltered.fileno())

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def close(self) -> None:
        """Leave the stream open: it is not ours."""


class _InertBytes(io.BufferedIOBase):
    """UTF-8 bytes to an inert stream."""

    def __init__(self, text: InertStream) -> None:
        self._text = text

    def write(self, raw: Any) -> int:
        self._text.write(bytes(raw).decode("utf-8", "backslashreplace"))
        return len(raw)

    def flush(self) -> None:
        self._text.flush()

    def isatty(self) -> bool:
        return self._text.isatty()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Leave the stream open: it is not ours."""
