"""What a label check found as one table: a line per finding, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from longtail.data import replacing
from longtail.facts import LabelCheckFacts

COLUMNS = ("finding", "row", "id", "label", "other_labels", "value", "note", "text")


def write_findings(path: str | Path, facts: LabelCheckFacts) -> None:
    """Write the findings as CSV in UTF-8, all or nothing.

    `value` is the probability of a label that looks wrong or missing, the recall of a label nobody learns, the cosine
    of likely synonyms. `other_labels` are joined by semicolons.
    """
    with replacing(Path(path)) as file:
        text = io.TextIOWrapper(file, "utf-8", errors="replace", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_lines(facts))
        text.flush()
        text.detach()


def _lines(facts: LabelCheckFacts) -> Iterator[tuple[object, ...]]:
    """Yield one line per finding; duplicates have one line per row."""
    for kind, suspects in (("wrong", facts["wrong"]), ("missing", facts["missing"])):
        for s in suspects:
            usual = f"usually {s['usual']}"
            yield (kind, s["row"], s["id"] or "", s["label"], "", s["probability"], usual, s["text"] or "")
    for d in facts["duplicates"]:
        same = f"{d['kind']} as row {d['rows'][0]}"
        for row in d["rows"]:
            yield ("duplicate", row, "", "", "; ".join(d["differing"]), "", same, d["text"] or "")
    for u in facts["unlearned"]:
        yield ("unlearned", "", "", u["label"], "", u["recall"], f"{u['reason']}: {u['rows']}", "")
    for y in facts["synonyms"]:
        note = f"{y['reason']}; together in {y['together']} rows, {y['expected']} by chance"
        yield ("synonyms", "", "", y["labels"][0], y["labels"][1], y["cosine"], note, "")
