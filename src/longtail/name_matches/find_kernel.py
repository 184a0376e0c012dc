"""The compiled search of texts for names, and what is counted of every label that was named.

A term is looked for only where its anchor, its rarest stem, stands. Its words match as a phrase (together and in
order), or loosely: all of them within `window` words of the anchor, in any order, near each other or far apart.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

FAR, NEAR, PHRASE = 1, 2, 3  # grades of a match
MOST_BETWEEN = 8  # other words among those of a match that is near
# columns of a candidate, a label that a row names
ROW, LABEL, ENTRY, GRADE, COUNT, FREE, EXACT, FIRST, LAST, COVERED, BETWEEN = range(11)
N_COLUMNS = 11


@njit(nogil=True, cache=True)
def _is_phrase(stems: np.ndarray, start: int, low: int, high: int, term: np.ndarray) -> bool:
    if start < low or start + term.size > high:
        return False
    for j in range(term.size):  # noqa: SIM110 - all(...) over a generator does not compile
        if stems[start + j] != term[j]:
            return False
    return True


@njit(nogil=True, cache=True)
def _nearest(stems: np.ndarray, at: int, low: int, high: int, window: int, stem: int) -> int:
    """Return the position nearest to `at` that has a stem, the earlier of two; -1 if none is within the window."""
    for d in range(1, window + 1):
        if at - d >= low and stems[at - d] == stem:
            return at - d
        if at + d < high and stems[at + d] == stem:
            return at + d
    return -1


@njit(nogil=True, cache=True)
def find_names(
    stems: np.ndarray,  # IN   stems of the words of all rows, -1: of no name   (n_words,) int32
    ends: np.ndarray,  # IN   where each row ends in stems                     (n_rows,) int64
    window: int,  # IN   words to either side of the anchor
    term_stems: np.ndarray,  # IN   as in SearchIndex
    term_starts: np.ndarray,  # IN
    anchor_at: np.ndarray,  # IN
    phrase_only: np.ndarray,  # IN
    anchored: np.ndarray,  # IN
    anchored_starts: np.ndarray,  # IN
    found: np.ndarray,  # OUT  term, first and last position, grade             (capacity, 4) int32
    found_ends: np.ndarray,  # OUT  where the matches of each row end           (n_rows,) int64
) -> int:
    """Find all terms in some rows and return how many matches there are; those beyond the capacity are not written."""
    out = 0
    low = 0
    for row in range(ends.size):
        high = ends[row]
        for i in range(low, high):
            if stems[i] < 0:
                continue
            for at in range(anchored_starts[stems[i]], anchored_starts[stems[i] + 1]):
                t = anchored[at]
                begin, end = term_starts[t], term_starts[t + 1]
                term = term_stems[begin:end]
                start = i - anchor_at[t]
                stop = start + term.size - 1
                grade = PHRASE
                if term.size > 1 and not _is_phrase(stems, start, low, high, term):
                    if phrase_only[t]:
                        continue
                    grade = NEAR
                    start = stop = i
                    for j in range(term.size):
                        if j == anchor_at[t]:
                            continue
                        p = _nearest(stems, i, low, high, window, term[j])
                        if p < 0:
                            grade = 0
                            break
                        start, stop = min(start, p), max(stop, p)
                    if grade == 0:
                        continue
                    if stop - start + 1 - term.size > MOST_BETWEEN:
                        grade = FAR
                if out < found.shape[0]:
                    found[out, 0] = t
                    found[out, 1] = start
                    found[out, 2] = stop
                    found[out, 3] = grade
                out += 1
        found_ends[row] = out
        low = high
    return out


@njit(nogil=True, cache=True)
def _is_exact(words: np.ndarray, start: int, entry_words: np.ndarray, begin: int, end: int) -> bool:
    for j in range(end - begin):  # noqa: SIM110 - all(...) over a generator does not compile
        if words[start + j] != entry_words[begin + j]:
            return False
    return True


@njit(nogil=True, cache=True)
def _is_nested(longest: np.ndarray, start: int, stop: int, length: int) -> bool:
    for p in range(start, stop + 1):  # noqa: SIM110 - all(...) over a generator does not compile
        if longest[p] <= length:
            return False
    return True


@njit(nogil=True, cache=True)
def count_candidates(
    found: np.ndarray,  # IN   what `find_names` wrote                              (n_found, 4) int32
    found_ends: np.ndarray,  # IN                                                   (n_rows,) int64
    words: np.ndarray,  # IN   numbers of the words of all rows                     (n_words,) int32
    term_starts: np.ndarray,  # IN   as in SearchIndex
    listed: np.ndarray,  # IN
    listed_starts: np.ndarray,  # IN
    row_starts: np.ndarray,  # IN   where each row begins in words                  (n_rows,) int64
    labels: np.ndarray,  # IN   label of each entry                                 (n_entries,) int32
    kinds: np.ndarray,  # IN   kind of each entry, the surest is 0                  (n_entries,) int8
    entry_words: np.ndarray,  # IN   words of all entries                           int32
    entry_starts: np.ndarray,  # IN   first word of each                            (n_entries + 1,) int64
    n_labels: int,  # IN
    out: np.ndarray,  # OUT  one line per row and label           (>= entries of all matches, N_COLUMNS) int32
) -> int:
    """Count the matches of every label in every row and return how many pairs of row and label there are.

    The entry of a pair is the surest one that matched: as a phrase, then by its kind, then the longest.
    """
    longest = np.zeros(words.size, dtype=np.int32)  # words of the longest phrase over each position
    line_of = np.full(n_labels, -1, dtype=np.int64)
    n = 0
    begin = 0
    for row in range(found_ends.size):
        first_line = n
        for m in range(begin, found_ends[row]):
            length = term_starts[found[m, 0] + 1] - term_starts[found[m, 0]]
            if found[m, 3] == PHRASE:
                for p in range(found[m, 1], found[m, 2] + 1):
                    longest[p] = max(longest[p], length)
        for m in range(begin, found_ends[row]):
            t, start, stop, grade = found[m, 0], found[m, 1], found[m, 2], found[m, 3]
            length = term_starts[t + 1] - term_starts[t]
            free = not _is_nested(longest, start, stop, length)
            for at in range(listed_starts[t], listed_starts[t + 1]):
                e = listed[at]
                exact = grade == PHRASE and _is_exact(words, start, entry_words, entry_starts[e], entry_starts[e + 1])
                line = line_of[labels[e]]
                if line < first_line:
                    line = n
                    line_of[labels[e]] = line
                    n += 1
                    out[line, ROW] = row
                    out[line, LABEL] = labels[e]
                    out[line, ENTRY] = e
                    out[line, GRADE] = grade
                    out[line, COUNT] = 0
                    out[line, FREE] = 0
                    out[line, EXACT] = 0
                    out[line, FIRST] = start - row_starts[row]
                    out[line, LAST] = stop - row_starts[row]
                    out[line, COVERED] = 0
                    out[line, BETWEEN] = stop - start + 1 - length
                elif out[line, ENTRY] != e:
                    kept = out[line, ENTRY]
                    size, kept_size = entry_starts[e + 1] - entry_starts[e], entry_starts[kept + 1] - entry_starts[kept]
                    better = grade > out[line, GRADE]
                    if grade == out[line, GRADE]:
                        better = kinds[e] < kinds[kept] or (kinds[e] == kinds[kept] and size > kept_size)
                    if better:
                        out[line, ENTRY] = e
                out[line, GRADE] = max(out[line, GRADE], grade)
                out[line, COUNT] += 1
                out[line, FREE] += free
                out[line, EXACT] += exact
                out[line, FIRST] = min(out[line, FIRST], start - row_starts[row])
                out[line, LAST] = max(out[line, LAST], stop - row_starts[row])
                out[line, COVERED] += length
                out[line, BETWEEN] = min(out[line, BETWEEN], stop - start + 1 - length)
        begin = found_ends[row]
    return n
