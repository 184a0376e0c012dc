"""Run transformers like BERT without padding: the tokens of all texts of a batch lie in one long row.

Texts are short and of many lengths: half of a padded batch of titles is padding, and on a GPU every new shape of a
batch has its price. Packed, each token is computed once and queries and labels go through the transformer together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS = ("gelu",)
FLASH_WIDTHS = range(8, 257, 8)  # of an attention head
FLASH_SINCE = (8, 0)  # compute capability
FLASH_ARGUMENTS = (
    "query",
    "key",
    "value",
    "cum_seq_q",
    "cum_seq_k",
    "max_q",
    "max_k",
    "dropout_p",
    "is_causal",
    "return_debug_mask",
)
FEW_TOKENS = 512


class PackedTexts(NamedTuple):
    """The tokens of some texts, one text after the other."""

    ids: Tensor  # int64 (n_tokens,)
    positions: Tensor  # int64 (n_tokens,): 0, 1, ... within each text
    text: Tensor  # int64 (n_tokens,): the text of each token
    ends: Tensor  # int32 (n_texts + 1,): 0, then where each text ends
    longest: int


def _flash_is_known() -> bool:
    """Say whether torch still has its private function, with the arguments that `attend` gives it."""
    try:
        arguments = torch.ops.aten._flash_attention_forward.default._schema.arguments
    except AttributeError:
        return False
    return tuple(argument.name for argument in arguments[: len(FLASH_ARGUMENTS)]) == FLASH_ARGUMENTS


FLASH_IS_KNOWN = _flash_is_known()


def join_packed(parts: list[PackedTexts]) -> PackedTexts:
    """Return the texts of all parts as one batch."""
    if len(parts) == 1:
        return parts[0]
    text, ends, n_texts, n_tokens = [], [parts[0].ends[:1]], 0, 0
    for part in parts:
        text.append(part.text + n_texts)
        ends.append(part.ends[1:] + n_tokens)
        n_texts, n_tokens = n_texts + part.ends.numel() - 1, n_tokens + part.ids.numel()
    ids, positions = (torch.cat([part[at] for part in parts]) for at in (0, 1))
    return PackedTexts(ids, positions, torch.cat(text), torch.cat(ends), max(part.longest for part in parts))


def can_pack(backbone: nn.Module) -> bool:
    """Say whether `packed_states` computes what this transformer does."""
    shape: Any = backbone.config
    return (
        shape.model_type == "bert"
        and shape.hidden_act in ACTIVATIONS
        and getattr(shape, "position_embedding_type", "absolute") == "absolute"
        and not getattr(shape, "is_decoder", False)
    )


def packed_states(backbone: Any, batch: PackedTexts, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the last hidden state of every token (n_tokens, width), computed in `dtype`."""
    shape, training = backbone.config, backbone.training
    drop, drop_attention = shape.hidden_dropout_prob, shape.attention_probs_dropout_prob
    heads = shape.num_attention_heads
    start = backbone.embeddings
    x = start.word_embeddings(batch.ids) + start.position_embeddings(batch.positions)
    x = _norm((x + start.token_type_embeddings.weight[0]).to(dtype), start.LayerNorm)
    x = F.dropout(x, drop, training)
    for layer in backbone.encoder.layer:
        own, out = layer.attention.self, layer.attention.output
        q, k, v = _queries_keys_values(x, (own.query, own.key, own.value), heads)
        seen = attend(q, k, v, batch, drop_attention if training else 0.0)
        x = _norm(x + F.dropout(_linear(seen.reshape(x.shape[0], -1), out.dense), drop, training), out.LayerNorm)
        inner = F.gelu(_linear(x, layer.intermediate.dense))
        x = _norm(x + F.dropout(_linear(inner, layer.output.dense), drop, training), layer.output.LayerNorm)
    return x


def attend(q: Tensor, k: Tensor, v: Tensor, batch: PackedTexts, dropout: float = 0.0) -> Tensor:
    """Return the attention of every token to those of its own text; all (n_tokens, heads, width of a head)."""
    if not can_flash(q):
        return attend_padded(q, k, v, batch, dropout)
    # Private in torch: its public function for packed texts, `torch.nn.attention.varlen.varlen_attn`, is newer than the
    # oldest torch supported here and takes no dropout. Where the private one is gone or has changed, padding is used.
    ends, longest = batch.ends, batch.longest
    return torch.ops.aten._flash_attention_forward(q, k, v, ends, ends, longest, longest, dropout, False, False)[0]


def attend_padded(q: Tensor, k: Tensor, v: Tensor, batch: PackedTexts, dropout: float = 0.0) -> Tensor:
    """The same by public functions of torch, with padding."""
    n_texts = batch.ends.numel() - 1
    if n_texts * batch.longest == len(q):  # all of one length, as one text alone is
        shape = (n_texts, batch.longest, *q.shape[1:])
        q, k, v = (t.reshape(shape).transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, None, dropout)
        return out.transpose(1, 2).flatten(0, 1)
    at = batch.text * batch.longest + batch.positions

    def padded(tokens: Tensor) -> Tensor:
        out = tokens.new_zeros(n_texts * batch.longest, *tokens.shape[1:]).index_copy(0, at, tokens)
        return out.view(n_texts, batch.longest, *tokens.shape[1:]).transpose(1, 2)

    lengths = batch.ends.diff()
    mask = torch.arange(batch.longest, device=q.device) < lengths[:, None]
    mask[:, 0] |= lengths == 0  # a text without tokens: its row is not used, but must not be NaN
    seen = F.scaled_dot_product_attention(padded(q), padded(k), padded(v), mask[:, None, None], dropout)
    return seen.transpose(1, 2).reshape(n_texts * batch.longest, *q.shape[1:])[at]


def mean_states(states: Tensor, batch: PackedTexts) -> Tensor:
    """Return the mean state of every text (n_texts, width), float32; zeros for one without tokens."""
    n_texts = batch.ends.numel() - 1
    sums = torch.zeros(n_texts, states.shape[1], device=states.device).index_add(0, batch.text, states.float())
    return sums / batch.ends.diff().clamp(min=1)[:, None]


def first_states(states: Tensor, batch: PackedTexts) -> Tensor:
    """Return the state of every text's first token (n_texts, width), float32."""
    return states[batch.ends[:-1].long().clamp(max=states.shape[0] - 1)].float()


def _queries_keys_values(x: Tensor, layers: tuple[nn.Linear, ...], heads: int) -> tuple[Tensor, ...]:
    """Return three linear maps of x, (n_tokens, heads, width of a head) each, by one product for many tokens."""
    if len(x) < FEW_TOKENS:  # joining the weights would take longer than multiplying by them
        return tuple(_linear(x, layer).view(len(x), heads, -1) for layer in layers)
    joined = (torch.cat([getattr(layer, name) for layer in layers]).to(x.dtype) for name in ("weight", "bias"))
    return F.linear(x, *joined).view(len(x), 3, heads, -1).unbind(dim=1)


def _linear(x: Tensor, layer: nn.Linear) -> Tensor:
    return F.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))


def _norm(x: Tensor, layer: nn.LayerNorm) -> Tensor:
    return F.layer_norm(x, layer.normalized_shape, layer.weight.to(x.dtype), layer.bias.to(x.dtype), layer.eps)


def can_flash(q: Tensor) -> bool:
    """Say whether flash attention without padding can be used for these vectors."""
    if not q.is_cuda or q.dtype not in (torch.bfloat16, torch.float16) or q.shape[2] not in FLASH_WIDTHS:
        return False
    return torch.cuda.get_device_capability(q.device) >= FLASH_SINCE and FLASH_IS_KNOWN
