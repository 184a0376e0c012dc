"""Write the findings of a label check as one table for a spreadsheet, a line per finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from longtail.data import write_spreadsheet
from longtail.facts import LabelCheckFacts

COLUMNS = ("finding", "row", "id", "label", "other_labels", "value", "note", "text")
NAMES = ("name", "other_names")  # where labels are concepts of a vocabulary


def write_findings(path: str | Path, facts: LabelCheckFacts) -> None:
    """Write the findings as CSV for a spreadsheet, all or nothing.

    `value` is the probability of a label that looks wrong or missing, the recall of a label nobody learns, the cosine
    of likely synonyms, the rows of a label that is deprecated, the name of several
    concepts or not in the vocabulary. `other_labels` are joined by
    semicolons. Where labels are concepts of a vocabulary, their names stand in two more columns at the end.
    """
    named = "vocabulary" in facts
    width = len(COLUMNS) + (len(NAMES) if named else 0)
    lines = (line[:width] for line in _lines(facts))
    write_spreadsheet(path, (*COLUMNS, *NAMES) if named else COLUMNS, lines)


def _lines(facts: LabelCheckFacts) -> Iterator[Sequence[object]]:
    """Yield one line per finding, with the columns of names; duplicates have one line per row."""
    for kind, suspects in (("wrong", facts["wrong"]), ("missing", facts["missing"])):
        for s in suspects:
            usual, name = f"usually {s['usual']}", s.get("name", s["label"])
            yield (kind, s["row"], s["id"] or "", s["label"], "", s["probability"], usual, s["text"] or "", name, "")
    for d in facts["duplicates"]:
        same, names = f"{d['kind']} as row {d['rows'][0]}", "; ".join(d.get("differing_names", d["differing"]))
        for row in d["rows"]:
            yield ("duplicate", row, "", "", "; ".join(d["differing"]), "", same, d["text"] or "", "", names)
    for u in facts["unlearned"]:
        why = f"{u['reason']}: {u['rows']}"
        yield ("unlearned", "", "", u["label"], "", u["recall"], why, "", u.get("name", u["label"]), "")
    for y in facts["synonyms"]:
        note = f"{y['reason']}; together in {y['together']} rows, {y['expected']} by chance"
        names_of = y.get("label_names", y["labels"])
        yield ("synonyms", "", "", y["labels"][0], y["labels"][1], y["cosine"], note, "", names_of[0], names_of[1])
    if "vocabulary" in facts:
        for old in facts["vocabulary"]["deprecated"]:
            new, new_name = old.get("replaced_by", ""), old.get("replaced_by_name", "")
            name = old.get("name", old["label"])
            yield ("deprecated", "", "", old["label"], new, old["rows"], "deprecated", "", name, new_name)
        for unclear in facts["vocabulary"].get("ambiguous", []):
            ids, why = "; ".join(unclear["ids"]), "name of several concepts"
            yield ("ambiguous", "", "", unclear["label"], ids, unclear["rows"], why, "", unclear["label"], "")
        for strange in facts["vocabulary"]["unknown"]:
            why = "not in the vocabulary"
            yield ("unknown", "", "", strange["label"], "", strange["rows"], why, "", strange["label"], "")
