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
    for at in blocks(len(texts), TEXTS_AT_ONCE):
        try:
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


def is_tokenizer_error(error: BaseException) -> bool:
    """Say whether an error is one of the tokenizers library: it has no classes of its own, and Rust panics."""
    return type(error) in (Exception, ValueError, OverflowError) or type(error).__name__ == "PanicException"
