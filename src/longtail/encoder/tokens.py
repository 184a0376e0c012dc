"""Texts as rows of token numbers, in batches with padding or without; tokenizers for new encoders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.encoder.packed import Joined, PackedTexts
from longtail.text import check_unicode
from longtail.training import to_device

PADDING, UNKNOWN, START, END = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
LONGEST_PIECE = 5


class TokenRows:
    """The token numbers of many texts, on the device where they are used.

    Parameters
    ----------
    rows : sequence of ndarray
        Token numbers of every text.
    pad_token : int, default=0
        Token that fills rows up.
    device : torch.device or str, default="cpu"
        Where the tokens lie.

    Examples
    --------
    >>> rows = TokenRows([np.array([1, 5, 2]), np.array([1, 2])])
    >>> ids, mask = rows.pad(np.array([1, 0]))
    >>> ids.tolist(), mask.tolist()
    ([[1, 2, 0], [1, 5, 2]], [[1, 1, 0], [1, 1, 1]])
    """

    def __init__(self, rows: Sequence[np.ndarray], pad_token: int = 0, device: torch.device | str = "cpu") -> None:
        self.lengths: np.ndarray = np.array([len(row) for row in rows], dtype=np.int64)
        flat = np.concatenate(rows) if len(rows) else np.empty(0, dtype=np.int32)
        self.flat: torch.Tensor = torch.as_tensor(np.append(flat, pad_token).astype(np.int32), device=device)
        self.starts: torch.Tensor = torch.as_tensor(np.cumsum(self.lengths) - self.lengths, device=device)
        self.counts: torch.Tensor = torch.as_tensor(self.lengths, device=device)

    def __len__(self) -> int:
        return self.lengths.size

    @property
    def device(self) -> torch.device:
        return self.flat.device

    def pad(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return token numbers and mask (n, longest), int64, of some rows; at least one column."""
        longest = max(1, int(self.lengths[rows].max(initial=0)))
        if self.device.type == "cuda":
            longest = -(-longest // 8) * 8  # few different shapes, and ones the hardware likes
        at = to_device(rows, self.device)
        column = torch.arange(longest, device=self.device)
        mask = column < self.counts[at, None]
        ids = self.flat[torch.where(mask, self.starts[at, None] + column, self.flat.numel() - 1)]
        return ids.long(), mask.long()

    def pack(self, rows: np.ndarray) -> PackedTexts:
        """Return some rows one after the other, without padding.

        >>> rows = TokenRows([np.array([1, 5, 2]), np.array([1, 2])])
        >>> batch = rows.pack(np.array([1, 0]))
        >>> batch.ids.tolist(), batch.positions.tolist(), batch.ends.tolist()
        ([1, 2, 1, 5, 2], [0, 1, 0, 1, 2], [0, 2, 5])
        """
        lengths = self.lengths[rows]
        total = int(lengths.sum())
        at = to_device(rows, self.device)
        counts = self.counts[at]
        ends = F.pad(counts.cumsum(0), (1, 0))
        # the number of tokens is known here, so a GPU need not be waited for
        text = torch.repeat_interleave(torch.arange(rows.size, device=self.device), counts, output_size=total)
        positions = torch.arange(total, device=self.device) - ends[text]
        ids = self.flat[self.starts[at][text] + positions].long()
        longest = max(1, int(lengths.max(initial=0)))
        return PackedTexts(ids, positions, text, ends.int(), longest, (Joined(rows.size, total, longest),))

    def chunks(self, rows: np.ndarray, budget: int, padded: bool) -> list[np.ndarray]:
        """Return positions within `rows`, texts of like length together, in chunks of at most `budget` tokens.

        A text that is longer than that is a chunk of its own.

        >>> rows = TokenRows([np.zeros(n, dtype=np.int32) for n in (9, 1, 8, 2)])
        >>> [part.tolist() for part in rows.chunks(np.arange(4), 12, padded=False)]
        [[1, 3, 2], [0]]
        >>> [part.tolist() for part in rows.chunks(np.arange(4), 12, padded=True)]
        [[1, 3], [2], [0]]
        """
        order = np.argsort(self.lengths[rows], kind="stable")
        lengths = self.lengths[rows][order]
        sums, out, start = np.append(0, np.cumsum(lengths)), [], 0
        while start < order.size:
            tokens = (
                np.arange(1, order.size - start + 1) * lengths[start:] if padded else sums[start + 1 :] - sums[start]
            )
            end = start + max(1, int(np.searchsorted(tokens, budget, side="right")))
            out.append(order[start:end])
            start = end
        return out

    def parts_by_length(self, rows: np.ndarray, budget: int) -> Iterator[np.ndarray]:
        """Yield positions within `rows`, texts of like length together, each part about `budget` tokens with padding.

        >>> rows = TokenRows([np.zeros(n, dtype=np.int32) for n in (9, 1, 8, 2)])
        >>> [part.tolist() for part in rows.parts_by_length(np.arange(4), 20)]
        [[1, 3], [2, 0]]
        """
        order = np.argsort(self.lengths[rows], kind="stable")
        longest = int(self.lengths[rows].max(initial=1))
        for part in np.array_split(order, max(1, -(-order.size * longest // budget))):
            if part.size:
                yield part


def new_tokenizer(texts: Sequence[str], size: int) -> Any:
    """Return a word-piece tokenizer whose vocabulary of about `size` comes from some texts.

    Frequent words are kept whole, the rest is put together from frequent beginnings and ends and, at worst, letters.
    Equally frequent pieces are taken in the order of the alphabet, so the same texts give the same tokenizer. (The
    trainers of the tokenizers library do not promise that.)

    >>> tokenizer = new_tokenizer(["red apple", "red car", "car"], 60)
    >>> tokenizer.encode("RED carapple").tokens
    ['[CLS]', 'red', 'car', '##a', '##pple', '[SEP]']
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    normal, words = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    vocabulary, more = all_pieces(texts)
    vocabulary += more[: max(0, size - len(vocabulary))]
    numbers = {piece: number for number, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(vocab=numbers, unk_token=UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normal, words
    ends = (END, numbers[END]), (START, numbers[START])
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return tokenizer


def all_pieces(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the pieces that every vocabulary for some texts must have, and the others, most frequent first."""
    from tokenizers import normalizers, pre_tokenizers

    normal, words = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    try:
        for text in texts:
            counts.update(word for word, _ in words.pre_tokenize_str(normal.normalize_str(text)))
    except UnicodeError:
        check_unicode(texts)
        raise
    letters, pieces = _pieces(counts)
    always = [PADDING, UNKNOWN, START, END, *letters]
    known = set(always)
    return always, [p for p in sorted(pieces, key=lambda piece: (-pieces[piece], piece)) if p not in known]


def _pieces(counts: Counter[str]) -> tuple[list[str], Counter[str]]:
    """Return the letters of some words, at the beginning and within, and how often each piece of them occurs."""
    letters = sorted({letter for word in counts for letter in word})
    pieces: Counter[str] = Counter()
    for word, count in counts.items():
        pieces[word] += count * len(word)  # a whole word saves as many pieces as it has letters, about
        for end in range(2, min(LONGEST_PIECE, len(word) - 1) + 1):
            pieces[word[:end]] += count
            pieces["##" + word[-end:]] += count
    return letters + [f"##{letter}" for letter in letters], pieces
