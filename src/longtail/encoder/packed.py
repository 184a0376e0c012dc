"""Run transformers like BERT without padding: the tokens of all texts of a batch lie in one long row.

Texts are short and of many lengths: half of a padded batch of titles is padding, and on a GPU every new shape of a
batch has its price. Packed, each token is computed once and queries and labels go through the transformer together.
MPNet adds to its attention a bias by the distance of two tokens, which attention without padding cannot take: there
the attention alone is padded, queries and labels each to their own longest text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from longtail.encoder.schema import PADDING_FIRST
from longtail.encoder.weights import LAYER_NAMES, MPNET_BUCKETS, MPNET_PADDING

ARCHITECTURES = ("bert", "camembert", "mpnet", "roberta", "xlm-roberta")
ACTIVATIONS = ("gelu",)
BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]  # cuDNN plans every shape anew
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
EVEN = 8  # padded attention has columns in multiples of this, which the hardware likes


class Joined(NamedTuple):
    """One of the batches that a packed batch was joined of; known without asking a GPU."""

    n_texts: int
    n_tokens: int
    longest: int


class PackedTexts(NamedTuple):
    """The tokens of some texts, one text after the other."""

    ids: Tensor  # int64 (n_tokens,)
    positions: Tensor  # int64 (n_tokens,): 0, 1, ... within each text
    text: Tensor  # int64 (n_tokens,): the text of each token
    ends: Tensor  # int32 (n_texts + 1,): 0, then where each text ends
    longest: int
    joined: tuple[Joined, ...]


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
    joined = tuple(batch for part in parts for batch in part.joined)
    return PackedTexts(ids, positions, torch.cat(text), torch.cat(ends), max(part.longest for part in parts), joined)


def can_pack(backbone: nn.Module) -> bool:
    """Say whether `packed_states` computes what this transformer does."""
    shape: Any = backbone.config
    return (
        shape.model_type in ARCHITECTURES
        and shape.hidden_act in ACTIVATIONS
        and (getattr(shape, "position_embedding_type", None) or "absolute") == "absolute"
        and not getattr(shape, "is_decoder", False)
    )


def packed_states(backbone: Any, batch: PackedTexts, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the last hidden state of every token (n_tokens, width), computed in `dtype`."""
    shape, training = backbone.config, backbone.training
    drop, drop_attention = shape.hidden_dropout_prob, shape.attention_probs_dropout_prob if training else 0.0
    heads, names = shape.num_attention_heads, LAYER_NAMES[shape.model_type]
    start = backbone.embeddings
    x = start.word_embeddings(batch.ids) + start.position_embeddings(_position_numbers(shape, batch))
    if hasattr(start, "token_type_embeddings"):
        x = x + start.token_type_embeddings.weight[0]
    x = drop_some(_norm(x.to(dtype), start.LayerNorm), drop, training)
    biased = _biased_parts(backbone, batch, dtype) if shape.model_type == "mpnet" else None
    for layer in backbone.encoder.layer:
        part = layer.get_submodule
        q, k, v = _queries_keys_values(x, (part(names.query), part(names.key), part(names.value)), heads)
        if biased is None:
            seen = attend(q, k, v, batch, drop_attention)
        else:
            seen = _attend_biased(q, k, v, biased, drop_attention)
        out = _linear(seen.reshape(x.shape[0], -1), part(names.attended))
        x = _norm(x + drop_some(out, drop, training), part(names.attention_norm))
        inner = F.gelu(_linear(x, part(names.inner)))
        x = _norm(x + drop_some(_linear(inner, part(names.outer)), drop, training), part(names.norm))
    return x


def _position_numbers(shape: Any, batch: PackedTexts) -> Tensor:
    """Return the position of every token; some transformers do not count the padding token, wherever it is."""
    if shape.model_type == "mpnet":
        padding = MPNET_PADDING
    elif shape.model_type in PADDING_FIRST:
        padding = int(shape.pad_token_id)
    else:
        return batch.positions
    counted = (batch.ids != padding).long()
    before = F.pad(counted.cumsum(0), (1, 0))
    return (before[1:] - before[batch.ends.long()][batch.text]) * counted + padding


class _BiasedPart(NamedTuple):
    """Where the texts of one batch stand, padded, and what is added to their attention."""

    tokens: slice  # of the packed ones
    at: Tensor  # int64 (n_tokens,): where each stands among n_texts * columns
    bias: Tensor  # (n_texts, heads, columns, columns): by the distance of two tokens; of padding, next to -infinity


def _biased_parts(backbone: Any, batch: PackedTexts, dtype: torch.dtype) -> list[_BiasedPart]:
    """Return the bias of MPNet's attention for the batches that were joined; all layers add the same."""
    parts, text, token, ends = [], 0, 0, batch.ends
    table = backbone.encoder.relative_attention_bias
    for n_texts, n_tokens, longest in batch.joined:
        columns, tokens = -(-longest // EVEN) * EVEN, slice(token, token + n_tokens)
        column = torch.arange(columns, device=ends.device)
        bucket = backbone.encoder.relative_position_bucket(column[None] - column[:, None], MPNET_BUCKETS)
        near = table(bucket).permute(2, 0, 1).to(dtype)
        lengths = ends[text : text + n_texts + 1].diff()
        kept = column < lengths.clamp(min=1)[:, None]  # a text without tokens is not used, but must not be NaN
        bias = torch.where(kept[:, None, None], near, torch.finfo(dtype).min)
        parts.append(_BiasedPart(tokens, (batch.text[tokens] - text) * columns + batch.positions[tokens], bias))
        text, token = text + n_texts, token + n_tokens
    return parts


def _attend_biased(q: Tensor, k: Tensor, v: Tensor, parts: list[_BiasedPart], dropout: float) -> Tensor:
    """Return the attention of every token to those of its own text; all (n_tokens, heads, width of a head)."""
    seen = []
    for tokens, at, bias in parts:
        n_texts, columns = len(bias), bias.shape[-1]
        own_q, own_k, own_v = (_spread(x[tokens], at, n_texts, columns) for x in (q, k, v))
        with sdpa_kernel(BACKENDS):
            out = _attend_all(own_q, own_k, own_v, bias, dropout)
        seen.append(out.transpose(1, 2).flatten(0, 1)[at])
    return torch.cat(seen)


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
        out = _attend_all(q, k, v, None, dropout)
        return out.transpose(1, 2).flatten(0, 1)
    at = batch.text * batch.longest + batch.positions
    lengths = batch.ends.diff()
    mask = torch.arange(batch.longest, device=q.device) < lengths[:, None]
    mask[:, 0] |= lengths == 0  # a text without tokens: its row is not used, but must not be NaN
    q, k, v = (_spread(tokens, at, n_texts, batch.longest) for tokens in (q, k, v))
    seen = _attend_all(q, k, v, mask[:, None, None], dropout)
    return seen.transpose(1, 2).flatten(0, 1)[at]


def _attend_all(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """Return attention with padding, (n_texts, heads, columns, width of a head).

    `mask` says what is seen, or is added to the products. With dropout a CPU is faster step by step.
    """
    if not dropout or q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, mask, dropout)
    weights = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    if mask is not None and mask.dtype == torch.bool:
        weights = weights.masked_fill(~mask, torch.finfo(weights.dtype).min)
    elif mask is not None:
        weights = weights + mask
    return drop_some(weights.softmax(dim=-1), dropout) @ v


def drop_some(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Return x with numbers set to 0 with probability p and the others made larger, in training: dropout.

    On a CPU sixteen bits of a random number decide about each, which takes less time than torch's own dropout.
    """
    if not training or not p or x.device.type != "cpu":
        return F.dropout(x, p, training)
    dropped: Tensor = _Dropped.apply(x, p)
    return dropped


class _Dropped(torch.autograd.Function):
    """Dropout on a CPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
        gone = (bits[: x.numel()] < round(p * 2**16) - 2**15).view(x.shape)
        ctx.save_for_backward(gone)
        ctx.scale = 1 / (1 - p)
        return x.masked_fill(gone, 0).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gone,) = ctx.saved_tensors
        return gradients[0].masked_fill(gone, 0).mul_(ctx.scale), None


def _spread(tokens: Tensor, at: Tensor, n_texts: int, columns: int) -> Tensor:
    """Return packed tokens with padding, (n_texts, heads, columns, width of a head)."""
    out = tokens.new_zeros(n_texts * columns, *tokens.shape[1:]).index_copy(0, at, tokens)
    return out.view(n_texts, columns, *tokens.shape[1:]).transpose(1, 2)


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
    if x.device.type == "cpu":  # in float32: in bfloat16 a CPU adds the gradients of thousands of tokens up as bfloat16
        return F.layer_norm(x.float(), layer.normalized_shape, layer.weight, layer.bias, layer.eps).to(x.dtype)
    return F.layer_norm(x, layer.normalized_shape, layer.weight.to(x.dtype), layer.bias.to(x.dtype), layer.eps)


def can_flash(q: Tensor) -> bool:
    """Say whether flash attention without padding can be used for these vectors."""
    if not q.is_cuda or q.dtype not in (torch.bfloat16, torch.float16) or q.shape[2] not in FLASH_WIDTHS:
        return False
    return torch.cuda.get_device_capability(q.device) >= FLASH_SINCE and FLASH_IS_KNOWN
