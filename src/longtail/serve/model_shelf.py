"""The models of a server: loaded, watched on disk, and swapped without dropping a request."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from longtail.errors import LongtailError, ModelError, one_line
from longtail.pipeline import Tagger, open_model
from longtail.serve.problems import Problem, without_folders
from longtail.serve.settings import ServeSettings
from longtail.serve.suggesting import ServedModel
from longtail.storage import copy_folder, folder_digest

LOG = logging.getLogger("longtail.serve")
MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
Seen = tuple[int, int, int, int]  # what tells one manifest from another without reading it


class ModelShelf:
    """The models by id. What a request has taken stays as it is until that request is answered.

    A folder is looked at by its manifest: replacing that is the one step that makes a new model the model. The new one
    is loaded and tried beside the old one, which goes on answering; a folder that cannot be used is told of in one
    sentence, and the old model stays.
    """

    def __init__(
        self,
        settings: ServeSettings,
        on_swap: Callable[[ServedModel], None] | None = None,
        copies: Path | None = None,
    ) -> None:
        self.settings = settings
        self._copies = copies  # where folders are copied to before they are loaded; None to load them as they are
        self.problems: dict[str, str] = {}  # why the folder of a model, as it is now, is not served
        self._folders = dict(settings.models)
        self._on_swap = on_swap
        self._lock = threading.Lock()  # one load at a time
        self._seen: dict[str, Seen | None] = {}
        self._models: dict[str, ServedModel] = {}
        for id in self._folders:
            self._seen[id] = manifest_state(self._folders[id])
            self._models[id] = self._load(id)

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(list(self._models.values()))

    def __contains__(self, id: object) -> bool:
        return id in self._models

    @property
    def default(self) -> str:
        """The id of the model that is asked where none is named."""
        return self.settings.default_model

    def get(self, id: str) -> ServedModel:
        """Return a model by its id, as it is now; an unknown one is refused."""
        try:
            return self._models[id]
        except KeyError:
            known = ", ".join(list(self._models)[:20])
            raise Problem(404, f"there is no model {id!r:.100}; there are {known}.") from None

    def check(self) -> list[str]:
        """Look at every folder, load what is new, and return the ids that were swapped."""
        return [id for id in self._folders if self.reload(id, only_if_changed=True)]

    def reload(self, id: str, *, only_if_changed: bool = False) -> bool:
        """Load a folder again and say whether another model is served now; raises what is wrong with it.

        `only_if_changed` looks at the manifest first, and notes in `problems` what is wrong.
        """
        with self._lock:
            now = manifest_state(self._folders[id])
            if only_if_changed and now == self._seen[id]:
                return False
            try:
                fresh = self._load(id)
            except (LongtailError, OSError, MemoryError) as error:
                self._seen[id] = now
                told = one_line(str(error) or type(error).__name__)
                self.problems[id] = without_folders(told, [*filter(None, [self._copies]), self._folders[id]])
                LOG.warning("the model %s was not replaced: %s", id, told)
                if only_if_changed:
                    return False
                raise
            self._seen[id] = now
            self.problems.pop(id, None)
            if fresh.digest == self._models[id].digest:
                return False
            self._models[id] = fresh
        LOG.info("the model %s was replaced; it is %s now", id, fresh.digest)
        if self._on_swap is not None:
            self._on_swap(fresh)
        return True

    def _load(self, id: str) -> ServedModel:
        """Return the model of a folder, loaded, built and tried."""
        folder = self._folders[id]
        for _ in range(3):  # a save may replace the model while it is being copied
            source = folder if self._copies is None else self._copied(id, folder, folder_digest(folder))
            loaded, tagger = open_model(source, key=self.settings.key)
            if self._copies is None or loaded.digest == source.name:
                break
            shutil.rmtree(source, ignore_errors=True)
        else:
            raise ModelError(f"{folder} is being replaced again and again; it was not loaded.")
        if not isinstance(tagger, Tagger):
            raise ModelError(f"{folder} holds a {type(tagger).__name__} without label names; only a Tagger is served.")
        if not tagger.reads_texts_:
            raise ModelError(f"{folder} holds a model of features; only models of texts can be served.")
        tagger.model_.n_jobs = 1
        if hasattr(tagger.features_, "n_jobs"):
            tagger.features_.n_jobs = 1  # type: ignore[union-attr]
        tagger.build()
        tagger.tag(["a first text, so that everything is compiled"], k=1)
        return ServedModel(id, folder, tagger, loaded.digest)  # of what was read, whatever stands there by now

    def _copied(self, id: str, folder: Path, digest: str) -> Path:
        """Return a private copy of a folder, which processes share; older ones are removed."""
        copies = self._copies or folder
        target = copies / id / digest
        if not target.exists():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(dir=copies / id, prefix="new-"))
            try:
                copy_folder(folder, temporary)  # which reads regular files only, as long as the manifest says
                with contextlib.suppress(OSError):  # another process was faster
                    temporary.rename(target)
            except OSError as error:
                raise ModelError(f"{folder} cannot be copied: {error.strerror}.") from error
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            others = sorted(
                (one for one in target.parent.iterdir() if one != target), key=lambda one: one.stat().st_mtime
            )
            for old in others[:-1]:
                shutil.rmtree(old, ignore_errors=True)
        return target


def manifest_state(folder: Path) -> Seen | None:
    """Return what tells whether a folder holds another model than before; None where there is none."""
    try:
        found = os.stat(folder / MANIFEST)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
