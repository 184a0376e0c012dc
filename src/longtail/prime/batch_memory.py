"""The memory that a batch takes for its backward pass, and the chunks in which it goes through the encoder."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from longtail.encoder import TextEncoder, TokenRows
    from longtail.prime.network import PrimeNetwork

# numbers that a layer keeps of a token for the backward pass: times width, times inner width, times heads and length of
# the text, where attention keeps its weights
KEPT_PER_LAYER = (18, 2, 3)
KEPT_ON_CPU = 4 << 30  # bytes of a batch, at most; the same on all machines, so that the same seed gives the same model
GPU_SHARE = 0.6  # of the free memory of a GPU, for a batch
SCORE_COPIES = 16  # of the similarities of a batch: products, masks, hardest ones, gradients
FEWEST_TOKENS = 256  # of a chunk that is not divided further


def kept_bytes(width: int, inner: int, layers: int, heads: int, longest: int, itemsize: int = 4) -> int:
    """Return about how many bytes a token takes in training, with its share of the attention in a text of `longest`.

    >>> kept_bytes(384, 1536, 6, 12, 128)
    350208
    """
    times_width, times_inner, times_scores = KEPT_PER_LAYER
    return layers * itemsize * (times_width * width + times_inner * inner + times_scores * heads * longest)


def most_for_a_batch(device: torch.device) -> int:
    """Return the bytes of memory that a batch may take now; a larger one is encoded chunk by chunk."""
    import torch

    if device.type != "cuda":
        return KEPT_ON_CPU
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(GPU_SHARE * free)


class BatchEncoder:
    """Encodes the texts of a batch with gradients: all at once where they fit into memory, else chunk by chunk.

    Parameters
    ----------
    encoder : TextEncoder
        The encoder.
    chunk_tokens : int
        Tokens that are encoded at once, at most.
    """

    chunk_tokens: int
    encoder: TextEncoder

    def __init__(self, encoder: TextEncoder, chunk_tokens: int) -> None:
        self.encoder, self.chunk_tokens = encoder, chunk_tokens
        self._asked = 0  # tokens of the last batch

    def __call__(self, *asked: tuple[TokenRows, Any]) -> tuple[Tensor, ...]:
        """Return the vectors of rows of different `TokenRows`."""
        from longtail.encoder import count_tokens, embed_in_chunks

        self._asked = count_tokens(self.encoder, *asked)
        if self._asked <= self.chunk_tokens:
            return self.encoder.embed_together(*asked)
        return embed_in_chunks(self.encoder, self.chunk_tokens, *asked)

    def halve(self) -> bool:
        """Encode half as many tokens at once from now on; False where there are too few to divide."""
        half = min(self._asked, self.chunk_tokens) // 2
        if half < FEWEST_TOKENS:
            return False
        self.chunk_tokens = half
        warnings.warn(
            f"the GPU ran out of memory; texts now go through the encoder {half:,} tokens at a time.", stacklevel=2
        )
        return True


def fitting_tokens(network: PrimeNetwork, longest: int, n_scores: int, mixed: bool) -> int:
    """Return how many tokens can be encoded at once with gradients, in what memory there is for a batch.

    `longest` are the tokens of the longest text, `n_scores` the similarities that the loss of a batch looks at.
    """
    encoder, shape = network.encoder, transformer_shape(network.encoder.backbone.config)
    fused = mixed and encoder.packs and encoder.device.type == "cuda"  # attention that keeps no weights
    each = kept_bytes(**shape, longest=0 if fused else longest, itemsize=2 if fused else 4)
    most = most_for_a_batch(encoder.device)
    if encoder.device.type == "cuda":
        most -= 3 * 4 * sum(p.numel() for p in network.parameters())  # gradients and two moments of the optimiser
        most -= 4 * SCORE_COPIES * n_scores
    return max(FEWEST_TOKENS, most // each)


def transformer_shape(config: Any) -> dict[str, int]:
    """Return width, inner width, layers and heads of a transformer, from its configuration."""
    width = int(config.hidden_size)
    inner = getattr(config, "intermediate_size", None) or getattr(config, "hidden_dim", None) or 4 * width
    heads, layers = (int(getattr(config, name, 1)) for name in ("num_attention_heads", "num_hidden_layers"))
    return {"width": width, "inner": int(inner), "layers": layers, "heads": heads}
