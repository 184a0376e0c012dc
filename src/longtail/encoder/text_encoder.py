"""Text encoders that can be trained: a pretrained one from this machine, or a small new one for given texts.

Either way an encoder is a transformer, a tokenizer and a way of pooling; it is saved as plain arrays, so a trained
model needs none of the files it came from.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import sdpa_kernel

from longtail.encoder.features import load_encoder
from longtail.encoder.long_texts import cut_chunks, join_chunks, tokens_read
from longtail.encoder.new_encoder import check_new_encoder
from longtail.encoder.packed import (
    BACKENDS,
    PackedTexts,
    can_pack,
    first_states,
    join_packed,
    mean_states,
    packed_states,
)
from longtail.encoder.schema import CONFIG, POOLINGS, TEXT_ENCODER_SCHEMA, config_problem, known_config, longest_text
from longtail.encoder.tokenizer import saved_tokenizer, tokenize
from longtail.encoder.tokenizer_check import tokenizer_problem
from longtail.encoder.tokens import PADDING, TokenRows, new_tokenizer
from longtail.encoder.universal import UniversalEncoder
from longtail.encoder.weights import check_shapes, first_sentence
from longtail.errors import DataError, MissingExtraError, ModelError
from longtail.storage import Part, checked, pack_strings, unpack_strings
from longtail.training import to_device

PREFIX = "weights."
LONGEST_TRIED = 1024  # tokens
# what the libraries raise for weights and configurations that do not fit each other
REFUSED = (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError, ArithmeticError)
TOKENS_AT_ONCE = {"cuda": 131_072, "cpu": 8_192}  # with padding; bounds the memory of encoding
FEWEST_AT_ONCE = 512  # where the memory of a GPU is spent, before it is given up
MODULES = ("Transformer", "Pooling", "Normalize")  # of a sentence-transformers model that this encoder can stand for


class TextEncoder(nn.Module):
    """A transformer that turns texts into vectors: the mean of its tokens' states, or the first token's state.

    Parameters
    ----------
    backbone : nn.Module
        A transformer of the transformers library.
    tokenizer : tokenizers.Tokenizer
        Its tokenizer.
    pooling : {"mean", "cls"}, default="mean"
        Whether a text's vector is the mean of its tokens' states or the state of the first token.
    max_length : int, default=128
        Tokens of a text that are read at once.
    long_texts : {"beginning", "chunks", "both"}, default="beginning"
        How `encode` reads longer texts: their beginning alone; the mean of up to four chunks; or both, half and half.

    Attributes
    ----------
    width : int
        Length of the vectors.

    Examples
    --------
    >>> encoder = new_text_encoder(["a red apple", "an old car"], width=16, layers=1, heads=2).eval()
    >>> encoder.encode(["red car", "apple"]).shape
    (2, 16)
    """

    def __init__(
        self,
        backbone: nn.Module,
        tokenizer: Any,
        pooling: str = "mean",
        max_length: int = 128,
        long_texts: str = "beginning",
    ) -> None:
        super().__init__()
        self.long_texts = long_texts
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.pooling = pooling
        self.max_length = max_length
        shape: Any = backbone.config
        self.width: int = int(shape.hidden_size)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let torch compile the transformer; worth it for long trainings on a GPU."""
        # kept out of the module's own list of parts: the weights are those of the backbone
        self.__dict__["compiled"] = torch.compile(packed_states if self.packs else self.backbone, dynamic=True)

    @property
    def packs(self) -> bool:
        """Whether texts go through the transformer without padding."""
        return can_pack(self.backbone)

    @property
    def device(self) -> torch.device:
        return next(self.backbone.parameters()).device

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return one vector per text (n, width), of any length, from token numbers and mask (n, n_tokens)."""
        run = self.backbone if self.packs else self.__dict__.get("compiled", self.backbone)
        on_cpu = ids.device.type == "cpu"  # which would add gradients of norms up in bfloat16
        with sdpa_kernel(BACKENDS), torch.autocast("cpu", enabled=False) if on_cpu else nullcontext():
            states = run(input_ids=ids, attention_mask=mask).last_hidden_state
        if self.pooling == "cls":
            return states[:, 0].float()
        kept = mask[:, :, None].to(states.dtype)
        return ((states * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)).float()

    def tokens(self, texts: Sequence[str], max_length: int | None = None) -> TokenRows:
        """Return texts as token numbers, on the encoder's device."""
        rows = tokenize(self.tokenizer, texts, min(max_length or self.max_length, self.longest))
        return TokenRows(rows, self.padding, self.device)

    @property
    def longest(self) -> int:
        """The most tokens the transformer can take."""
        return longest_text(self.backbone.config)

    @property
    def padding(self) -> int:
        return int(getattr(self.backbone.config, "pad_token_id", None) or 0)

    def embed(self, tokens: TokenRows, rows: np.ndarray, at_once: int | None = None) -> Tensor:
        """Return the vectors of some rows (n, width); texts of like length go through the transformer together.

        `at_once` are the tokens of one pass, about; None for what suits the device.
        """
        parts = list(tokens.parts_by_length(rows, at_once or TOKENS_AT_ONCE[self.device.type]))
        if not parts:
            return torch.empty(0, self.width, device=self.device)
        by_length = torch.cat([self.embed_together((tokens, rows[part]))[0] for part in parts])
        back = np.empty(rows.size, dtype=np.int64)
        back[np.concatenate(parts)] = np.arange(rows.size)
        return by_length[to_device(back, self.device)]

    def embed_together(self, *asked: tuple[TokenRows, np.ndarray]) -> tuple[Tensor, ...]:
        """Return the vectors of rows of different `TokenRows`, in one pass where texts are packed."""
        if not self.packs:
            return tuple(self(*tokens.pad(rows)) for tokens, rows in asked)
        vectors = self.embed_packed(join_packed([tokens.pack(rows) for tokens, rows in asked]))
        return vectors.split([rows.size for _, rows in asked])

    def embed_packed(self, batch: PackedTexts) -> Tensor:
        """Return one vector per text (n, width), of any length, of texts without padding."""
        kind = self.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
        run = self.__dict__.get("compiled", packed_states)
        with torch.autocast(kind, enabled=False):
            states = run(self.backbone, batch, dtype)
            return first_states(states, batch) if self.pooling == "cls" else mean_states(states, batch)

    @torch.no_grad()
    def embed_all(self, tokens: TokenRows, mixed: bool = False, rows: np.ndarray | None = None) -> Tensor:
        """Return the vectors of all rows, or of some, without gradient and without dropout."""
        training = self.training
        self.eval()
        vectors, at_once = None, TOKENS_AT_ONCE[self.device.type]
        while vectors is None:
            try:
                with torch.autocast(self.device.type, torch.bfloat16, enabled=mixed):
                    vectors = self.embed(tokens, np.arange(len(tokens)) if rows is None else rows, at_once)
            except torch.cuda.OutOfMemoryError:
                at_once //= 4
                if at_once < FEWEST_AT_ONCE:
                    raise
        self.train(training)
        return vectors

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one float32 row per text, as `read` does."""
        return self.read(texts).cpu().numpy()

    def read(self, texts: Sequence[str], mixed: bool = False) -> Tensor:
        """Return the vectors of texts (n, width), without gradient; of unit length where `long_texts` cuts them."""
        if self.long_texts == "beginning":
            return self.embed_all(self.tokens(texts), mixed)
        length, n_special = min(self.max_length, self.longest), self.tokenizer.num_special_tokens_to_add(False)
        chunks = cut_chunks(tokenize(self.tokenizer, texts, tokens_read(length, n_special)), length, n_special)
        vectors = self.embed_all(TokenRows(chunks.rows, self.padding, self.device), mixed)
        return torch.as_tensor(join_chunks(vectors.cpu().numpy(), chunks, self.long_texts), device=self.device)

    def to_part(self) -> Part:
        """Return what is saved: the weights, the shape of the transformer and the tokenizer."""
        shape: Any = self.backbone.config
        params = {
            "config": known_config(_config_of(shape)),
            "pooling": self.pooling,
            "max_length": self.max_length,
        }
        if self.long_texts != "beginning":
            params["long_texts"] = self.long_texts
        self.tokenizer.no_truncation()  # as it was last used is no part of the model
        arrays = {f"{PREFIX}{name}": value.detach().cpu().numpy() for name, value in self.backbone.state_dict().items()}
        return Part(
            TEXT_ENCODER_SCHEMA.kind, params, {**arrays, **pack_strings("tokenizer", [self.tokenizer.to_str()])}
        )

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Make the encoder from what was saved of it, and try it once; float16 weights become float32."""
        part = checked(part, TEXT_ENCODER_SCHEMA)
        config = known_config(part.params["config"])
        try:
            tokenizer = saved_tokenizer(unpack_strings("tokenizer", part)[0], config["vocab_size"])
            weights = part.under(PREFIX)
            _check_weights(config, weights)
            backbone = new_backbone(config)
            backbone.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
            how = part.params.get("long_texts", "beginning")
            encoder = cls(backbone, tokenizer, part.params["pooling"], part.params["max_length"], how)
            encoder.try_out()
        except REFUSED as error:
            raise ModelError(f"the model's part '{part.kind}' is damaged: {first_sentence(error)}.") from error
        return encoder

    def try_out(self) -> None:
        """Encode two texts, one of them as long as it may be, to see that nothing in the network leads outside."""
        texts = ["a text", "word " * min(self.max_length, self.longest, LONGEST_TRIED)]
        if not np.isfinite(self.encode(texts)).all():
            raise ValueError("its vectors are not finite")


def load_text_encoder(name: str | Path, max_length: int | None = None) -> TextEncoder:
    """Return the encoder of a sentence-transformers model, by folder, package or name in the local cache; offline."""
    model = load_encoder(name, "cpu")
    if isinstance(model, UniversalEncoder):
        raise DataError(f"encoder '{name}' cannot be trained: it is for `EncoderFeatures` and `Hybrid`.")
    modules = [type(module).__name__ for module in model]
    if not modules or modules[0] != "Transformer" or any(kind not in MODULES for kind in modules):
        raise DataError(f"encoder '{name}' cannot be trained: it must be made of {list(MODULES)}; it has {modules}.")
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None or not hasattr(model[0].auto_model.config, "hidden_size"):
        raise DataError(f"encoder '{name}' cannot be trained: it has no tokenizer of the tokenizers library.")
    pooling = _pooling(model[1]) if len(modules) > 1 else "mean"
    if pooling not in POOLINGS:
        raise DataError(f"encoder '{name}' cannot be trained: pooling must be one of {POOLINGS}; it has '{pooling}'.")
    backbone = _without_pooler(model[0].auto_model.float())
    shape: Any = backbone.config
    problem = config_problem(_config_of(shape))
    problem = problem or tokenizer_problem(tokenizer.to_str(), int(shape.vocab_size))
    if problem is not None:
        raise DataError(f"encoder '{name}' cannot be trained: {problem}.")
    return TextEncoder(backbone, tokenizer, pooling, max_length or int(model.max_seq_length or 128))


def new_text_encoder(texts: Sequence[str], *, max_length: int = 64, **given: Any) -> TextEncoder:
    """Return a small untrained encoder with a vocabulary from some texts; its weights come from torch's generator.

    `given` are `width`, `layers`, `heads`, `vocabulary` and `dropout`, where they differ from `NEW_ENCODER`.
    """
    sizes = check_new_encoder(given, max_length)
    width, tokenizer = sizes["width"], new_tokenizer(texts, sizes["vocabulary"])
    config = {
        "model_type": "bert",
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": width,
        "num_hidden_layers": sizes["layers"],
        "num_attention_heads": sizes["heads"],
        "intermediate_size": 4 * width,
        "max_position_embeddings": max(max_length, 16),
        "hidden_dropout_prob": sizes["dropout"],
        "attention_probs_dropout_prob": sizes["dropout"],
        "pad_token_id": tokenizer.token_to_id(PADDING),
    }
    return TextEncoder(new_backbone(config), tokenizer, "mean", max_length)


def new_backbone(config: dict[str, Any]) -> nn.Module:
    """Return an untrained transformer of a given shape, one of the closed list in `schema.py`."""
    problem = config_problem(config)
    if problem is not None:
        raise ValueError(problem)
    try:
        from transformers import AutoConfig, AutoModel
    except ImportError as error:
        raise MissingExtraError("Training an encoder", "transformers", "torch") from error
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        shape = AutoConfig.for_model(**config)
        return _without_pooler(AutoModel.from_config(shape, trust_remote_code=False))
    except Exception as error:  # every version has its own classes for a shape that it refuses
        raise ValueError(f"transformers cannot make a network of this shape: {error}") from error


def _check_weights(config: dict[str, Any], weights: dict[str, np.ndarray]) -> None:
    """Refuse weights that are not those of the transformer, before memory is taken for it."""
    with torch.device("meta"):
        expected = {name: tuple(value.shape) for name, value in new_backbone(config).state_dict().items()}
    check_shapes(expected, weights)


def _config_of(shape: Any) -> dict[str, Any]:
    """Return what a configuration says of its own transformer, without what every one has and this does not need."""
    from transformers import PretrainedConfig

    common = set(PretrainedConfig().to_dict()) - set(CONFIG)
    own = {**shape.to_diff_dict(), "model_type": shape.model_type}
    return {name: value for name, value in own.items() if name not in common}


def _pooling(module: Any) -> str:
    mode = module.get_config_dict().get("pooling_mode")  # older versions have a flag per mode instead
    return str(mode if isinstance(mode, str) else module.get_pooling_mode_str())


def _without_pooler(backbone: nn.Module) -> nn.Module:
    """Take off the layer over the first token that some transformers end in: it would be saved and never used."""
    if isinstance(getattr(backbone, "pooler", None), nn.Module):
        backbone.pooler = None
    return backbone
