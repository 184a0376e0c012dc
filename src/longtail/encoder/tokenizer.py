"""Tokenizers of the tokenizers library: made from saved JSON that was looked at, and texts cut by them; no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from longtail.encoder.tokenizer_check import tokenizer_problem
from longtail.errors import DataError, ModelError
from longtail.kernels import blocks
from longtail.text import check_unicode

TEXTS_AT_ONCE = 10_000
CHARACTERS = 10  # of a token, more than they have on average


def saved_tokenizer(text: str, vocab_size: int) -> Any:
    """Return the tokenizer of its JSON, looked at first; raises ValueError for one that is refused."""
    from tokenizers import Tokenizer

    problem = tokenizer_problem(text, vocab_size)
    if problem is not None:
        raise ValueError(problem)
    try:
        return Tokenizer.from_str(text)
    except BaseException as error:
        if not is_tokenizer_error(error):
            raise
        raise ValueError("the tokenizer is not one of the tokenizers library") from error


def tokenize(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[np.ndarray]:
    """Return the token numbers of every text, at most `max_length`, as a `tokenizers.Tokenizer` makes them."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    out: list[np.ndarray] = []
    beginnings = cuts_at_spaces(tokenizer)
    for at in blocks(len(texts), TEXTS_AT_ONCE):
        try:
            if beginnings:
                encoded = _from_beginnings(tokenizer, texts[at], max_length)
            else:
                encoded = tokenizer.encode_batch_fast(texts[at])
        except (TypeError, UnicodeError) as error:  # a lone surrogate is a Python string but no text
            check_unicode(texts)
            raise DataError(
                input="texts", problem=f"must be Unicode text; one of rows {at.start} to {at.stop - 1} is not."
            ) from error
        except BaseException as error:
            if not is_tokenizer_error(error):
                raise
            raise ModelError(f"the tokenizer of the model cannot read the texts: {str(error)[:100]}.") from error
        out += [np.array(row.ids, dtype=np.int32) for row in encoded]
    return out


def cuts_at_spaces(tokenizer: Any) -> bool:
    """Say whether a tokenizer is of BERT's kind: no token reaches over a space, and none depends on what follows it."""
    kinds = (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.model)
    if [type(kind).__name__ for kind in kinds] != ["BertNormalizer", "BertPreTokenizer", "WordPiece"]:
        return False
    return not any(" " in token.content for token in tokenizer.get_added_tokens_decoder().values())


def _from_beginnings(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[Any]:
    """Return the tokens of texts, most of them from their beginnings: of a long text all would be cut but a few kept.

    A beginning ends before a space. Where it is too short to fill the tokens asked for, the whole text is cut.
    """
    size = CHARACTERS * max_length
    starts = [_beginning(text, size) for text in texts]
    encoded = tokenizer.encode_batch_fast(starts)
    short = [
        row
        for row, (text, start) in enumerate(zip(texts, starts, strict=True))
        if len(start) < len(text) and len(encoded[row].ids) < max_length
    ]
    for row, whole in zip(short, tokenizer.encode_batch_fast([texts[row] for row in short]), strict=True):
        encoded[row] = whole
    return encoded


def _beginning(text: str, size: int) -> str:
    """Return a text up to the first space after so many characters.

    >>> _beginning("one two three", 5)
    'one two'
    """
    end = text.find(" ", size) if isinstance(text, str) else -1
    return text if end < 0 else text[:end]


def is_tokenizer_error(error: BaseException) -> bool:
    """Say whether an error is one of the tokenizers library: it has no classes of its own, and Rust panics."""
    return type(error) in (Exception, ValueError, OverflowError) or type(error).__name__ == "PanicException"
