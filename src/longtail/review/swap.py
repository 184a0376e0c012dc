"""Put a new model in the place of an old one, which is kept beside it, and back again.

A model folder is replaced by its manifest, in one step, after all files of the new model are there: whoever is killed
at any moment leaves the old model or the new one, whole. The old model is copied to `NAME.previous` before.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from longtail.errors import ModelError
from longtail.pipeline import load
from longtail.storage import copy_folder, folder_digest

PREVIOUS, CANDIDATE, PUT_ASIDE = ".previous", ".candidate", ".put-aside"


def beside(folder: Path, ending: str) -> Path:
    """Return the folder beside a model folder whose name ends so.

    >>> beside(Path("models/library"), ".previous").name
    'library.previous'
    """
    folder = folder.resolve()
    return folder.with_name(folder.name + ending)


def install(candidate: Path, folder: Path) -> Path:
    """Put a candidate in the place of a model, and return the folder in which the old model is kept."""
    previous = beside(folder, PREVIOUS)
    copy_folder(folder, previous)
    copy_folder(candidate, folder)
    return previous


def put_back(folder: str | Path) -> tuple[str, str]:
    """Put the model that was kept by the last swap back in its place; return the digests before and after.

    The two change places, so that a second call undoes the first.
    """
    folder = Path(folder)
    previous, aside = beside(folder, PREVIOUS), beside(folder, PUT_ASIDE)
    if not previous.exists():
        raise ModelError(f"{folder} has no earlier model to put back: there is no {previous.name} beside it.")
    load(previous)  # which refuses one that cannot be used
    before = folder_digest(folder)
    copy_folder(folder, aside)
    copy_folder(previous, folder)
    copy_folder(aside, previous)
    remove(aside)
    return before, folder_digest(folder)


def remove(folder: Path) -> None:
    """Remove a model folder that was made beside another."""
    shutil.rmtree(folder, ignore_errors=True)
