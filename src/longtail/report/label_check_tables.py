"""The tables of a label check, which terminal and page share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from longtail.facts import CheckCountFacts, LabelCheckFacts, SuspectFacts
from longtail.report.formatting import count, plural

NAMES_SHOWN = 4
WRONG = (
    "The label is far less likely than usual for rows that have it (probability against usual), judged by other rows."
)
MISSING = "The row does not have the label, which is as likely here as usual for rows that have it."
SAME = "One of these rows is probably tagged wrong."
UNLEARNED = "They have too few rows, or no row of theirs got them when it was left out: merge, drop or tag more rows."
ALIKE = "The same name, or the same words in their rows: perhaps one of them is enough."
DEPRECATED = "They are used in the data, though the vocabulary has given them up."
STRANGE = "Rows have them, and no concept of the vocabulary has this id, notation or name."
UNCLEAR = "Nobody can tell which concept is meant: give these labels by id."
NOTHING_FOUND = "Nothing found."
NONE: CheckCountFacts = {"wrong": 0, "missing": 0, "duplicates": 0, "unlearned": 0, "synonyms": 0}


class CheckTable(NamedTuple):
    """One kind of finding; columns of text have a name that ends in a blank."""

    title: str
    means: str  # what stands in it, in a sentence
    total: int  # listed or not
    columns: list[str]
    rows: list[list[str]]


def check_sentence(facts: LabelCheckFacts) -> str:
    """Return what was checked."""
    told = f"{plural(facts.get('rows', 0), 'row')}, {plural(facts.get('labels', 0), 'label')}"
    out = f"{told}, {count(facts.get('pairs', 0))} labels given. Look at the first of each kind; these are suspicions."
    if "vocabulary" in facts:
        found = facts["vocabulary"]
        known, strange = found["labels_known"], found["labels_unknown"] + found.get("labels_ambiguous", 0)
        out += f" {count(known)} of {count(known + strange)} labels are concepts of the vocabulary."
    return out


def check_tables(facts: LabelCheckFacts, shown: int, letters: int) -> list[CheckTable]:
    """Return a table for every kind of which something was found: at most `shown` rows, texts of so many letters."""
    counts = facts.get("counts", NONE)
    suspects = ["row", "label ", "probability", "usual", "text "]
    duplicates = [
        [
            ", ".join(map(str, d["rows"][:NAMES_SHOWN])),
            d["kind"],
            _some(d.get("differing_names", d["differing"])),
            _short(d["text"], letters),
        ]
        for d in (facts.get("duplicates") or [])[:shown]
    ]
    unlearned = [
        [u.get("name", u["label"]), f"{u['rows']:,}", u["reason"]] for u in (facts.get("unlearned") or [])[:shown]
    ]
    synonyms = [
        [
            *y.get("label_names", y["labels"]),
            f"{y['cosine']:.2f}",
            f"{y['together']:,}",
            f"{y['expected']:.1f}",
            y["reason"],
        ]
        for y in (facts.get("synonyms") or [])[:shown]
    ]
    tables = [
        CheckTable(title, means, total, suspects, _suspects(found[:shown], letters))
        for title, means, total, found in (
            ("Labels that look wrong", WRONG, counts.get("wrong", 0), facts.get("wrong") or []),
            ("Labels that look missing", MISSING, counts.get("missing", 0), facts.get("missing") or []),
        )
    ]
    same, alike = "The same text with different labels", "Labels that may mean the same"
    columns = ["rows", "kind ", "labels only some have ", "text "]
    tables.append(CheckTable(same, SAME, counts.get("duplicates", 0), columns, duplicates))
    columns = ["label", "rows", "why "]
    tables.append(CheckTable("Labels that no model learns", UNLEARNED, counts.get("unlearned", 0), columns, unlearned))
    columns = ["label", "and ", "cosine", "together", "by chance", "why "]
    tables.append(CheckTable(alike, ALIKE, counts.get("synonyms", 0), columns, synonyms))
    return [table for table in [*tables, *_vocabulary_tables(facts, shown)] if table.rows]


def _vocabulary_tables(facts: LabelCheckFacts, shown: int) -> list[CheckTable]:
    """Return the deprecated concepts that rows have, and the labels that the vocabulary lacks."""
    if "vocabulary" not in facts:
        return []
    found = facts["vocabulary"]
    old = [
        [row.get("name", row["label"]), row.get("replaced_by_name", ""), f"{row['rows']:,}"]
        for row in found["deprecated"][:shown]
    ]
    strange = [[row["label"], f"{row['rows']:,}"] for row in found["unknown"][:shown]]
    unclear = [[row["label"], ", ".join(row["ids"]), f"{row['rows']:,}"] for row in found.get("ambiguous", [])[:shown]]
    title, total = "Labels that are names of several concepts", found.get("labels_ambiguous", 0)
    return [
        CheckTable(title, UNCLEAR, total, ["label", "concepts ", "rows"], unclear),
        CheckTable(
            "Deprecated concepts in use", DEPRECATED, found["deprecated_in_use"], ["label", "replaced by ", "rows"], old
        ),
        CheckTable(
            "Labels that are not in the vocabulary", STRANGE, found["labels_unknown"], ["label", "rows"], strange
        ),
    ]


def _suspects(found: Sequence[SuspectFacts], letters: int) -> list[list[str]]:
    """Return labels of rows that look wrong or missing."""
    return [
        [
            s["id"] or str(s["row"]),
            s.get("name", s["label"]),
            f"{s['probability']:.2f}",
            f"{s['usual']:.2f}",
            _short(s["text"], letters),
        ]
        for s in found
    ]


def _short(text: str | None, letters: int) -> str:
    """Return the beginning of a text."""
    return "" if text is None else text if len(text) <= letters else text[: letters - 1] + "…"


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many there are besides."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
