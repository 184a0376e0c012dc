"""A concept: one entry of a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Concept:
    """One entry of a vocabulary.

    Parameters
    ----------
    id : str
        What machines call it: a URI, or any other string.
    names : dict of str to str
        The preferred name by language ("" for no language).
    alternatives : dict of str to tuple of str
        Other names by language.
    notation : str, default=""
        A code that people use for it, such as "QA76".
    broader : tuple of str
        The ids of the concepts right above it.
    deprecated : bool, default=False
        Whether it should no longer be used.
    replaced_by : str or None, default=None
        The id of the concept that took its place.

    Examples
    --------
    >>> Concept("http://example.org/p1", {"en": "cats", "de": "Katzen"}, broader=("http://example.org/p0",)).names["de"]
    'Katzen'
    """

    id: str
    names: Mapping[str, str] = field(default_factory=dict)
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notation: str = ""
    broader: tuple[str, ...] = ()
    deprecated: bool = False
    replaced_by: str | None = None
