"""What the trees of the benchmark of PRIME read: whole texts, the vectors of a kept encoder, rows held out of train."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longtail.data import TopK, read
from longtail.encoder.text_encoder import TextEncoder
from longtail.prime.hybrid import blended
from longtail.prime.search import LabelSearch
from longtail.storage import Part
from peers.prime_data import Texts, held_rows, read_pieces


def with_scores(top: TopK, queries: np.ndarray, prototypes: np.ndarray, share: float) -> TopK:
    """Return the best labels by the scores of a tree and of PRIME, as `Prime.fit_tree` adds them."""
    stored = {"vectors": prototypes}
    more, _ = LabelSearch(stored).topk(queries, top.k)
    known = np.ones(len(prototypes), dtype=bool)
    return blended(top, queries, stored, more, top.k, known, share=share)


def kept_encoder(name: str, folder: Path, device: str) -> Any:
    """Return PRIME's encoder as `train` kept it."""
    kept = json.loads((folder / f"encoder-{name}.json").read_text())
    part = Part("text-encoder.v1", kept["params"], read_pieces(folder, kept["files"]))
    return TextEncoder.from_part(part).eval().to(device)


def encoded(name: str, texts: Texts, folder: Path) -> Iterator[np.ndarray]:
    """Yield the vectors of train and test by the encoder that was kept; they are kept as well."""
    encoder = kept_encoder(name, folder, "cuda" if torch.cuda.is_available() else "cpu")
    for title, rows in (("train", texts.texts), ("test", texts.test_texts)):
        file = folder / f"vectors-{name}-{title}-{len(rows)}.npy"
        if not file.exists():
            np.save(file, encoder.embed_all(encoder.tokens(rows), mixed=True).cpu().numpy())  # bfloat16, as trained
        yield np.load(file)


def whole_texts(name: str, texts: Texts, data: Path | None, n_held: int) -> tuple[list[str], list[str]]:
    """Return the texts of train and test in full, where the data is here; else as far as they were carried."""
    if data is None:
        return texts.texts, texts.test_texts
    train, test = (list(read(data / name / f"{part}.jsonl.xz").texts or ()) for part in ("train", "test"))
    if n_held:
        inside, outside = held_rows(len(train), n_held)
        train, test = [train[i] for i in inside], [train[i] for i in outside]
    return train, test
