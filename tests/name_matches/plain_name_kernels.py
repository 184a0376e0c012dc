"""Slow twins of the kernels of `longtail.name_matches`, in plain Python, with the same arguments."""

from __future__ import annotations

import numpy as np

from longtail.name_matches.find_kernel import (
    BETWEEN,
    COUNT,
    COVERED,
    ENTRY,
    EXACT,
    FAR,
    FIRST,
    FREE,
    GRADE,
    LABEL,
    LAST,
    MOST_BETWEEN,
    N_COLUMNS,
    NEAR,
    PHRASE,
    ROW,
)


def find_names_plain(stems, ends, window, terms, anchors, phrase_only):
    """Plain twin of `find_names`: every term at every position; returns (row, term, first, last, grade)."""
    out, low = [], 0
    for row, high in enumerate(ends):
        words = list(stems[low:high])
        for term, own in enumerate(terms):
            for at, stem in enumerate(words):
                if stem != own[anchors[term]]:
                    continue
                start = at - anchors[term]
                if start >= 0 and words[start : start + len(own)] == list(own):
                    out.append((row, term, low + start, low + start + len(own) - 1, PHRASE))
                    continue
                spots = [at]
                for other in own:
                    near = [p for p, s in enumerate(words) if s == other and 0 < abs(p - at) <= window]
                    if other != own[anchors[term]]:
                        spots.append(min(near, key=lambda p: (abs(p - at), p)) if near else None)
                if len(own) > 1 and not phrase_only[term] and None not in spots:
                    between = max(spots) - min(spots) + 1 - len(own)
                    grade = FAR if between > MOST_BETWEEN else NEAR
                    out.append((row, term, low + min(spots), low + max(spots), grade))
        low = high
    return out


def count_candidates_plain(found, words, row_starts, terms, entries):
    """Plain twin of `count_candidates`; `entries` are (term, label, kind, words), found as `find_names_plain` gives."""
    kept: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for match, (_, term, _, _, _) in enumerate(found):
        for entry, (own, label, _, _) in enumerate(entries):
            if own == term:
                kept.setdefault((found[match][0], label), []).append((match, entry))
    out = {}
    for (row, label), pairs in kept.items():
        phrases = [m for m in found if m[0] == row and m[4] == PHRASE]
        line = np.zeros(N_COLUMNS, dtype=np.int64)
        line[[ROW, LABEL, COUNT]] = row, label, len(pairs)
        line[FIRST] = min(found[m][2] for m, _ in pairs) - row_starts[row]
        line[LAST] = max(found[m][3] for m, _ in pairs) - row_starts[row]
        line[GRADE] = max(found[m][4] for m, _ in pairs)
        line[COVERED] = sum(len(terms[found[m][1]]) for m, _ in pairs)
        line[BETWEEN] = min(found[m][3] - found[m][2] + 1 - len(terms[found[m][1]]) for m, _ in pairs)
        for m, entry in pairs:
            _, term, start, stop, grade = found[m]
            longer = [p for p in phrases if len(terms[p[1]]) > len(terms[term])]
            covered = {i for p in longer for i in range(p[2], p[3] + 1)}
            line[FREE] += not set(range(start, stop + 1)) <= covered
            line[EXACT] += grade == PHRASE and list(words[start : stop + 1]) == list(entries[entry][3])
        line[ENTRY] = min(
            pairs, key=lambda pair: (-found[pair[0]][4], entries[pair[1]][2], -len(terms[found[pair[0]][1]]))
        )[1]
        out[row, label] = line
    return out
