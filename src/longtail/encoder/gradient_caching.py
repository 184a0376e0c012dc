"""Large batches through an encoder with the memory of small ones: gradient caching.

A batch is encoded chunk by chunk, and of each chunk only the vectors are kept. Once the gradient of the loss at these
vectors is known, each chunk is encoded again, with the same dropout, and takes its part of the gradient to the weights.
The step is that of the whole batch; it costs one more forward pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from longtail.encoder.text_encoder import TextEncoder
from longtail.encoder.tokens import TokenRows
from longtail.training import get_random_state, set_random_state, to_device

Asked = tuple[TokenRows, np.ndarray]  # some rows of token rows


def embed_in_chunks(encoder: TextEncoder, chunk_tokens: int, *asked: Asked) -> tuple[Tensor, ...]:
    """Return the vectors of rows of different `TokenRows`, encoded about `chunk_tokens` tokens at a time.

    Gradients are those of the whole batch, though what a chunk computes is not kept for them.
    """
    chunks: list[Asked] = []
    order, before = [], 0
    for tokens, rows in asked:
        for part in tokens.chunks(rows, chunk_tokens, padded=not encoder.packs):
            chunks.append((tokens, rows[part]))
            order.append(before + part)
        before += rows.size
    anchor = next(p for p in encoder.parameters() if p.requires_grad)
    by_chunk = _Chunks.apply(anchor, encoder, chunks)
    back = np.empty(before, dtype=np.int64)
    back[np.concatenate(order)] = np.arange(before)
    return by_chunk[to_device(back, encoder.device)].split([rows.size for _, rows in asked])


def count_tokens(encoder: TextEncoder, *asked: Asked) -> int:
    """Return how many tokens, with padding where there is any, go through the transformer for some rows at once."""
    if encoder.packs:
        return int(sum(tokens.lengths[rows].sum() for tokens, rows in asked))
    return int(sum(rows.size * tokens.lengths[rows].max(initial=0) for tokens, rows in asked))


class _Chunks(torch.autograd.Function):
    """The vectors of all chunks, one after the other; its backward pass encodes every chunk again."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, encoder: TextEncoder, chunks: list[Asked]) -> Tensor:
        """Encode without gradient; `anchor` is any weight, so that the result has a gradient at all."""
        device = encoder.device
        ctx.encoder, ctx.chunks, ctx.states = encoder, chunks, []
        ctx.mixed = torch.is_autocast_enabled(device.type), torch.get_autocast_dtype(device.type)
        vectors = []
        for chunk in chunks:
            ctx.states.append(get_random_state(device))
            vectors.append(encoder.embed_together(chunk)[0])
        return torch.cat(vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None]:
        encoder, (enabled, dtype) = ctx.encoder, ctx.mixed
        after = get_random_state(encoder.device)
        parts = gradients[0].split([rows.size for _, rows in ctx.chunks])
        for chunk, state, gradient in zip(ctx.chunks, ctx.states, parts, strict=True):
            set_random_state(state, encoder.device)
            with torch.enable_grad():
                with torch.autocast(encoder.device.type, dtype, enabled=enabled):  # anew: it keeps weights it has cast
                    vectors = encoder.embed_together(chunk)[0]
                torch.autograd.backward(vectors, gradient)
        set_random_state(after, encoder.device)
        return None, None, None
