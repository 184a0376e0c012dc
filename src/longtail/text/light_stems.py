"""English plurals cut to their singular by three rules: the words of a text meet without any further package."""

from __future__ import annotations

from collections.abc import Sequence

SHORTEST_CUT = 4  # letters a word must have to be cut


def light_stems(words: Sequence[str]) -> list[str]:
    """Return each word without the ending of an English plural; words are lowercased already.

    >>> light_stems(["libraries", "houses", "boxes", "bus", "analysis", "class", "cats"])
    ['library', 'house', 'box', 'bus', 'analysis', 'class', 'cat']
    """
    return [_light_stem(word) for word in words]


def _light_stem(word: str) -> str:
    """Return one word without the ending of an English plural."""
    if len(word) < SHORTEST_CUT or word[-1] != "s" or word[-2] in "sui":
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if word[-4] not in "ae" else word[:-1]
    if word.endswith(("xes", "ches", "shes", "sses", "zzes")):
        return word[:-2]
    return word[:-1]
