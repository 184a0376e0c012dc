"""Number the words or characters of texts: UTF-8 bytes in, one int32 per word or character out.

A table slot holds a 64-bit key and a word number. The key of a word of up to seven bytes is the word itself, so equal
keys mean equal words; the key of a longer word is a hash with its top bit set, and equal keys are followed by a
comparison of the bytes. Two words can therefore never be taken for one.

What a word character is, and what it is lowercased to, comes in as a table of all code points (`fold`), which is
built from Python's own rules: the kernels know nothing about Unicode but how to read UTF-8.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit
from longtail.text.hash_table import mix
from longtail.text.utf8 import read_code_point, write_code_point

LONG_KEY = np.uint64(1 << 63)
SEED = np.uint64(0x243F6A8885A308D3)
_FREE, _BYTE, _WORD = np.uint64(0), np.uint64(8), np.uint64(64)


@njit(nogil=True, cache=True)
def _absorb(hashed: np.uint64, pack: np.uint64, shift: np.uint64, byte: int) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Add a byte to the pack of up to eight that is being gathered; a full pack goes into the hash."""
    pack |= np.uint64(byte) << shift
    shift += _BYTE
    if shift == _WORD:
        return mix(hashed ^ pack), _FREE, _FREE
    return hashed, pack, shift


@njit(nogil=True, cache=True)
def _same_bytes(word: np.ndarray, size: int, arena: np.ndarray, start: int, stop: int) -> bool:
    if stop - start != size:
        return False
    for i in range(size):  # noqa: SIM110 - all(...) over a generator does not compile
        if word[i] != arena[start + i]:
            return False
    return True


@njit(nogil=True, cache=True)
def word_ids(  # long on purpose: one loop over the bytes, without a call per word
    text: np.ndarray,  # IN      UTF-8 bytes of all documents                 (n_bytes,) uint8
    ends: np.ndarray,  # IN      where each document ends in text             (n_docs,) int64
    fold: np.ndarray,  # IN      code point -> the one to keep, or -1: no word character   (CODE_POINTS,) int32
    shortest: int,  # IN      characters a word must have
    n_skip: int,  # IN      words below this number are left out (stop words)
    grow: bool,  # IN      True: unknown words are added; False: they come out as -1
    slots: np.ndarray,  # IN/OUT  key (0 = free), word                         (2**b, 2) uint64
    starts: np.ndarray,  # IN/OUT  word w is arena[starts[w]:starts[w + 1]]     (>= n_words + new + 1,) int64
    arena: np.ndarray,  # IN/OUT  the bytes of the words                       (>= used + new,) uint8
    n_words: int,  # IN      words in the table
    ids: np.ndarray,  # OUT     the words of all documents, in order         (>= n_tokens,) int32
    id_ends: np.ndarray,  # OUT     where each document ends in ids              (n_docs,) int64
) -> int:
    """Number the words of some documents and return how many words the table has now.

    The caller makes room first: with `grow`, half the slots and the ends of `starts` and `arena` must be free for
    as many words as the text can hold.
    """
    mask = slots.shape[0] - 1
    word = np.empty(2 * (text.size + 4), dtype=np.uint8)  # lowercasing may lengthen 2 bytes to 3
    begin = 0
    out = 0
    for doc in range(ends.size):
        end = ends[doc]
        i = begin
        while i < end:
            size = 0
            length = 0
            hashed, pack, shift = SEED, _FREE, _FREE
            while i < end:  # up to the first character that belongs to no word
                if text[i] < 0x80:
                    code = fold[text[i]]
                    i += 1
                    if code < 0:
                        break
                    word[size] = code
                    size += 1
                    hashed, pack, shift = _absorb(hashed, pack, shift, code)
                else:
                    raw, i = read_code_point(text, i, end)
                    code = fold[raw]
                    if code < 0:
                        break
                    stop = write_code_point(code, word, size)
                    for j in range(size, stop):
                        hashed, pack, shift = _absorb(hashed, pack, shift, word[j])
                    size = stop
                length += 1
            if size == 0 or length < shortest:
                continue
            key = pack if size < 8 else mix(hashed ^ pack) | LONG_KEY
            at = np.int64(mix(key)) & mask
            found = np.int64(-1)
            while slots[at, 0] != _FREE:
                if slots[at, 0] == key:
                    candidate = np.int64(slots[at, 1])
                    if key < LONG_KEY or _same_bytes(word, size, arena, starts[candidate], starts[candidate + 1]):
                        found = candidate
                        break
                at = (at + 1) & mask
            if found < 0 and grow:
                found = np.int64(n_words)
                slots[at, 0] = key
                slots[at, 1] = found
                used = starts[n_words]
                for j in range(size):
                    arena[used + j] = word[j]
                n_words += 1
                starts[n_words] = used + size
            if found < 0 or found >= n_skip:
                ids[out] = found
                out += 1
        id_ends[doc] = out
        begin = end
    return n_words


@njit(nogil=True, cache=True)
def char_ids(
    text: np.ndarray,  # IN   UTF-8 bytes of all documents            (n_bytes,) uint8
    ends: np.ndarray,  # IN   where each document ends in text        (n_docs,) int64
    fold: np.ndarray,  # IN   code point -> the one to keep, or -1: a space   (CODE_POINTS,) int32
    ids: np.ndarray,  # OUT  code points; -1 after each word         (>= 2 * (n_bytes + n_docs),) int32
    id_ends: np.ndarray,  # OUT  where each document ends in ids         (n_docs,) int64
) -> None:
    """Write the code points of every word with a space before and after it, and -1 between words."""
    begin = 0
    out = 0
    for doc in range(ends.size):
        end = ends[doc]
        i = begin
        inside = False
        while i < end:
            if text[i] < 0x80:
                code = fold[text[i]]
                i += 1
            else:
                raw, i = read_code_point(text, i, end)
                code = fold[raw]
            if code >= 0:
                if not inside:
                    ids[out] = 32
                    out += 1
                    inside = True
                ids[out] = code
                out += 1
            elif inside:
                ids[out] = 32
                ids[out + 1] = -1
                out += 2
                inside = False
        if inside:
            ids[out] = 32
            ids[out + 1] = -1
            out += 2
        id_ends[doc] = out
        begin = end
