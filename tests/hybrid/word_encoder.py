"""A stand-in for the multilingual encoder: words by their checksums, so that tests need no package and no time."""

import zlib
from functools import cache

import numpy as np


@cache
def direction(word, seed, width):
    return np.random.default_rng([zlib.crc32(word.encode()), seed]).normal(size=width)


class WordEncoder:
    """Gives every word a random direction of its own, and a text the sum of them."""

    width = 48
    version = "1.2.3"
    seed = 0

    def encode(self, texts, batch_size=64):
        out = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace(".", " ").split():
                out[row] += direction(word, self.seed, self.width)
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)
