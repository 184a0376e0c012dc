"""The targets by name and by group: data files ("readers"), files beside them ("sides"), model folders, commands."""

from __future__ import annotations

import importlib.util
from functools import cache

from fuzz.case import Target

GROUPS = ("readers", "sides", "models", "commands")


@cache
def all_targets() -> dict[str, Target]:
    """Return every target whose packages are installed."""
    from fuzz.targets import (
        commands,
        corpora,
        folders,
        matrices,
        models,
        parquet,
        records,
        row_stores,
        side_files,
        vocabularies,
    )

    modules = (records, corpora, matrices, parquet, folders, row_stores, side_files, vocabularies, models, commands)
    listed = [target for module in modules for target in module.targets()]
    return {t.name: t for t in listed if all(importlib.util.find_spec(package) for package in t.needs)}


def chosen_targets(name: str) -> list[Target]:
    """Return the targets of a name: one, those of a group, or all."""
    known = all_targets()
    if name in known:
        return [known[name]]
    found = [target for target in known.values() if name in ("all", target.group)]
    if not found:
        raise SystemExit(f"there is no target {name!r}; choose from all, {', '.join(GROUPS)}, {', '.join(known)}")
    return found
