"""The values that break programs: numbers at the edges of types, strings at the edges of encodings."""

from __future__ import annotations

from random import Random
from typing import Any

INTEGERS = (
    0, 1, -1, 2, 7, 127, 128, 255, 256, 32767, 65536, 99_999_999, 2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32 + 5,
    2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 2**70, 10**19, 10**400,
)  # fmt: skip
FLOATS = (0.0, -0.0, 0.5, 1.0, -1.5, 1e-45, 1e-300, 3.5e38, 1e300, float("nan"), float("inf"), float("-inf"))
NUMBER_WORDS = (
    "0", "-0", "1", "-1", "+1", "007", "1.", ".5", "1e5", "1e400", "-1e400", "1e-400", "nan", "NaN", "inf", "-Infinity",
    "0x10", "1_000", "١٢", "1,5", "2147483647", "2147483648", "4294967301", "9223372036854775807",
    "9223372036854775808", "1" + "0" * 400, "0." + "0" * 400 + "1e400", "1e", "--1", "1 2", "",
)  # fmt: skip
STRINGS = (
    "", " ", "\x00", "a\x00b", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "\x85", "\u202egnp.exe",
    "\u2066x\u2069", "\ufeff", "\u2028", "\u2029", "\u00a0", "\u200b", "é", "e\u0301", "ß", "İ", "😀",
    "\U0010ffff", "\uffff", "\ud800", "\udc80", "\ud83d", "<script>alert(1)</script>", "__label__",
    "__label__x", "a;b", ";", ",", "\t", "\n", "\r", "\r\n", "{}", "{0}", "%s", "{path}", "../../x",
    "/dev/null", "NaN", "null", "true", "0", "#", '"', "'", "\\", "\\u0000", "=1+1",
)  # fmt: skip
BYTES = (
    b"\x00", b"\xff", b"\xfe\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98",
    b"\xef\xbb\xbf", b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\t", b",", b";", b":", b'"', b"'", b"{", b"}",
    b"[", b"]", b"#", b"\\", b"-", b".", b"e", b"__label__", b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"\x93NUMPY",
    b"null", b"1:1", b"0", b"9999999999",
)  # fmt: skip


def integer(rng: Random, near: int | None = None) -> int:
    """Return a whole number at an edge, or one beside a number that would be right."""
    if near is not None and rng.random() < 0.4:
        return near + rng.choice((-2, -1, 1, 2, near, -2 * near))
    return rng.choice(INTEGERS)


def string(rng: Random) -> str:
    """Return an odd string, at times a long one or a mix of several."""
    draw = rng.random()
    if draw < 0.8:
        return rng.choice(STRINGS)
    if draw < 0.9:
        return rng.choice(("a", "é", "😀", " ", "x ")) * rng.choice((10, 300, 5000))
    return "".join(rng.choice(STRINGS) for _ in range(3))


def json_value(rng: Random, near: Any = None, depth: int = 0) -> Any:
    """Return an odd JSON value; a number beside `near` where that is one."""
    draw = rng.random()
    if draw < 0.35:
        whole = isinstance(near, int) and not isinstance(near, bool)
        return integer(rng, near if whole else None)
    if draw < 0.5:
        return rng.choice(FLOATS)
    if draw < 0.7:
        return string(rng)
    if draw < 0.85 or depth > 2:
        return rng.choice((None, True, False, [], {}, "", 0))
    if draw < 0.95:
        inside = [near if rng.random() < 0.5 else json_value(rng, near, depth + 1) for _ in range(rng.randint(1, 3))]
        return inside if rng.random() < 0.6 else {string(rng): inside}
    deep: Any = near
    for _ in range(rng.choice((3, 50, 300))):
        deep = [deep]
    return deep
