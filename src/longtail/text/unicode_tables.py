"""Tables of Python's Unicode rules: which characters make words, and what they are lowercased to.

`str.lower()` maps every code point on its own, with two exceptions: a capital sigma becomes a final sigma at the end
of a word, and a dotted capital I becomes two code points. Texts with these are lowercased by Python itself.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import numpy as np

from longtail.text.utf8 import CODE_POINTS

WORD = re.compile(r"(?u)\b\w\w+\b")
SHORTEST_WORD = 2
FINAL_SIGMA = "Σ"


@lru_cache(maxsize=2)
def irregular(size: int = CODE_POINTS) -> tuple[str, ...]:
    """Return the characters below a code point that `str.lower()` does not map one to one.

    >>> irregular()
    ('İ', 'Σ')
    """
    everything = _characters(size)
    known = ("İ", FINAL_SIGMA)
    if len(_remove_characters(everything, known).lower()) == size:
        return known
    return (FINAL_SIGMA, *(c for c in everything if len(c.lower()) != 1))  # a Python with newer tables


@lru_cache(maxsize=8)
def fold_table(letters: str, lowercase: bool, size: int = CODE_POINTS) -> np.ndarray:
    r"""Return for each code point the one to keep in its place, or -1 where it belongs to no word.

    `letters` is "word" (what `\w` matches), "solid" (all but white space) or "any" (all but the space itself).
    `size` is the number of code points: a table of the basic plane alone, enough for most texts, is made much sooner.

    >>> fold = fold_table("word", lowercase=True)
    >>> chr(fold[ord("Ä")]), int(fold[ord("-")])
    ('ä', -1)
    """
    fold = np.arange(size, dtype=np.int32)
    if letters == "any" and not lowercase:
        fold[ord(" ")] = -1
    else:
        everything = _characters(size)
        if lowercase:
            lowered = _remove_characters(everything, irregular(size)).lower()
            fold = np.frombuffer(lowered.encode("utf-32-le", "surrogatepass"), dtype=np.int32).copy()
        inside = np.zeros(max(size, int(fold.max()) + 1), dtype=bool)
        for run in re.finditer({"word": r"\w+", "solid": r"\S+", "any": "[^ ]+"}[letters], everything, re.DOTALL):
            inside[run.start() : run.end()] = True
        fold[~inside[fold]] = -1
    fold.flags.writeable = False
    return fold


class _Accents(dict[int, str]):
    """A table for `str.translate` that decomposes characters and drops their accents, filled as they come."""

    def __missing__(self, code: int) -> str:
        bare = "".join(c for c in unicodedata.normalize("NFKD", chr(code)) if not unicodedata.combining(c))
        self[code] = bare
        return bare


_ACCENTS = _Accents()


def without_accents(text: str) -> str:
    """Return the text in compatibility decomposition (NFKD) without combining marks.

    Decomposing each character on its own gives the same: only marks change places, and they are dropped.

    >>> without_accents("Œuvre à ﬁnir, Ångström")
    'Œuvre a finir, Angstrom'
    """
    return text if text.isascii() else text.translate(_ACCENTS)


def fold_text(text: str, lowercase: bool, strip_accents: bool) -> tuple[str, list[int] | None]:
    """Return the text as it is tokenised, and the origin of each of its characters (None: nothing moved).

    >>> fold_text("İi", lowercase=True, strip_accents=False)
    ('i̇i', [0, 0, 1])
    """
    folded = text.lower() if lowercase else text
    if strip_accents and not text.isascii():
        folded = without_accents(folded)
    elif len(folded) == len(text):
        return folded, None
    origin: list[int] = []
    for at, c in enumerate(text):
        piece = c.lower() if lowercase else c
        origin += [at] * len(without_accents(piece) if strip_accents else piece)
    return folded, origin


def _characters(size: int) -> str:
    return np.arange(size, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _remove_characters(text: str, characters: tuple[str, ...]) -> str:
    for c in characters:
        text = text.replace(c, "\n")
    return text
