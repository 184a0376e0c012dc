"""Make the backends known to Annif."""

from __future__ import annotations

import annif.backend
from annif.backend.backend import AnnifBackend


def _tree() -> type[AnnifBackend]:
    """Return the backend of the label tree, imported when it is first asked for."""
    from annif_longtail.backend import LongtailTreeBackend

    return LongtailTreeBackend


def _hybrid() -> type[AnnifBackend]:
    """Return the backend of the hybrid, imported when it is first asked for."""
    from annif_longtail.backend import LongtailHybridBackend

    return LongtailHybridBackend


def register() -> None:
    """Add the backends to those that Annif knows by name; a second call changes nothing."""
    annif.backend._backend_fns.update({"longtail_tree": _tree, "longtail_hybrid": _hybrid})
